// Manual pages and completion: made from the flags that the commands declare.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(manual)

namespace {

CommandResult InShell(const std::string& shell, const std::string& script) {
  return RunCommand(
      {"/usr/bin/env",
       "PATH=" + std::filesystem::path(WAYBILL_CLI).parent_path().string() + ":/usr/bin:/bin",
       shell, "-c", script});
}

std::vector<std::string> WordsOf(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Of `waybill COMMAND --help`.
std::string HelpOf(const std::string& command) {
  std::vector<std::string> words = WordsOf(command);
  words.emplace_back("--help");
  return RunWaybill(words).out;
}

// The names under headings that `fits`.
std::vector<std::string> NamesIn(const std::string& help,
                                 bool (*fits)(const std::string& heading)) {
  std::vector<std::string> names;
  std::string heading;
  for (const std::string& line : LinesOf(help)) {
    if (line.ends_with(":")) heading = line;
    if (line.size() > 2 && line.starts_with("  ") && line[2] >= 'a' && line[2] <= 'z' &&
        fits(heading)) {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return names;
}

std::vector<std::string> ActionsOf(const std::string& command) {
  return NamesIn(HelpOf(command), [](const std::string& heading) { return heading == "Actions:"; });
}

// "list", "userns", "userns get".
std::vector<std::string> Commands() {
  std::vector<std::string> commands;
  for (const std::string& command :
       NamesIn(RunWaybill({"--help"}).out, [](const std::string&) { return true; })) {
    commands.push_back(command);
    for (const std::string& action : ActionsOf(command)) commands.push_back(command + " " + action);
  }
  return commands;
}

// What bash offers after `line`.
std::string InBash(const std::string& line) {
  const CommandResult result =
      InShell("bash", "eval \"$(waybill completion bash)\"; COMP_LINE='" + line +
                          "'; COMP_POINT=${#COMP_LINE}; _waybill; echo \"${COMPREPLY[*]}\"");
  BOOST_TEST(result.err == "");
  return result.out;
}

bool HasShell(const std::string& shell) {
  if (std::filesystem::exists("/usr/bin/" + shell)) return true;
  BOOST_TEST_MESSAGE("skipped: " << shell << " is not installed");
  return false;
}

}  // namespace

// An example that does not work teaches nothing: its flags are those of the command.
BOOST_AUTO_TEST_CASE(each_command_has_examples_with_flags_that_it_has) {
  const std::vector<std::string> commands = Commands();
  BOOST_TEST(commands.size() > 60U);
  for (const std::string& command : commands) {
    const std::string help = HelpOf(command);
    if (help.find("\nActions:\n") != std::string::npos) continue;
    std::size_t examples = 0;
    bool inside = false;
    for (const std::string& line : LinesOf(help)) {
      if (line.empty()) inside = false;
      const std::size_t call = line.find("waybill " + command);
      if (inside && call != std::string::npos) {
        ++examples;
        std::istringstream words(line.substr(call));
        for (std::string word; words >> word;) {
          if (word == "--") break;
          if (!word.starts_with("--")) continue;
          word = word.substr(0, word.find_first_of(")=;"));
          const bool has = help.find("  " + word + " ") != std::string::npos ||
                           help.find("," + word + " ") != std::string::npos;
          BOOST_TEST(has, command << " has no " << word << ": " << line);
        }
      }
      if (line == "Examples:") inside = true;
    }
    BOOST_TEST(examples > 0U, command);
  }
}

BOOST_AUTO_TEST_CASE(an_error_says_where_its_words_are_explained) {
  const CommandResult page = RunWaybill({"man", "glossary"});
  for (const char* word :
       {"distrust", "gap", "ledger", "open pull", "held pod", "quarantine", "truth", "witness"}) {
    BOOST_TEST(page.out.find(word) != std::string::npos, word);
  }
  const TempDir scratch;
  const std::string file = (scratch.path() / "other").string();
  std::ofstream(file) << "not a witness";
  const CommandResult refused =
      RunWaybill({"start", "--store", (scratch.path() / "store").string(), "--witness", file});
  BOOST_TEST(refused.exit_code == 2);
  BOOST_TEST(refused.err.find("see: waybill man glossary (") != std::string::npos, refused.err);
  BOOST_TEST(refused.err.find("witness)") != std::string::npos, refused.err);
}

BOOST_AUTO_TEST_CASE(each_command_has_a_page_that_mandoc_has_nothing_against) {
  const TempDir scratch;
  const std::string directory = scratch.path().string();
  BOOST_TEST(RunWaybill({"man", "--all", directory}).exit_code == 0);
  std::vector<std::string> check = {"/usr/bin/mandoc", "-Tlint", "-Wwarning"};
  for (const std::string& command : Commands()) {
    std::string name = command;
    std::replace(name.begin(), name.end(), ' ', '-');
    const std::string page = directory + "/waybill-" + name + ".1";
    BOOST_TEST(std::filesystem::exists(page), page);
    check.push_back(page);
    // The help and the page have the same flags.
    const std::string text = ReadFile(page);
    for (const std::string& line : LinesOf(HelpOf(command))) {
      if (line == "Options of every command:") break;
      if (!line.starts_with("  --")) continue;
      std::string flag;
      for (const char c : line.substr(2, line.find_first_of(" ,", 2) - 2)) {
        flag += c == '-' ? "\\-" : std::string(1, c);
      }
      BOOST_TEST(text.find(".It Sy " + flag) != std::string::npos, page << ": " << flag);
    }
  }
  BOOST_TEST(check.size() > 60);
  check.push_back(directory + "/waybill.1");
  check.push_back(directory + "/waybill-config.5");
  const CommandResult lint = RunCommand(check);
  BOOST_TEST(lint.exit_code == 0, lint.out << lint.err);
  BOOST_TEST(lint.out == "");
}

BOOST_AUTO_TEST_CASE(the_configuration_file_of_the_package_is_right_with_all_that_it_offers) {
  const TempDir scratch;
  std::string config;
  int settings = 0;
  for (std::string line : LinesOf(ReadFile(WAYBILL_FIXTURES "/../../packaging/config.toml"))) {
    const bool offered = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    if (offered) line.erase(0, 1);
    if (!line.empty() && line[0] != '#') ++settings;
    config += line + "\n";
  }
  BOOST_TEST(settings > 5);
  const std::string kubelet = "/var/lib/kubelet/config.yaml";
  const auto at = config.find(kubelet);
  BOOST_REQUIRE(at != std::string::npos);
  const std::string own = (scratch.path() / "kubelet.yaml").string();
  config.replace(at, kubelet.size(), own);
  WriteFile(own, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n");
  const std::string path = (scratch.path() / "config.toml").string();
  WriteFile(path, config);
  const CommandResult result =
      RunWaybill({"userns", "--store", "absent", "list", "--config", path});
  BOOST_TEST(result.exit_code == 3, result.err);
}

BOOST_AUTO_TEST_CASE(every_flag_is_completed) {
  for (const std::string& command : Commands()) {
    const std::string line = "waybill " + command + " --";
    const std::string offered = RunWaybill({"__complete", line}).out;
    for (const std::string& help : LinesOf(HelpOf(command))) {
      if (!help.starts_with("  --")) continue;
      const std::string flag = help.substr(2, help.find_first_of(" ,", 2) - 2);
      BOOST_TEST(offered.find("\n" + flag) != std::string::npos, command << " " << flag);
    }
  }
}

BOOST_AUTO_TEST_CASE(bash_gets_commands_flags_values_and_what_the_store_holds) {
  const TempDir scratch;
  const std::string store = (scratch.path() / "store").string();
  BOOST_TEST(RunWaybill({"start", "--store", store, "--no-witness"}).exit_code == 0);
  for (const char* image :
       {"registry.example.com/x/foo:v1", "$(touch pwned)", "a b", "nginx:1.27"}) {
    RunWaybill({"pulled", "--store", store, "--image", image, "--image-ref", image});
  }
  BOOST_TEST(InBash("waybill pre") == "preload preview\n");
  BOOST_TEST(InBash("waybill --store x pre") == "preload preview\n");
  BOOST_TEST(InBash("waybill start --rules ") == "strict kubelet\n");
  BOOST_TEST(InBash("waybill start --rules=k") == "kubelet\n");
  BOOST_TEST(InBash("waybill userns re") == "release\n");
  BOOST_TEST(InBash("waybill check --store " + store + " --image-ref ng") == "nginx:1.27\n");
  // Where bash breaks words at ':', it gets what stands behind.
  BOOST_TEST(InBash("waybill check --store " + store + " --image-ref nginx:1") == "1.27\n");
  // A name from the store that a shell would run is not offered.
  BOOST_TEST(InBash("waybill check --store " + store + " --image-ref ") ==
             "nginx:1.27 registry.example.com/x/foo:v1\n");
  // What a command takes: refs, with --intent the image strings of open pulls; pages.
  RunWaybill({"intent", "--store", store, "--image", "busybox"});
  BOOST_TEST(InBash("waybill show --store " + store + " ng") == "nginx:1.27\n");
  BOOST_TEST(InBash("waybill show --store " + store + " b") == "\n");
  BOOST_TEST(InBash("waybill show --store " + store + " --intent ") == "busybox\n");
  BOOST_TEST(InBash("waybill man glo") == "glossary\n");
  BOOST_TEST(InBash("waybill man check") == "check\n");
  BOOST_TEST(RunWaybill({"__complete", "waybill list --store "}).out == "directories\n");
  BOOST_TEST(RunWaybill({"__complete", "waybill hash --registry x --bogus "}).exit_code == 0);
}

BOOST_AUTO_TEST_CASE(a_command_with_actions_offers_them_and_each_has_its_own_flags) {
  BOOST_TEST(InBash("waybill userns ") == "get release list cleanup pool adopt owner\n");
  BOOST_TEST(InBash("waybill userns --store x cl") == "cleanup\n");
  BOOST_TEST(InBash("waybill userns get --l") == "--length\n");
  BOOST_TEST(InBash("waybill userns release --l") == "--lost\n");
  BOOST_TEST(InBash("waybill streaming prepare ") == "exec attach portForward\n");
  BOOST_TEST(InBash("waybill guard --policy A") == "AlwaysVerify\n");
  const std::string get = HelpOf("userns get");
  BOOST_TEST(get.find("  --length N") != std::string::npos);
  BOOST_TEST(get.find("--lost") == std::string::npos);
  // Flags stand before the command, between it and its action, and behind.
  for (const std::vector<std::string>& call : std::vector<std::vector<std::string>>{
           {"--host-users", "true", "userns", "get", "pod", "--store", "absent"},
           {"userns", "--host-users", "true", "get", "pod", "--store", "absent"},
           {"userns", "get", "--host-users=true", "pod", "--store", "absent"}}) {
    BOOST_TEST(RunWaybill(call).exit_code == 3);
  }
  BOOST_TEST(RunWaybill({"help", "userns", "get"}).out == get);
  BOOST_TEST(RunWaybill({"userns", "-h", "get"}).out == get);
  const CommandResult wrong = RunWaybill({"userns", "got", "pod"});
  BOOST_TEST(wrong.exit_code == 2);
  BOOST_TEST(wrong.err.find("the actions are get, release") != std::string::npos, wrong.err);
  BOOST_TEST(RunWaybill({"man", "userns", "get"}).out == RunWaybill({"man", "userns-get"}).out);
  BOOST_TEST(RunWaybill({"man", "userns"}).out.find(".It Xr waybill-userns-get 1") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(zsh_and_fish_get_the_same) {
  if (HasShell("fish")) {
    const CommandResult action =
        InShell("fish", "waybill completion fish | source; complete -C 'waybill userns ad'");
    BOOST_TEST(action.out.starts_with("adopt\t"), action.out << action.err);
  }
  if (HasShell("fish")) {
    const CommandResult fish =
        InShell("fish", "waybill completion fish | source; complete -C 'waybill list --quar'");
    BOOST_TEST(fish.out.starts_with("--quarantine\t"), fish.out << fish.err);
  }
  if (HasShell("zsh")) {
    const CommandResult zsh =
        InShell("zsh",
                "compdef() { :; }; compadd() { print -l -- $words; }; "
                "source <(waybill completion zsh); LBUFFER='waybill list --quar'; _waybill");
    BOOST_TEST(zsh.out == "--quarantine\n", zsh.out << zsh.err);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
