// `waybill` used wrongly: exit code 2, an error that says what is wrong, and nothing changed.

#include <boost/test/unit_test.hpp>

#include "tests/support/cli_store.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using testing::CliStore;
using testing::CommandResult;
using testing::RunWaybill;
using Strings = std::vector<std::string>;

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void CheckUsageError(const CommandResult& result, const std::string& about) {
  BOOST_TEST(result.exit_code == 2, about << ": " << result.out << result.err);
  BOOST_TEST(result.err.starts_with("error: "), about << ": " << result.err);
  BOOST_TEST(result.out == "", about << ": " << result.out);
}

// A store that holds something, which no test of this file may change.
struct Sound {
  Sound() {
    store.Start();
    store.Run("pulled", {"--image", "nginx", "--image-ref", "ref", "--secret", "a/b/c/d"});
    store.Run("intent", {"--image", "other"});
    before = store.Run("dump", {"--with-hashes"}).out;
  }
  ~Sound() { BOOST_TEST(store.Run("dump", {"--with-hashes"}).out == before); }

  CliStore store;
  std::string before;
};

BOOST_AUTO_TEST_SUITE(cli_usage)

BOOST_AUTO_TEST_CASE(commands_and_flags_that_do_not_exist) {
  const std::vector<Strings> all = {{},
                                    {"nonsense"},
                                    {""},
                                    {"start", "check"},
                                    {"check", "--nonsense"},
                                    {"check"},
                                    {"check", "--store"},
                                    {"list", "--store", ""},
                                    {"list", "--store="},
                                    {"list", "--store", "a", "--store", "b"},
                                    {"list", "--store", "a", "--json=false"},
                                    {"list", "--store", "a", "--intents", "--quarantine"},
                                    {"hash", "extra"}};
  for (const Strings& arguments : all) {
    CheckUsageError(RunWaybill(arguments), arguments.empty() ? "nothing" : arguments.back());
  }
}

BOOST_AUTO_TEST_CASE(errors_are_objects_with_json) {
  for (const Strings& arguments : {Strings{"check", "--json"}, Strings{"nonsense", "--json"},
                                   Strings{"list", "--store", "", "--json"}}) {
    const CommandResult result = RunWaybill(arguments);
    BOOST_TEST(result.exit_code == 2);
    BOOST_TEST(result.err.starts_with("error: "));
    auto error = nlohmann::json::parse(result.out)["error"];
    BOOST_TEST(error["code"] == "invalidArgument");
    BOOST_TEST(error["message"] != "");
    BOOST_TEST(error.contains("hint"));
  }
}

BOOST_FIXTURE_TEST_CASE(malformed_values, Sound) {
  const std::string long_text(kMaxCoordinateBytes + 1, 'x');
  const std::vector<Strings> all = {
      {"--secret", ""},
      {"--secret", "a"},
      {"--secret", "a/b"},
      {"--secret", "a/b/c/d/e"},
      {"--secret", "/b/c/d"},
      {"--secret", "a//c/d"},
      {"--secret", "a/b//d"},
      {"--secret", "{}"},
      {"--secret", "[a/b/c,d/e/f]"},
      {"--secret", long_text + "/b/c/d"},
      {"--secret", "a/b/c/" + long_text},
      {"--secret=", "--secret", "a/b/c/d"},
      {"--service-account", ""},
      {"--service-account", "a/b"},
      {"--service-account", "a/b/c/d"},
      {"--service-account", "a/b/"},
      {"--service-account", "{}"},
      {"--policy", ""},
      {"--policy", "neververify"},
      {"--policy", "Sometimes"},
      {"--allow", "nginx"},
      {"--policy", "AlwaysVerify", "--allow", "nginx"},
      {"--policy", "NeverVerifyAllowlistedImages", "--allow", ""},
      {"--policy", "NeverVerifyAllowlistedImages", "--allow", "/*"},
      {"--policy", "NeverVerifyAllowlistedImages", "--allow", "a*"},
      {"--policy", "NeverVerifyAllowlistedImages", "--allow", " nginx"},
      {"--policy", "NeverVerifyAllowlistedImages", "--allow", "nginx:1"},
      {"--allow-preloaded-only"},
      {"--rules", "open"},
      {"--pull-policy", "never"},
      {"--image-ref", std::string(kMaxImageRefBytes + 1, 'r')}};
  for (const std::string command : {"check", "intent", "pulled", "failed"}) {
    for (const Strings& more : all) {
      Strings arguments = {"--image", "nginx"};
      if (more[0] != "--image-ref") arguments.insert(arguments.end(), {"--image-ref", "ref"});
      arguments.insert(arguments.end(), more.begin(), more.end());
      CheckUsageError(store.Run(command, arguments), command + " " + more.back().substr(0, 60));
    }
    CheckUsageError(store.Run(command, {"--image", "", "--image-ref", "r"}), command);
    const std::string long_image(kMaxImageBytes + 1, 'i');
    CheckUsageError(store.Run(command, {"--image", long_image, "--image-ref", "r"}), command);
  }
}

