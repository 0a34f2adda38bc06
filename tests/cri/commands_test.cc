// `--cri`: a command says and does the same as with what crictl prints.

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cri/fake_runtime.h"
#include "tests/support/cli_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(commands)

namespace {

using Strings = std::vector<std::string>;

const std::string kNew = WAYBILL_FIXTURES "/cri/containerd-2.4.2/";
const std::string kOld = WAYBILL_FIXTURES "/cri/containerd-1.6.20/";
const std::string kTenantA =
    "sha256:c1f6991646aea81d8b675283d51b59d56a854972a5d1e826501131574c37d4c8";
// Of an image that no list has.
const std::string kUnlisted = "sha256:" + std::string(64, '1');

// A runtime that answers what a containerd answered.
void Play(FakeRuntime& fake, const std::string& directory) {
  fake.Answer("ListImages", ImagesFrom(ReadFile(directory + "images.json")));
  fake.Answer("Status", StatusFrom(ReadFile(directory + "info.json")));
}

Strings operator+(Strings a, const Strings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// What differs between any two runs.
nlohmann::json WithoutRun(nlohmann::json json) {
  for (const char* key : {"store", "commit"}) json.erase(key);
  return json;
}

bool Has(const CommandResult& result, const std::string& text) {
  const bool has = result.err.find(text) != std::string::npos;
  if (!has) BOOST_TEST_MESSAGE(result.out + result.err);
  return has;
}

// A store with a record for an image that the fixtures list, and for one that they do not.
void AddRecords(const CliStore& scene) {
  for (const std::string& ref : {kTenantA, kUnlisted}) {
    const Strings image = {"--image", "127.0.0.1:5000/tenant-a/app:v1", "--image-ref", ref};
    BOOST_REQUIRE(scene.Run("intent", image).exit_code == 0);
    BOOST_REQUIRE(scene.Run("pulled", image).exit_code == 0);
  }
}

std::string Dump(const CliStore& scene) { return scene.Run("dump").out; }

}  // namespace

BOOST_AUTO_TEST_CASE(start_takes_images_and_handlers) {
  FakeRuntime fake;
  Play(fake, kNew);
  const CliStore asked;
  const CliStore read;
  const auto by_runtime = asked.Start({"--cri", fake.endpoint(), "-o", "json"});
  const auto by_files = read.Start(
      {"--images", kNew + "images.json", "--runtimes", kNew + "info.json", "-o", "json"});
  BOOST_TEST(by_runtime.err == "");
  BOOST_REQUIRE(by_runtime.exit_code == 0);
  const auto json = nlohmann::json::parse(by_runtime.out);
  BOOST_TEST(WithoutRun(json) == WithoutRun(nlohmann::json::parse(by_files.out)));
  BOOST_TEST(json.at("preloaded") == 6);
  const auto handlers = asked.Json("runtimes").at("handlers");
  BOOST_TEST(handlers == read.Json("runtimes").at("handlers"));
  BOOST_TEST(handlers.size() == 2);
}

BOOST_AUTO_TEST_CASE(start_at_a_runtime_that_names_no_handlers) {
  FakeRuntime fake;
  Play(fake, kOld);
  const CliStore scene;
  // Those that the store knows stay.
  BOOST_REQUIRE(scene.Start({"--runtimes", kNew + "info.json"}).exit_code == 0);
  BOOST_REQUIRE(scene.Start({"--cri", fake.path()}).exit_code == 0);
  BOOST_TEST(scene.Json("runtimes").at("handlers").size() == 2);
  const std::string config = (scene / "config.toml").string();
  WriteFile(config, "version = 2\n");
  for (const auto& result : {scene.Start({"--cri", fake.path(), "--runtime-config", config}),
                             scene.Run("runtimes", {"load", "--cri", fake.path()})}) {
    BOOST_TEST(result.exit_code == 2);
    BOOST_TEST(Has(result, "names no runtime handlers"));
  }
}

BOOST_AUTO_TEST_CASE(every_command_answers_as_with_a_file) {
  FakeRuntime fake;
  Play(fake, kNew);
  CliStore scene;
  BOOST_REQUIRE(scene.Start().exit_code == 0);
  AddRecords(scene);
  WriteFile(scene / "pods.json", R"({"kind":"List","items":[]})");
  const std::string token = scene.Json("observe", {"--begin"}).at("token");
  const std::string name = "127.0.0.1:5000/tenant-b/app:v1";
  const struct {
    std::string command;
    Strings shared;
    Strings with_file;
    Strings with_runtime;
  } all[] = {
      {"check", {"--image", name, "--image-ref", kTenantA}, {"--images"}, {}},
      {"check", {"--image", name, "--image-ref", kTenantA.substr(7, 12)}, {"--images"}, {}},
      {"check", {"--image", name, "--image-ref", name}, {"--images"}, {}},
      {"check", {"--image", name, "--image-ref", "nothing:v1"}, {"--images"}, {}},
      {"explain", {"--image", name, "--image-ref", kTenantA}, {"--images"}, {}},
      {"preview", {"--pods", (scene / "pods.json").string(), "--node", "n"}, {"--images"}, {}},
      {"observe", {"--dry-run"}, {"--token", token, "--images"}, {}},
      {"prune", {"--dry-run"}, {"--token", token, "--images"}, {}},
      {"preload", {"add", name, "--reason", "r", "--dry-run"}, {"--images"}, {}},
      {"preload", {"remove", name, "--reason", "r", "--dry-run"}, {"--images"}, {}},
      {"trust", {"--clear", "--reason", "r", "--adopt", "--dry-run"}, {"--images"}, {}},
  };
  for (const auto& one : all) {
    const auto file = scene.Run(
        one.command, one.shared + one.with_file + Strings{kNew + "images.json", "-o", "json"});
    const auto asked = scene.Run(one.command, one.shared + one.with_runtime +
                                                  Strings{"--cri", fake.endpoint(), "-o", "json"});
    BOOST_TEST(file.exit_code < 2, one.command << ": " << file.err);
    BOOST_TEST(asked.exit_code == file.exit_code, one.command << ": " << asked.err);
    BOOST_TEST(asked.err == file.err, one.command);
    BOOST_TEST(nlohmann::json::parse(asked.out) == nlohmann::json::parse(file.out), one.command);
  }
  const auto handlers = [&](const Strings& how) {
    return scene.Json("runtimes", Strings{"load", "--dry-run"} + how);
  };
  BOOST_TEST(handlers({"--cri", fake.endpoint()}) == handlers({"--status", kNew + "info.json"}));
  const auto exported = [&](const Strings& how) {
    const TempDir kubelet;
    auto json = scene.Json("export", Strings{"--kubelet-dir", kubelet.path().string()} + how);
    json.erase("replaced");
    return json;
  };
  // What nobody asked for yet is judged by a list that was made just now.
  const auto unjudged = exported({"--images", kNew + "images.json"});
  const auto judged = exported({"--cri", fake.endpoint()});
  BOOST_TEST(judged.at("made").get<int>() < unjudged.at("made").get<int>());
  BOOST_TEST(exported({"--images", kNew + "images.json"}) == judged);
  const auto pulled = [&](const Strings& how) {
    return scene.Json("pulled", Strings{"--image", name, "--image-ref", kTenantA} + how);
  };
  BOOST_TEST(pulled({"--cri", fake.endpoint()}) == pulled({"--listed", kNew + "images.json"}));
}

// By the runtime's own word: containerd 1.6 says its registries.
BOOST_AUTO_TEST_CASE(pulled_says_who_checked_by_the_runtimes_configuration) {
  FakeRuntime fake;
  Play(fake, kOld);
  fake.Answer("Version", Version("containerd", "1.6.20"));
  const CliStore scene;
  BOOST_REQUIRE(scene.Start().exit_code == 0);
  const auto listed = nlohmann::json::parse(ReadFile(kOld + "images.json"))["images"];
  const auto checker = [&](std::size_t image_of_list, const Strings& flags) -> std::string {
    const std::string ref = listed[image_of_list]["id"];
    const Strings image = {"--image",     "127.0.0.1:5000/tenant-a/app:v1",
                           "--image-ref", ref,
                           "--secret",    "a/pull/u/cafe"};
    const Strings intent(image.begin(), image.begin() + 2);
    BOOST_TEST(scene.Run("intent", intent).exit_code == 0);
    const CommandResult pulled = scene.Run("pulled", image + flags);
    BOOST_TEST(pulled.exit_code == 0, pulled.err);
    constexpr std::string_view kChecker = "\"verifiedBy\":\"";
    std::string record = Dump(scene);
    record.erase(0, record.find("\"imageRef\":\"" + ref));
    record.resize(std::min(record.find('\n'), record.size()));
    const std::size_t at = record.find(kChecker);
    if (at == std::string::npos) return "unknown";
    const std::size_t from = at + kChecker.size();
    return record.substr(from, record.find('"', from) - from);
  };
  const Strings cri = {"--cri", fake.endpoint()};
  BOOST_TEST(checker(0, {}) == "unknown");
  BOOST_TEST(checker(1, cri) == "registry");
  nlohmann::json info = nlohmann::json::parse(ReadFile(kOld + "info.json"));
  info["config"]["registry"]["mirrors"]["*"]["endpoint"] = {"http://127.0.0.1:30020"};
  fake.Answer("Status", StatusFrom(info.dump()));
  BOOST_TEST(checker(2, cri) == "mirror");
  BOOST_TEST(checker(3, cri + Strings{"--checker", "registry"}) == "registry");
}

BOOST_AUTO_TEST_CASE(check_looks_the_ref_up) {
  FakeRuntime fake;
  Play(fake, kNew);
  const CliStore scene;
  BOOST_REQUIRE(scene.Start().exit_code == 0);
  AddRecords(scene);
  const std::string tag = "127.0.0.1:5000/tenant-a/app:v1";
  const auto check = [&](const std::string& ref) {
    return scene.Json("check", {"--image", tag, "--image-ref", ref, "--cri", fake.endpoint()});
  };
  for (const std::string& ref : {tag, kTenantA.substr(0, 19), kTenantA.substr(7, 12)}) {
    const auto answer = check(ref);
    BOOST_TEST(answer.at("pull") == false, ref);
    BOOST_TEST(answer.at("imageRef") == kTenantA, ref);
  }
  // What the runtime has not is asked as it is.
  BOOST_TEST(check("127.0.0.1:5000/tenant-a/app:v2").at("pull") == true);
  BOOST_TEST(check(kUnlisted).at("pull") == false);
  // A runtime that gives the name to two images, or lists an image by the digits of another's ID.
  const auto list = [&](const std::string& more) {
    fake.Answer("ListImages", ImagesFrom(R"({"images":[{"id":")" + kTenantA + R"(","repoTags":[")" +
                                         tag + R"("]},)" + more + "]}"));
  };
  const std::string digits = kTenantA.substr(7, 12);
  list(R"({"id":")" + kUnlisted + R"(","repoTags":[")" + tag + R"("]})");
  BOOST_TEST(check(tag).at("error").at("code") == "invalidArgument");
  list(R"({"id":")" + kUnlisted + R"(","repoTags":["docker.io/library/)" + digits +
       R"(:latest"]})");
  const std::string message = check(digits).at("error").at("message");
  BOOST_TEST(message.find(kTenantA) != std::string::npos, message);
  BOOST_TEST(message.find(kUnlisted) != std::string::npos, message);
}

