// `waybill preview` changes nothing, and keeps nothing of a Secret. What it answers:
// transcripts/preview.txt.

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "store/base/options.h"
#include "tests/support/cli_store.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"
#include "waybill/waybill.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(preview)

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

std::string Base64(const std::string& bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  out.pop_back();
  return out;
}

Json SecretJson(const std::string& namespace_name, const std::string& name, const Json& auths) {
  return {
      {"kind", "Secret"},
      {"metadata",
       {{"namespace", namespace_name}, {"name", name}, {"uid", "uid-" + namespace_name + name}}},
      {"type", "kubernetes.io/dockerconfigjson"},
      {"data", {{".dockerconfigjson", Base64(Json{{"auths", auths}}.dump())}}}};
}

Json ListOf(const std::vector<Json>& items) { return {{"kind", "List"}, {"items", items}}; }

// A store with one pod that may use its image, and the files that a preview of it needs.
struct Scene {
  Scene() {
    BOOST_TEST(store.Start().exit_code == 0);
    const Json auths = {{"registry.example.com", {{"username", "u"}, {"password", kPassword}}}};
    WriteFile(store / "secrets.json", ListOf({SecretJson("x", "pull-secret-name", auths)}).dump());
    WriteFile(store / "pods.json", pods().dump());
    WriteFile(store / "images.json",
              R"({"images":[{"id":"ref","repoTags":["registry.example.com/app:v1"]}]})");
    const std::string hash = Must(HashCredentials({.username = "u", .password = kPassword}));
    const CommandResult pulled =
        store.Run("pulled", {"--image", "registry.example.com/app:v1", "--image-ref", "ref",
                             "--secret", "x/other/uid/" + hash});
    BOOST_TEST(pulled.exit_code == 0, pulled.err);
  }
  static Json pods() {
    return ListOf(
        {{{"kind", "Pod"},
          {"metadata", {{"namespace", "x"}, {"name", "p"}, {"uid", "u"}}},
          {"spec",
           {{"nodeName", "node"},
            {"imagePullSecrets", {{{"name", "pull-secret-name"}}}},
            {"containers", {{{"name", "app"}, {"image", "registry.example.com/app:v1"}}}}}}}});
  }
  Strings Flags() const {
    return {"--pods",   store / "pods.json",   "--secrets", store / "secrets.json",
            "--images", store / "images.json", "--policy",  "AlwaysVerify"};
  }
  void Preview(int exit_code = 0) const {
    const CommandResult result = store.Run("preview", Flags());
    BOOST_TEST(result.exit_code == exit_code, result.out << result.err);
    BOOST_TEST(result.out.find("runs") != std::string::npos, result.out);
  }

  static constexpr const char* kPassword = "correct-horse-battery-staple";
  CliStore store;
};

}  // namespace

// But for the slot of a reader, where there is a lock.mdb.
BOOST_FIXTURE_TEST_CASE(nothing_is_changed, Scene) {
  const fs::path lock = store / "store/lock.mdb";
  const auto expect_unchanged = [&] {
    auto before = EverythingIn(store / "store");
    const auto witness = ReadFile(store / "witness");
    Preview();
    auto after = EverythingIn(store / "store");
    BOOST_TEST(before.erase("lock.mdb") == after.erase("lock.mdb"));
    BOOST_TEST((after == before));
    BOOST_TEST(ReadFile(store / "witness") == witness);
  };
  const auto open = [&] {
    return Must(NodeStore::Open({.directory = store.store(), .witness = Witness::Remembered()}));
  };
  const auto owner = open();
  expect_unchanged();
  Must(owner->Close());
  expect_unchanged();
  fs::remove(lock);
  expect_unchanged();
  // An owner is not kept out afterwards.
  Must(open()->Close());
}

