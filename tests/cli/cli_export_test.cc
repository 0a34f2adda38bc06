// `waybill export`: a kubelet's own files.

#include <boost/test/unit_test.hpp>

#include "tests/support/cli_store.h"
#include "tests/support/tree.h"
#include "waybill/waybill.h"

namespace waybill {
namespace {

using testing::CliStore;
using testing::CommandResult;
using testing::TreeOf;
using Strings = std::vector<std::string>;

const std::string kImages =
    R"({"images":[{"id":"ref-a","repoTags":["registry.example.com/a:1"],"repoDigests":[]}]})";

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void CheckError(const CommandResult& result, int exit_code, const std::string& about) {
  BOOST_TEST(result.exit_code == exit_code, about << ": " << result.out << result.err);
  BOOST_TEST(result.err.starts_with("error: "), about << ": " << result.err);
  BOOST_TEST(result.out == "", about << ": " << result.out);
}

// What a v1.36 kubelet wrote, taken over.
struct Imported {
  Imported() : kubelet(store.KubeletDirectory("kubelet-v1.36")) {
    store.Start({"--kubelet-dir", kubelet.string()});
    target = store / "target";
    std::filesystem::create_directory(target);
  }
  Strings To(const Strings& more = {}) const {
    Strings arguments = {"--kubelet-dir", target.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  CliStore store;
  std::filesystem::path kubelet;
  std::filesystem::path target;
};

BOOST_AUTO_TEST_SUITE(cli_export)

BOOST_FIXTURE_TEST_CASE(gives_back_what_was_taken, Imported) {
  const CommandResult exported = store.Run("export", To());
  BOOST_TEST(exported.exit_code == 0, exported.err);
  BOOST_TEST(Contains(exported.out, "records written            11\n"), exported.out);
  BOOST_TEST(Contains(exported.out, "intents written            5\n"), exported.out);
  for (const char* const folder : {"pulled", "pulling"}) {
    BOOST_TEST(
        (TreeOf(target / "image_manager" / folder) == TreeOf(kubelet / "image_manager" / folder)));
  }
  // Again: the files that are there are kept aside.
  auto again = store.Json("export", To());
  BOOST_TEST(again["records"] == 11);
  BOOST_TEST(again["withoutCredentials"] == 0);
  BOOST_TEST(again["made"] == 0);
  BOOST_TEST(again["closed"] == 0);
  BOOST_TEST(std::filesystem::exists(again["replacedPath"].get<std::string>()));
}

BOOST_FIXTURE_TEST_CASE(writes_the_older_form_on_request, Imported) {
  BOOST_TEST(store.Run("export", To({"--api-version", "v1alpha1"})).exit_code == 0);
  for (const auto& [name, content] : TreeOf(target / "image_manager/pulled")) {
    BOOST_TEST(Contains(content, R"("apiVersion":"kubelet.config.k8s.io/v1alpha1")"), content);
  }
}

BOOST_FIXTURE_TEST_CASE(works_beside_an_owner, Imported) {
  auto owner = NodeStore::Open({.directory = store.store(), .witness = Witness::Remembered()});
  BOOST_REQUIRE(owner.has_value());
  BOOST_TEST(store.Json("export", To())["records"] == 11);
}

BOOST_FIXTURE_TEST_CASE(other_handlers_records_go_without_credentials, Imported) {
  store.Run("runtimes", {"load", "--status", "-"},
            R"({"runtimeHandlers":[{"features":{}},{"name":"kata"}]})");
  store.Run("pulled", {"--image", "app", "--image-ref", "ref", "--runtime", "kata"});
  BOOST_TEST(store.Json("export", To())["withoutCredentials"] == 1);
}

BOOST_FIXTURE_TEST_CASE(a_distrustful_store_needs_the_list_of_images, Imported) {
  std::filesystem::remove_all(store.store());
  store.Start();
  CheckError(store.Run("export", To()), 2, "distrustful");
  // No file of a kubelet says that pods may live with ranges that were lost.
  CheckError(store.Run("export", To({"--images", "-"}), kImages), 3, "lost ranges");
  BOOST_TEST(!std::filesystem::exists(target / "image_manager/pulled"));
  BOOST_TEST(store.Run("userns", {"release", "--lost"}).exit_code == 0);
  auto exported = store.Json("export", To({"--images", "-"}), kImages);
  BOOST_TEST(exported["made"] == 1);
}

BOOST_FIXTURE_TEST_CASE(used_wrongly, Imported) {
  CheckError(store.Run("export"), 2, "no directory");
  for (const std::string& directory :
       {std::string(), std::string("/nonexistent/kubelet"), std::string("/etc/passwd")}) {
    CheckError(store.Run("export", {"--kubelet-dir", directory}), 2, directory);
  }
  for (const char* version : {"", "v1", "V1BETA1", "kubelet.config.k8s.io/v1beta1"}) {
    CheckError(store.Run("export", To({std::string("--api-version=") + version})), 2, version);
  }
  for (const std::string& images : {std::string(), std::string("{"), std::string("[]")}) {
    CheckError(store.Run("export", To({"--images", "-"}), images), 2, images);
  }
  CheckError(store.Run("export", To({"--images", "/nonexistent"})), 2, "no list");
  BOOST_TEST(std::filesystem::is_empty(target));

  const CliStore none;
  CheckError(none.Run("export", To()), 3, "no store");
  BOOST_TEST(std::filesystem::is_empty(target));
}

BOOST_FIXTURE_TEST_CASE(places_that_cannot_be_written, Imported) {
  std::filesystem::create_symlink(store / "elsewhere", target / "image_manager");
  CheckError(store.Run("export", To()), 3, "a symlink");
  BOOST_TEST(!std::filesystem::exists(store / "elsewhere"));
  std::filesystem::remove(target / "image_manager");
  testing::WriteFile(target / "image_manager", "a file");
  CheckError(store.Run("export", To()), 3, "a file");
  BOOST_TEST(testing::ReadFile(target / "image_manager") == "a file");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waybill