BOOST_AUTO_TEST_CASE(the_token_is_drawn_before_the_list) {
  for (const std::string command : {"observe", "prune"}) {
    FakeRuntime fake;
    Play(fake, kNew);
    const CliStore scene;
    BOOST_REQUIRE(scene.Start().exit_code == 0);
    // While the runtime lists, somebody pulls an image that the list lacks. The store is free.
    fake.Before("ListImages", [&] { AddRecords(scene); });
    const auto result = scene.Run(command, {"--cri", fake.endpoint()});
    BOOST_TEST(result.exit_code == 0, result.err);
    BOOST_TEST(scene.Run("show", {"--image-ref", kUnlisted}).exit_code == 0, command);
    // The next list is younger.
    fake.Before("ListImages", {});
    BOOST_TEST(scene.Run(command, {"--cri", fake.endpoint()}).exit_code == 0);
    const auto shown = scene.Run("show", {"--image-ref", kUnlisted});
    BOOST_TEST(shown.out.find("not on the node since") != std::string::npos, command);
  }
}

BOOST_AUTO_TEST_CASE(a_runtime_without_images_is_no_reason_to_forget) {
  FakeRuntime fake;
  fake.Answer("ListImages", std::string());
  fake.Answer("Status", std::string());
  const CliStore scene;
  BOOST_REQUIRE(scene.Start().exit_code == 0);
  AddRecords(scene);
  const std::string before = Dump(scene);
  for (const Strings& command : {Strings{"prune"}, Strings{"trust", "--clear", "--reason", "r"}}) {
    const auto result = scene.Run(command[0], Strings(command.begin() + 1, command.end()) +
                                                  Strings{"--cri", fake.endpoint()});
    BOOST_TEST(result.exit_code == 2, command[0]);
    BOOST_TEST(
        Has(result, "the container runtime of --cri " + fake.endpoint() + " answered with none"),
        command[0]);
    BOOST_TEST(Has(result, "--allow-empty"), command[0]);
  }
  BOOST_TEST(Dump(scene) == before);
  // What these lack is remembered.
  const std::size_t records = scene.Json("list").at("records").size();
  BOOST_TEST(scene.Start({"--cri", fake.endpoint()}).exit_code == 0);
  BOOST_TEST(scene.Run("observe", {"--cri", fake.endpoint()}).exit_code == 0);
  BOOST_TEST(scene.Run("prune", {"--cri", fake.endpoint(), "--allow-empty"}).exit_code == 0);
  BOOST_TEST(scene.Json("list").at("records").size() == records);
  for (const auto& record : scene.Json("list").at("records")) {
    BOOST_TEST(record.contains("absentSince"), record.dump());
  }
}