BOOST_FIXTURE_TEST_CASE(a_bad_secret_shows_the_form, Sound) {
  const CommandResult result =
      store.Run("check", {"--image", "nginx", "--image-ref", "ref", "--secret", "a/b"});
  BOOST_TEST(Contains(result.err, "hint: the form is NAMESPACE/NAME/UID/HASH"), result.err);
}

BOOST_FIXTURE_TEST_CASE(flags_that_need_or_exclude_each_other, Sound) {
  CheckUsageError(store.Run("check", {"--image", "nginx"}), "no ref");
  CheckUsageError(store.Run("pulled", {"--image", "nginx"}), "no ref");
  CheckUsageError(store.Run("pulled", {"--image", "nginx", "--image-ref", ""}), "empty ref");
  const Strings both = {"--image", "nginx", "--image-ref", "ref", "--credentials-unknown"};
  Strings with_secret = both;
  with_secret.insert(with_secret.end(), {"--secret", "a/b/c/d"});
  CheckUsageError(store.Run("pulled", with_secret), "unknown and known");
  CheckUsageError(store.Run("pulled", {"--image", "UPPER case", "--image-ref", "r"}), "no name");
  CheckUsageError(store.Run("show"), "neither");
  CheckUsageError(store.Run("show", {"nginx", "--image-ref", "ref"}), "both");
  CheckUsageError(store.Run("show", {"--image-ref", ""}), "empty");
  CheckUsageError(store.Run("trust", {"--clear"}), "no reason");
  CheckUsageError(store.Run("trust", {"--reason", "why"}), "no clear");
  CheckUsageError(store.Run("trust", {"--clear", "--reason", ""}), "empty reason");
  CheckUsageError(store.Run("trust", {"--clear", "--reason", std::string(1025, 'r')}), "long");
  CheckUsageError(store.Run("start", {"--witness", "w", "--no-witness"}), "witness");
  CheckUsageError(store.Run("start", {"--witness", ""}), "empty witness");
  CheckUsageError(store.Run("start", {"--kubelet-dir", ""}), "empty directory");
  CheckUsageError(store.Run("start", {"--kubelet-dir", "/nonexistent"}), "no directory");
  for (const char* size : {"", "1", "-1", "1e9", "16G", "99999999999999999999"}) {
    CheckUsageError(store.Run("start", {"--map-size", size}), size);
  }
}

BOOST_FIXTURE_TEST_CASE(prune_wants_a_list_and_a_token_or_a_time, Sound) {
  testing::WriteFile(store / "images.json", R"({"images":[]})");
  const std::string file = (store / "images.json").string();
  for (const Strings& more :
       {Strings{}, Strings{"--images", file}, Strings{"--token", "1"},
        Strings{"--begin", "--token", "1"}, Strings{"--images", file, "--token", "x"},
        Strings{"--images", file, "--token", ""}, Strings{"--images", file, "--token", "-1"},
        Strings{"--images", file, "--token", "18446744073709551615"},
        Strings{"--images", file, "--token", "1", "--until", "2026-01-01T00:00:00Z"},
        Strings{"--images", file, "--until", "yesterday"},
        Strings{"--images", file, "--until", "2026-13-01T00:00:00Z"}}) {
    CheckUsageError(store.Run("prune", more), more.empty() ? "nothing" : more.back());
  }
}

