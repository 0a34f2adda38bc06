// A configuration file that says all that a node may say breaks no call that is right without it.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(settings)

namespace {

constexpr const char* kImages =
    R"({"images":[{"id":"sha256:4873874c08efc72e9729683a83ffbb7502ee729e9a5ac097723806ea7fa13517","repoTags":["nginx:1"]}]})";
constexpr const char* kPods = R"({"items":[]})";

// Each line is a call beside `--store STORE`; FILE is in the scratch directory, TOKEN is drawn.
constexpr const char* kCalls[] = {
    "start --images FILE/images.json",
    "start --no-witness --images FILE/images.json",
    "start --witness FILE/other-witness --images FILE/images.json",
    "start --images FILE/images.json --policy AlwaysVerify",
    "start --images FILE/images.json --no-user-namespaces",
    "start --images FILE/images.json --subuids FILE/ids --subgids FILE/ids",
    "start --images FILE/images.json --dry-run-in FILE/trial --max-age 30d",
    "check --image nginx --image-ref sha256:1",
    "check --image nginx --images FILE/images.json --image-ref "
    "sha256:4873874c08efc72e9729683a83ffbb7502ee729e9a5ac097723806ea7fa13517",
    "explain --image nginx --image-ref sha256:1",
    "explain --image nginx --image-ref sha256:1 --policy NeverVerifyAllowlistedImages --allow "
    "nginx",
    "preview --pods FILE/pods.json --node n --policy AlwaysVerify",
    "preview --pods FILE/pods.json --node n",
    "intent --image nginx",
    "pulled --image nginx --image-ref sha256:2",
    "failed --image other",
    "observe --begin",
    "observe --images FILE/images.json --token TOKEN",
    "observe --images FILE/images.json --token TOKEN --short-names anywhere",
    "prune --begin",
    "prune --images FILE/images.json --token TOKEN",
    "preload",
    "preload add sha256:4873874c08efc72e9729683a83ffbb7502ee729e9a5ac097723806ea7fa13517 --reason "
    "r",
    "pulls",
    "forget list",
    "forget namespace absent",
    "reconcile --begin",
    "list",
    "list --intents",
    "show nginx",
    "dump",
    "call ListPulls",
    "stats",
    "metrics",
    "verify",
    "trust",
    "trust --clear --reason r --images FILE/images.json",
    "runtimes",
    "backup",
    "restore",
    "export --kubelet-dir FILE/exported --images FILE/images.json",
    "migrate --dry-run",
    "userns list",
    "userns pool",
    "userns release pod-1",
    "userns cleanup --begin",
    "userns owner 70000",
    "userns get pod-3 --host-users true",
    "guard --status",
    "guard --status --kubelet-dir FILE/kubelet",
    "pulls drop 999 --reason r",
};

std::vector<std::string> WordsOf(std::string call, const std::string& directory,
                                 const std::string& token) {
  std::vector<std::string> words = {WAYBILL_CLI};
  std::size_t at = 0;
  while (at < call.size()) {
    const std::size_t end = std::min(call.find(' ', at), call.size());
    std::string word = call.substr(at, end - at);
    if (word.starts_with("FILE")) word = directory + word.substr(4);
    if (word == "TOKEN") word = token;
    words.push_back(word);
    at = end + 1;
  }
  return words;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_full_file_breaks_no_call) {
  // Once without a file, once with: in a directory of its own each, so that both find the same.
  std::vector<CommandResult> plain;
  for (const bool configured : {false, true}) {
    const TempDir scratch;
    const std::string directory = scratch.path().string();
    WriteFile(directory + "/images.json", kImages);
    WriteFile(directory + "/pods.json", kPods);
    WriteFile(directory + "/ids", "0: kubelet 131072 7864320\n");
    WriteFile(directory + "/kubelet.yaml",
              "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n");
    std::filesystem::create_directories(directory + "/kubelet/image_manager/pulled");
    std::filesystem::create_directories(directory + "/exported");
    std::string config = "none";
    if (configured) {
      config = directory + "/config.toml";
      WriteFile(
          config,
          "store = \"" + directory + "/store\"\nkubelet-dir = \"" + directory +
              "/kubelet\"\nwitness = \"" + directory +
              "/witness\"\ncri = \"unix:///nonexistent/runtime.sock\"\n"
              "kubelet-config = \"" +
              directory +
              "/kubelet.yaml\"\npool = \"131072:7864320\"\nids-per-pod = 65536\n"
              "max-pods = 100\nshort-names = \"docker.io\"\nmax-age = \"30d\"\n"
              "wait-runtime = 1\nmetrics-file = \"" +
              directory + "/metrics\"\non-hole = \"true\"\n");
    }
    std::size_t i = 0;
    for (const std::string call : kCalls) {
      std::string token;
      const bool is_guard = call.starts_with("guard");
      if (call.find("TOKEN") != std::string::npos) {
        token =
            RunCommand({WAYBILL_CLI, "observe", "--begin", "--store", directory + "/store"}).out;
        token.pop_back();
      }
      std::vector<std::string> words = WordsOf(call, directory, token);
      words.insert(words.end(), {"--config", config});
      if (!configured && !is_guard) words.insert(words.end(), {"--store", directory + "/store"});
      if (!configured && is_guard && call.find("--kubelet-dir") == std::string::npos) {
        words.insert(words.end(), {"--kubelet-dir", directory + "/kubelet"});
      }
      CommandResult result = RunCommand(words);
      if (!configured) {
        BOOST_TEST(result.exit_code != 2, call << ": " << result.err);
        plain.push_back(std::move(result));
        continue;
      }
      BOOST_TEST(result.exit_code == plain[i].exit_code, call << ": " << result.err);
      ++i;
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
