// `waybill` and runtime handlers: the registry, and --runtime.

#include <boost/test/unit_test.hpp>

#include "tests/support/cli_store.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using testing::CliStore;
using testing::CommandResult;
using Strings = std::vector<std::string>;

// Two handlers beside the default, one of them for Windows in a utility VM.
std::string Status(const std::string& windows_version = "10.0.17763") {
  return R"({"runtimeHandlers":[{"features":{"user_namespaces":true}},
    {"name":"runc","features":{"user_namespaces":true}},{"name":"kata","features":{}},
    {"name":"hyperv","features":{}}],
    "config":{"containerd":{"defaultRuntimeName":"runc","runtimes":{"hyperv":{"guest_platform":
    {"OS":"windows","Architecture":"amd64","OSVersion":")" +
         windows_version + R"("}}}}}})";
}
const std::string kWithoutKata =
    R"({"runtimeHandlers":[{"features":{}},{"name":"runc","features":{}}],
    "config":{"containerd":{"defaultRuntimeName":"runc"}}})";
const Strings kLoad = {"load", "--status", "-"};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void CheckUsageError(const CommandResult& result, const std::string& about) {
  BOOST_TEST(result.exit_code == 2, about << ": " << result.out << result.err);
  BOOST_TEST(result.err.starts_with("error: "), about << ": " << result.err);
  BOOST_TEST(result.out == "", about << ": " << result.out);
}

// A store that knows the handlers of Status().
struct Loaded {
  Loaded() {
    store.Start();
    BOOST_TEST(store.Run("runtimes", kLoad, Status()).exit_code == 0);
  }

  // app:v1 of `handler`, pulled with `secret`.
  void Pull(const std::string& handler, const std::string& secret) const {
    const CommandResult pulled = store.Run("pulled", Pod(handler, secret));
    BOOST_TEST(pulled.exit_code == 0, pulled.err);
  }
  static Strings Pod(const std::string& handler, const std::string& secret) {
    return {"--image",   "app:v1", "--image-ref", "ref",
            "--runtime", handler,  "--secret",    "ns/" + secret + "/uid-" + secret + "/" + secret};
  }

  CliStore store;
};

BOOST_AUTO_TEST_SUITE(cli_runtimes)

BOOST_AUTO_TEST_CASE(a_store_knows_the_default_handler_alone) {
  const CliStore store;
  store.Start();
  const CommandResult shown = store.Run("runtimes");
  BOOST_TEST(shown.exit_code == 0, shown.err);
  BOOST_TEST(Contains(shown.out,
                      "NAME       USER NAMESPACES  GUEST PLATFORM  RECORDS\n"
                      "(default)  -                -               0\n"),
             shown.out);
  const auto handlers = store.Json("runtimes", {"show"})["runtimeHandlers"];
  BOOST_REQUIRE(handlers.size() == 1U);
  BOOST_TEST(handlers[0]["name"] == "");
  BOOST_TEST(handlers[0]["default"] == true);
  BOOST_TEST(handlers[0]["userNamespaces"].is_null());
}

BOOST_AUTO_TEST_CASE(load_takes_what_the_runtime_serves) {
  const CliStore store;
  store.Start();
  const CommandResult loaded = store.Run("runtimes", kLoad, Status());
  BOOST_TEST(loaded.exit_code == 0, loaded.err);
  BOOST_TEST(Contains(loaded.out, "handlers    new: hyperv, kata, runc\n"), loaded.out);
  BOOST_TEST(store.Run("runtimes").out ==
             "NAME            USER NAMESPACES  GUEST PLATFORM            RECORDS\n"
             "hyperv          no               windows/amd64 10.0.17763  0\n"
             "kata            no               -                         0\n"
             "runc (default)  yes              -                         0\n");
  auto again = store.Json("runtimes", kLoad, Status());
  BOOST_TEST(again["added"].empty());
  BOOST_TEST(again["turnedOn"] == false);
  BOOST_TEST(again["handlers"] == 3);
  BOOST_TEST(store.Json("stats")["runtimeHandlers"] == 3);
}

BOOST_FIXTURE_TEST_CASE(handlers_that_are_gone_keep_their_records, Loaded) {
  Pull("kata", "a");
  auto gone = store.Json("runtimes", kLoad, kWithoutKata);
  BOOST_TEST(gone["vanished"] == nlohmann::json({"hyperv", "kata"}));
  const CommandResult shown = store.Run("runtimes");
  BOOST_TEST(Contains(shown.out, "kata (not served)  -                -               1\n"),
             shown.out);
  BOOST_TEST(store.Run("show", {"--image-ref", "ref", "--runtime", "kata"}).exit_code == 0);
  CheckUsageError(store.Run("check", Pod("kata", "a")), "vanished");
}

