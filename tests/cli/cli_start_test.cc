// `waybill start`: handlers, and gaps in what was recorded.

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "tests/support/cli_store.h"
#include "tests/support/forked_child.h"
#include "tests/support/mounts.h"

namespace waybill {
namespace {

using testing::CliStore;
using testing::CommandResult;
using Strings = std::vector<std::string>;

const std::string kImages =
    R"({"images":[{"id":"ref-a","repoTags":["registry.example.com/a:1"],"repoDigests":[]},
    {"id":"ref-b","repoTags":[],"repoDigests":[]}]})";
const std::string kHandlers = R"({"runtimeHandlers":[{"features":{}},{"name":"kata"}]})";

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void CheckUsageError(const CommandResult& result, const std::string& about) {
  BOOST_TEST(result.exit_code == 2, about << ": " << result.out << result.err);
  BOOST_TEST(result.err.starts_with("error: "), about << ": " << result.err);
}

BOOST_AUTO_TEST_SUITE(cli_start)

BOOST_AUTO_TEST_CASE(handlers_are_replaced_and_told) {
  const CliStore store;
  const CommandResult first = store.Start({"--runtimes", "-"}, kHandlers);
  BOOST_TEST(first.exit_code == 0, first.err);
  BOOST_TEST(Contains(first.out, "handlers    new: (default), kata\n"), first.out);
  auto second = store.Json("start", {"--runtimes", "-"},
                           R"({"runtimeHandlers":[{"features":{}},{"name":"gvisor"}]})");
  BOOST_TEST(second["runtimes"]["added"] == nlohmann::json({"gvisor"}));
  BOOST_TEST(second["runtimes"]["vanished"] == nlohmann::json({"kata"}));
  BOOST_TEST(store.Json("start")["runtimes"].is_null());
  BOOST_TEST(store.Json("stats")["runtimeHandlers"] == 2);
}

BOOST_AUTO_TEST_CASE(modes_that_were_mended_are_told) {
  const CliStore store;
  store.Start({"--allow-untested-lmdb"});
  const std::filesystem::path data = std::filesystem::path(store.store()) / "data.mdb";
  const auto loosen = [&] {
    std::filesystem::permissions(data, std::filesystem::perms::others_read,
                                 std::filesystem::perm_options::add);
  };
  loosen();
  const CommandResult told = store.Start();
  BOOST_TEST(Contains(told.out, "\nmended      " + data.string() + " had mode 0604"), told.out);
  loosen();
  BOOST_TEST(store.Json("start")["mended"].size() == 1U);
  BOOST_TEST(store.Json("start")["mended"].empty());
  BOOST_TEST(store.Json("start")["warnings"].is_array());
  loosen();
  const CommandResult intent = store.Run("intent", {"--image", "registry.example.com/a:1"});
  BOOST_TEST(intent.exit_code == 0);
  BOOST_TEST(Contains(intent.err, "had mode 0604"), intent.err);
}

BOOST_AUTO_TEST_CASE(a_gap_closes_what_has_no_record) {
  const CliStore store;
  store.Start();
  store.Run("pulled", {"--image", "registry.example.com/b:1", "--image-ref", "ref-b"});
  const Strings check = {"--image", "registry.example.com/a:1", "--image-ref", "ref-a"};
  BOOST_TEST(store.Run("check", check).exit_code == 0);

  const CommandResult started = store.Run("start", {"--after-gap", "--images", "-"}, kImages);
  BOOST_TEST(started.exit_code == 0, started.err);
  BOOST_TEST(Contains(started.out, "\ngap         "), started.out);
  BOOST_TEST(!Contains(started.out, "run `waybill start"), started.out);  // it just was
  BOOST_TEST(Contains(started.out, "\nclosed      1 image without a record"), started.out);
  BOOST_TEST(Contains(started.out, "\nclosed      registry.example.com/a:1\n"), started.out);
  BOOST_TEST(store.Run("check", check).exit_code == 1);
  BOOST_TEST(store.Run("trust").exit_code == 0);
}

BOOST_AUTO_TEST_CASE(a_gap_without_a_list_distrusts_until_there_is_one) {
  const CliStore store;
  store.Start();
  const CommandResult started = store.Run("start", {"--after-gap"});
  BOOST_TEST(started.exit_code == 0, started.err);
  BOOST_TEST(Contains(started.err, "waybill start --store " + store.store() + " --after-gap"),
             started.err);
  BOOST_TEST(store.Run("trust").exit_code == 1);
  auto filled = store.Json("start", {"--images", "-"}, kImages);
  BOOST_TEST(filled["afterGap"] == true);
  BOOST_TEST(filled["gapClosed"] == 2);
  BOOST_TEST(filled["gapImages"] == nlohmann::json({"registry.example.com/a:1", "ref-b"}));
  BOOST_TEST(filled["distrustful"] == false);
  BOOST_TEST(store.Json("start", {"--images", "-"}, kImages)["afterGap"] == false);
}

BOOST_AUTO_TEST_CASE(a_gap_is_seen_in_the_kubelet_directory) {
  for (const bool told_no : {false, true}) {
    const CliStore store;
    // A kubelet ran pods, and recorded nothing.
    std::filesystem::create_directories(store / "kubelet/pods/uid-1");
    Strings more = {"--kubelet-dir", (store / "kubelet").string(), "--images", "-"};
    if (told_no) more.emplace_back("--no-after-gap");
    auto started = store.Json("start", more, kImages);
    BOOST_TEST(started["afterGap"] == !told_no);
    BOOST_TEST(started["gapClosed"] == (told_no ? 0 : 2));
    BOOST_TEST(started["gapReason"].get<std::string>().empty() == told_no);
  }
}