BOOST_AUTO_TEST_CASE(without_an_answer_nothing_is_changed) {
  FakeRuntime fake;
  const CliStore scene;
  const CliStore none;
  BOOST_TEST(none.Start({"--cri", "/nowhere.sock"}).exit_code == 3);
  BOOST_TEST(!std::filesystem::exists(none.store()));
  BOOST_REQUIRE(scene.Start().exit_code == 0);
  AddRecords(scene);
  const std::string before = Dump(scene);
  const auto refused = [&](int code, const std::string& text) {
    for (const std::string command : {"observe", "prune"}) {
      const auto result = scene.Run(command, {"--cri", fake.endpoint()});
      BOOST_TEST(result.exit_code == code, command << ": " << result.err);
      BOOST_TEST(Has(result, text));
      // Neither gRPC nor protobuf adds to it.
      BOOST_TEST(std::count(result.err.begin(), result.err.end(), '\n') == 2, result.err);
      BOOST_TEST(result.err.starts_with("error: "), result.err);
      BOOST_TEST(result.out == "");
    }
    BOOST_TEST(Dump(scene) == before);
  };
  refused(2, "does not serve runtime.v1.ImageService/ListImages");
  fake.Fail("ListImages", 14, "half \x1b[31m started");
  refused(3, "started");
  auto list = ManyImages(1);
  std::string bytes = list.SerializeAsString();
  bytes[bytes.find("registry")] = '\xff';
  fake.Answer("ListImages", bytes);
  refused(2, "UTF-8");
  fake.Fail("Version", 12, "unknown service runtime.v1.RuntimeService");
  refused(2, "CRI v1");
  fake.Stop();
  refused(3, "is not there");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