BOOST_FIXTURE_TEST_CASE(another_guest_platform_is_another_image, Loaded) {
  Pull("hyperv", "a");
  BOOST_TEST(store.Run("check", Pod("hyperv", "a")).exit_code == 0);
  auto changed = store.Json("runtimes", kLoad, Status("10.0.20348"));
  BOOST_TEST(changed["changed"] == nlohmann::json({"hyperv"}));
  BOOST_TEST(changed["recordsToVerify"] == 1);
  BOOST_TEST(store.Run("check", Pod("hyperv", "a")).exit_code == 1);
}

BOOST_FIXTURE_TEST_CASE(containerds_configuration_fills_in, Loaded) {
  testing::WriteFile(store / "config.toml",
                     "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\n"
                     "default_runtime_name = 'runc'\n"
                     "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.kata."
                     "guest_platform]\nOS = 'linux'\nArchitecture = 'arm64'\n");
  Strings load = kLoad;
  load.insert(load.end(), {"--config", (store / "config.toml").string()});
  BOOST_TEST(store.Run("runtimes", load, Status()).exit_code == 0);
  BOOST_TEST(Contains(store.Run("runtimes").out, "kata            no               linux/arm64"));
  testing::WriteFile(store / "config.toml", "version = ");
  const CommandResult bad = store.Run("runtimes", load, Status());
  CheckUsageError(bad, "TOML");
  BOOST_TEST(Contains(bad.err, "config.toml"), bad.err);
}

BOOST_FIXTURE_TEST_CASE(credentials_are_for_one_handlers_copy, Loaded) {
  Pull("kata", "a");
  Pull("", "b");
  BOOST_TEST(store.Run("check", Pod("kata", "a")).exit_code == 0);
  BOOST_TEST(store.Run("check", Pod("kata", "b")).exit_code == 1);
  BOOST_TEST(store.Run("check", Pod("", "b")).exit_code == 0);
  // The default handler goes by its own name, too.
  BOOST_TEST(store.Run("check", Pod("runc", "b")).exit_code == 0);
  auto other = store.Json("check", Pod("hyperv", "a"));
  BOOST_TEST(other["reason"] == "pulledForOtherHandler");
  BOOST_TEST(store.Json("stats")["nondefaultHandlerRecords"] == 1);
  BOOST_TEST(store.Json("metrics")["waybill_nondefault_runtime_handler_images"] == 1);
}

BOOST_FIXTURE_TEST_CASE(intents_are_for_one_handler, Loaded) {
  const Strings kata = {"--image", "app:v1", "--runtime", "kata"};
  BOOST_TEST(store.Run("intent", kata).out == "intent recorded: app:v1 for kata\n");
  BOOST_TEST(store.Run("show", {"app:v1"}).exit_code == 1);
  BOOST_TEST(store.Run("show", {"app:v1", "--runtime", "kata"}).exit_code == 0);
  BOOST_TEST(store.Run("list", {"--intents"}).out == "IMAGE   RUNTIME\napp:v1  kata\n");
  BOOST_TEST(store.Json("list", {"--intents"})["intents"][0]["runtimeHandler"] == "kata");
  auto failed =
      store.Json("failed", {"--image", "app:v1", "--runtime", "kata", "--rules", "kubelet"});
  BOOST_TEST(failed["runtimeHandler"] == "kata");
  BOOST_TEST(failed["intent"] == false);
}