BOOST_AUTO_TEST_CASE(a_bad_sector_stops_start_unless_it_is_to_be_skipped) {
  const CliStore store;
  const auto kubelet = store.KubeletDirectory("kubelet-v1.36");
  const auto pulled = kubelet / "image_manager" / "pulled";
  const std::filesystem::path bad = *std::filesystem::directory_iterator(pulled);
  const Strings more = {"--kubelet-dir", kubelet.string()};
  Strings skipping = more;
  skipping.emplace_back("--skip-unreadable");
  constexpr int kLeftOut = 77;
  testing::Child child([&] {
    if (!testing::MakeUnreadable(bad)) return kLeftOut;
    const CommandResult refused = store.Start(more);
    if (refused.exit_code != 3 || !Contains(refused.err, bad.string()) ||
        !Contains(refused.err, "Input/output error") || !Contains(refused.err, "try again") ||
        !Contains(refused.err, "--skip-unreadable")) {
      return 1;
    }
    const CommandResult skipped = store.Start(skipping);
    if (skipped.exit_code != 0 || !Contains(skipped.out, bad.filename().string())) return 2;
    return store.Run("trust").exit_code == 0 ? 0 : 3;
  });
  const int code = child.Wait();
  if (code == kLeftOut) {
    BOOST_TEST_MESSAGE("left out: " << testing::kMayNotMount);
    return;
  }
  BOOST_TEST(code == 0);
}

BOOST_AUTO_TEST_CASE(flags_that_need_or_exclude_each_other) {
  const CliStore store;
  store.Start();
  testing::WriteFile(store / "handlers.json", kHandlers);
  const std::string handlers = (store / "handlers.json").string();
  for (const Strings& wrong :
       {Strings{"--after-gap", "--no-after-gap"}, Strings{"--after-gap=yes"},
        Strings{"--no-migrate=1"}, Strings{"--runtime-config", "f"},
        Strings{"--images", "-", "--runtimes", "-"},
        Strings{"--runtimes", "-", "--runtime-config", "-"}, Strings{"--runtimes", ""},
        Strings{"--runtimes", "/nonexistent"}, Strings{"--runtimes", store.store()},
        Strings{"--runtimes", handlers, "--runtime-config", "/nonexistent"},
        Strings{"--runtimes", handlers, "--runtime-config", handlers}}) {
    CheckUsageError(store.Run("start", wrong), wrong[0]);
  }
  BOOST_TEST(store.Json("stats")["runtimeHandlers"] == 0);
}

BOOST_AUTO_TEST_CASE(a_witness_that_is_gone_is_distrust_until_it_is_said_otherwise) {
  const CliStore store;
  store.Start();
  store.Run("pulled", {"--image", "registry.example.com/a:1", "--image-ref", "ref-a"});
  std::filesystem::remove(store / "witness");
  for (const char* command : {"stats", "verify"}) {
    const CommandResult refused = store.Run(command);
    BOOST_TEST(refused.exit_code != 0, command);
    BOOST_TEST(Contains(refused.err, "witness"), refused.err);
  }
  const CommandResult started = store.Run("start");
  BOOST_TEST(started.exit_code == 0, started.err);
  BOOST_TEST(Contains(started.out, "\nfound       the witness "), started.out);
  BOOST_TEST(Contains(started.err, "DISTRUSTFUL"), started.err);
  BOOST_TEST(store.Run("check", {"--image", "registry.example.com/a:1", "--image-ref", "ref-a"})
                 .exit_code == 1);
  BOOST_TEST(std::filesystem::exists(store / "witness"));
}

BOOST_AUTO_TEST_CASE(a_witness_is_forgotten_by_an_explicit_word) {
  const CliStore store;
  store.Start();
  std::filesystem::remove(store / "witness");
  CheckUsageError(store.Run("start", {"--forget-witness"}), "alone");
  const std::string moved = (store / "moved").string();
  auto started = store.Json("start", {"--witness", moved, "--forget-witness"});
  BOOST_TEST(started["distrustful"] == false);
  BOOST_TEST(started["witnessMade"] == true);
  BOOST_TEST(started["witnessInStore"] == false);
  std::filesystem::remove(moved);
  BOOST_TEST(store.Json("start", {"--no-witness"})["distrustful"] == false);
  BOOST_TEST(store.Json("start")["distrustful"] == false);
}

BOOST_AUTO_TEST_CASE(a_witness_overwrites_nothing_and_lies_outside) {
  const CliStore store;
  store.Start();
  testing::WriteFile(store / "file", "somebody's");
  std::filesystem::create_directory(store / "directory");
  for (const std::string& path : {(store / "file").string(), (store / "directory").string(),
                                  store.store() + "/witness", store.store() + "/sub/witness"}) {
    CheckUsageError(store.Run("start", {"--witness", path}), path);
    BOOST_TEST(!std::filesystem::exists(path + ".tmp"));
  }
  BOOST_TEST(testing::ReadFile(store / "file") == "somebody's");
  for (const char* command : {"stats", "verify", "list"}) {
    BOOST_TEST(store.Run(command).exit_code == 0, command);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waybill