// Whether the memory of a process holds `needle`. False, too, if it can't be read.
bool InMemory(pid_t pid, const std::string& needle) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  const int memory = open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_RDONLY);
  bool found = false;
  for (std::string line; std::getline(maps, line) && !found;) {
    unsigned long first = 0;
    unsigned long last = 0;
    char writable = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx r%c", &first, &last, &writable) != 3) continue;
    if (writable != 'w') continue;
    std::string bytes(last - first, '\0');
    const ssize_t got = pread(memory, bytes.data(), bytes.size(), static_cast<off_t>(first));
    if (got > 0)
      found = bytes.substr(0, static_cast<std::size_t>(got)).find(needle) != std::string::npos;
  }
  close(memory);
  return found;
}

BOOST_FIXTURE_TEST_CASE(nothing_of_a_secret_stays_in_memory, Scene) {
  const fs::path fifo = store / "fifo";
  BOOST_TEST_REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  // Many Secrets, so that buffers grow while they are read.
  std::vector<Json> secrets;
  for (int i = 0; i < 300; ++i) {
    const Json auths = {{"registry.example.com",
                         {{"username", "u"},
                          {"password", kPassword},
                          {"auth", Base64("user:5taple-battery-horse")}}},
                        {"other.example.com", {{"username", "u"}, {"password", kPassword}}}};
    secrets.push_back(SecretJson("x", "pull-secret-name" + std::to_string(i), auths));
  }
  WriteFile(store / "secrets.json", ListOf(secrets).dump(4));
  Strings command = {WAYBILL_CLI, "preview",     "--store",   store.store(),
                     "--pods",    fifo.string(), "--secrets", (store / "secrets.json").string()};
  RunningCommand running(command);
  // Returns once the other side reads pods: it has read the Secrets then.
  const int pods = open(fifo.c_str(), O_WRONLY);
  const std::string payload = secrets[0]["data"][".dockerconfigjson"];
  // What stays is found, so that the search works.
  BOOST_TEST_REQUIRE(InMemory(running.pid(), "pull-secret-name299"));
  for (const std::string& piece :
       {std::string(kPassword), payload.substr(40, 24), Base64("user:5taple-battery-horse"),
        std::string("5taple-battery-horse")}) {
    BOOST_TEST(!InMemory(running.pid(), piece), piece);
  }
  const std::string none = R"({"items":[]})";
  BOOST_TEST(write(pods, none.data(), none.size()) == static_cast<ssize_t>(none.size()));
  close(pods);
  BOOST_TEST(running.Wait().exit_code == 0);
}

// With 1 GiB of address space: a list that is too long is refused before it is read whole.
BOOST_FIXTURE_TEST_CASE(long_lists_take_bounded_memory, Scene) {
  const std::string list = store / "long.json";
  const auto run = [&](const std::string& flag) {
    const std::string other = flag == "--pods" ? "--secrets" : "--pods";
    const std::string file = (store / (other == "--pods" ? "pods.json" : "secrets.json")).string();
    return RunCommand({"/bin/bash", "-c",
                       R"(ulimit -v 1048576; exec "$0" preview --store "$1" "$2" "$3" "$4" "$5")",
                       WAYBILL_CLI, store.store(), flag, list, other, file});
  };
  WriteFile(list, R"({"items":[)");
  fs::resize_file(list, std::uintmax_t{200} << 20U);
  for (const char* flag : {"--pods", "--secrets"}) {
    const CommandResult result = run(flag);
    BOOST_TEST(result.exit_code == 2, result.exit_code);
    BOOST_TEST(result.err.find("has more than 67108864 bytes") != std::string::npos, result.err);
    BOOST_TEST(result.err.find("--field-selector") != std::string::npos, result.err);
  }
  // As long as may be, of values as short as may be.
  std::string values = R"({"items":[0)";
  while (values.size() < (std::size_t{60} << 20U)) values += ",0";
  WriteFile(list, values + "]}");
  const CommandResult result = run("--pods");
  BOOST_TEST(result.exit_code == 2, result.exit_code << result.err);
  BOOST_TEST(result.err.find("has more than") != std::string::npos, result.err);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