BOOST_FIXTURE_TEST_CASE(records_name_their_handler_and_manifest, Loaded) {
  Strings pulled = Pod("hyperv", "a");
  pulled.insert(pulled.end(), {"--manifest", "sha256:abcd", "--platform", "windows/amd64",
                               "--os-version", "10.0.17763.1"});
  BOOST_TEST(store.Run("pulled", pulled).exit_code == 0);
  Pull("", "b");
  const CommandResult list = store.Run("list");
  BOOST_TEST(list.out.starts_with("IMAGE REF  RUNTIME  IMAGE NAME"), list.out);
  BOOST_TEST(Contains(list.out, "\nref        runc "), list.out);
  BOOST_TEST(Contains(list.out, "\nref        hyperv "), list.out);
  auto records = store.Json("list")["records"];
  BOOST_REQUIRE(records.size() == 2U);
  BOOST_TEST(!records[0].contains("runtimeHandler"));
  BOOST_TEST(!records[0].contains("platform"));
  BOOST_TEST(records[1]["runtimeHandler"] == "hyperv");
  BOOST_TEST(records[1]["manifestDigest"] == "sha256:abcd");
  BOOST_TEST(records[1]["platform"]["osVersion"] == "10.0.17763.1");
  BOOST_TEST(records[1]["guestPlatform"]["os"] == "windows");
  const CommandResult show = store.Run("show", {"--image-ref", "ref", "--runtime", "hyperv"});
  BOOST_TEST(Contains(show.out,
                      "runtime    hyperv\nmanifest   sha256:abcd\n"
                      "platform   windows/amd64 10.0.17763.1\n"
                      "guest      windows/amd64 10.0.17763\n"),
             show.out);
  BOOST_TEST(
      Contains(store.Run("dump").out, R"({"type":"runtimeHandler","name":"kata","default":false)"));
}

BOOST_FIXTURE_TEST_CASE(prune_goes_by_handler, Loaded) {
  Pull("kata", "a");
  Pull("", "b");
  const auto prune = [&](const std::string& spec) {
    std::string token = store.Run("prune", {"--begin"}).out;
    token.pop_back();
    return store.Json("prune", {"--images", "-", "--token", token},
                      R"({"images":[{"id":"ref","repoTags":[],"repoDigests":[])" + spec + "}]}");
  };
  BOOST_TEST(prune("")["keptInList"] == 2);
  BOOST_TEST(prune(R"(,"spec":{"runtimeHandler":"kata"})")["removed"] == 1);
  BOOST_TEST(store.Run("show", {"--image-ref", "ref"}).exit_code == 1);
  // The last record of the ref stays, and opens it to nobody.
  BOOST_TEST(prune(R"(,"spec":{"runtimeHandler":"hyperv"})")["keptWithoutCredentials"] == 1);
  BOOST_TEST(store.Run("check", Pod("kata", "a")).exit_code == 1);
}

BOOST_FIXTURE_TEST_CASE(collapse_turns_runtime_classes_off, Loaded) {
  Pull("kata", "a");
  Pull("", "b");
  store.Run("intent", {"--image", "other", "--runtime", "hyperv"});
  const auto dry = store.Json("runtimes", {"collapse", "--dry-run"});
  auto report = store.Json("runtimes", {"collapse"});
  BOOST_TEST(dry["dryRun"] == true);
  BOOST_TEST(dry["records"] == report["records"]);
  BOOST_TEST(report["records"] == 1);
  BOOST_TEST(report["intents"] == 1);
  BOOST_TEST(report["recordsToVerify"] == 1);
  BOOST_TEST(report["handlers"] == nlohmann::json({"hyperv", "kata"}));
  BOOST_TEST(store.Run("check", Pod("", "b")).exit_code == 1);
  BOOST_TEST(store.Run("show", {"other"}).exit_code == 0);
  BOOST_TEST(store.Json("runtimes")["runtimeHandlers"].size() == 1U);
  BOOST_TEST(Contains(store.Run("runtimes", {"collapse"}).out, "nothing"));
}

BOOST_FIXTURE_TEST_CASE(unknown_handlers_are_refused_and_the_known_named, Loaded) {
  Pull("kata", "a");
  const std::string before = store.Run("dump", {"--with-hashes"}).out;
  const std::string long_name(kMaxRuntimeHandlerBytes + 1, 'h');
  for (const std::string command : {"check", "intent", "pulled", "failed"}) {
    const CommandResult result = store.Run(command, Pod("nope", "a"));
    CheckUsageError(result, command);
    BOOST_TEST(Contains(result.err, "hyperv, kata, runc (the default)"), result.err);
    CheckUsageError(store.Run(command, Pod(long_name, "a")), command);
    for (const char* const odd : {"Kata", " kata", "a/b", "{}"}) {
      CheckUsageError(store.Run(command, Pod(odd, "a")), odd);
    }
  }
  Strings never = Pod("nope", "a");
  never.insert(never.end(), {"--policy", "NeverVerify"});
  CheckUsageError(store.Run("check", never), "NeverVerify");
  never.insert(never.end(), {"--pull-policy", "Always"});
  CheckUsageError(store.Run("check", never), "Always");
  for (const Strings& shown : {Strings{"--image-ref", "ref"}, Strings{"app:v1"}}) {
    Strings arguments = shown;
    arguments.insert(arguments.end(), {"--runtime", "nope"});
    const CommandResult result = store.Run("show", arguments);
    CheckUsageError(result, "show");
    BOOST_TEST(Contains(result.err, "kata"), result.err);
  }
  BOOST_TEST(store.Run("dump", {"--with-hashes"}).out == before);
}