BOOST_FIXTURE_TEST_CASE(lists_of_images_that_cannot_be_read, Sound) {
  std::string deep = R"({"images":[{"id":"r","spec":)";
  deep += std::string(5000, '[') + std::string(5000, ']') + "}]}";
  for (const std::string& content :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), std::string("null"),
        std::string(R"({"images":7})"), std::string(R"({"images":[{}]})"),
        std::string(R"({"images":[]} more)"), std::string("\xff\xfe"), deep}) {
    const std::string file = (store / "images.json").string();
    testing::WriteFile(file, content);
    for (const Strings& more :
         {Strings{"start", "--images", file}, Strings{"prune", "--token", "1", "--images", file}}) {
      const CommandResult result = store.Run(more[0], {more.begin() + 1, more.end()});
      CheckUsageError(result, content.substr(0, 40));
      BOOST_TEST(Contains(result.err, file), result.err);
    }
    const CommandResult piped = store.Run("start", {"--images", "-"}, content);
    CheckUsageError(piped, content.substr(0, 40));
    BOOST_TEST(Contains(piped.err, "standard input"), piped.err);
  }
  for (const std::string& file : {std::string(), std::string("/nonexistent/images.json"),
                                  store.store(), std::string("/proc/self/mem")}) {
    CheckUsageError(store.Run("start", {"--images", file}), file);
  }
}

BOOST_FIXTURE_TEST_CASE(a_huge_list_of_images, Sound) {
  const auto file = store / "images.json";
  testing::WriteFile(file, "{");
  std::filesystem::resize_file(file, kMaxDocumentBytes + 1);  // sparse
  const CommandResult result = store.Run("start", {"--images", file.string()});
  CheckUsageError(result, "huge");
  BOOST_TEST(Contains(result.err, "bytes"), result.err);
}

BOOST_AUTO_TEST_CASE(documents_that_hold_no_credentials) {
  for (const std::string& content :
       {std::string(), std::string("{"), std::string("[]"), std::string(100000, '['),
        std::string(R"({"auths":{"r.example":{"auth":"%%%"}}})"),
        std::string(R"({"auths":{"r.example":{"auth":"bm9jb2xvbg=="}}})"),
        std::string(kMaxRecordFileBytes + 1, ' ')}) {
    CheckUsageError(RunWaybill({"hash"}, content), content.substr(0, 60));
  }
  const CommandResult named =
      RunWaybill({"hash"}, R"({"auths":{"r.example":{"auth":"aHVudGVyMg=="}}})");
  BOOST_TEST(Contains(named.err, "r.example"), named.err);
  BOOST_TEST(!Contains(named.err, "hunter2"), named.err);
  BOOST_TEST(!Contains(named.err, "aHVudGVyMg"), named.err);
}

BOOST_FIXTURE_TEST_CASE(odd_values_that_are_allowed, Sound) {
  // An image that is not on the node; a hundred secrets and one.
  BOOST_TEST(store.Run("check", {"--image", "nginx", "--image-ref", ""}).exit_code == 1);
  BOOST_TEST(store.Run("check", {"--image", "nginx", "--image-ref="}).exit_code == 1);
  Strings many = {"--image", "nginx", "--image-ref", "ref"};
  for (int i = 0; i < 101; ++i) {
    many.insert(many.end(), {"--secret", "ns/name/uid-" + std::to_string(i) + "/hash"});
  }
  BOOST_TEST(store.Run("check", many).exit_code == 1);
  many.insert(many.end(), {"--secret", "a/b/c/d"});
  BOOST_TEST(store.Run("check", many).exit_code == 0);
  // Under a policy that asks for no credentials the kubelet's answer would be yes.
  for (const char* const policy : {"NeverVerify", "AlwaysVerify"}) {
    const Strings odd = {"--image", "UPPER case", "--image-ref", "ref", "--policy", policy};
    BOOST_TEST(store.Run("check", odd).exit_code == 2);
    BOOST_TEST(store.Json("check", odd)["error"]["code"] == "invalidArgument");
  }
  auto invalid = store.Json(
      "check", {"--image", "UPPER case", "--image-ref", "ref", "--pull-policy", "IfNotPresent"});
  BOOST_TEST(invalid["pull"] == true);
  BOOST_TEST(invalid["action"] == "InvalidImageName");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waybill