BOOST_AUTO_TEST_CASE(before_any_list_was_loaded_only_the_default_is_known) {
  const CliStore store;
  store.Start();
  for (const std::string command : {"check", "intent"}) {
    const CommandResult result =
        store.Run(command, {"--image", "app", "--image-ref", "r", "--runtime", "kata"});
    CheckUsageError(result, command);
    BOOST_TEST(Contains(result.err, "waybill runtimes load"), result.err);
  }
}

BOOST_FIXTURE_TEST_CASE(lists_of_handlers_that_cannot_be_read, Loaded) {
  const std::string before = store.Run("runtimes").out;
  const std::string deep =
      R"({"runtimeHandlers":[],"config":)" + std::string(5000, '[') + std::string(5000, ']') + "}";
  for (const std::string& content :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), deep,
        std::string(R"({"runtimeHandlers":7})"), std::string(R"({"runtimeHandlers":[]} more)"),
        std::string(R"({"runtimeHandlers":[{"name":7}]})"),
        std::string(R"({"runtimeHandlers":[{"name":"a"},{"name":"a"}]})"),
        std::string(R"({"runtimeHandlers":[{"name":"a/b"}]})"),
        R"({"runtimeHandlers":[{"name":")" + std::string(254, 'a') + R"("}]})"}) {
    const std::string file = (store / "status.json").string();
    testing::WriteFile(file, content);
    const CommandResult loaded = store.Run("runtimes", {"load", "--status", file});
    CheckUsageError(loaded, content.substr(0, 60));
    BOOST_TEST(Contains(loaded.err, file), loaded.err);
    CheckUsageError(store.Run("start", {"--runtimes", "-"}, content), content.substr(0, 60));
  }
  for (const std::string& file : {std::string(), std::string("/nonexistent"), store.store()}) {
    CheckUsageError(store.Run("runtimes", {"load", "--status", file}), file);
    Strings load = kLoad;
    load.insert(load.end(), {"--config", file});
    CheckUsageError(store.Run("runtimes", load, Status()), "config " + file);
  }
  BOOST_TEST(store.Run("runtimes").out == before);
}

BOOST_FIXTURE_TEST_CASE(flags_that_need_or_exclude_each_other, Loaded) {
  for (const Strings& wrong :
       {Strings{"nonsense"}, Strings{""}, Strings{"show", "load"}, Strings{"load"},
        Strings{"--status", "-"}, Strings{"show", "--status", "-"},
        Strings{"collapse", "--config", "f"}, Strings{"show", "--dry-run"},
        Strings{"collapse", "--allow-empty"}, Strings{"load", "--config", "f"},
        Strings{"load", "--status", "-", "--config", "-"}}) {
    CheckUsageError(store.Run("runtimes", wrong, Status()), wrong.back());
  }
  for (const Strings& wrong :
       {Strings{"--manifest", "sha256:ab"}, Strings{"--platform", "linux/amd64"},
        Strings{"--os-version", "10.0"}, Strings{"--manifest", "", "--platform", "linux/amd64"},
        Strings{"--manifest", "nonsense", "--platform", "linux/amd64"},
        Strings{"--manifest", "sha256:", "--platform", "linux/amd64"},
        Strings{"--manifest", ":ab", "--platform", "linux/amd64"},
        Strings{"--manifest", "sha256:ab", "--platform", ""},
        Strings{"--manifest", "sha256:ab", "--platform", "linux"},
        Strings{"--manifest", "sha256:ab", "--platform", "linux/arm/v7/x"},
        Strings{"--manifest", "sha256:ab", "--platform", "linux/a b"},
        Strings{"--manifest", "sha256:ab", "--platform", "windows/amd64", "--os-version", ""},
        Strings{"--manifest", "sha256:ab", "--platform", "windows/amd64", "--os-version",
                std::string(257, '1')}}) {
    Strings arguments = Pod("kata", "a");
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    CheckUsageError(store.Run("pulled", arguments), wrong.back());
  }
  BOOST_TEST(store.Json("stats")["records"] == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waybill
