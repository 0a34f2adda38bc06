// Pages whose commands are run, as their readers run them. Each <page>.bash beside this file names
// its page in its first line (`# page: docs/operations.md`) and makes what the page speaks of:
//
//   before             runs before each section
//   before_<heading>   runs before the commands of that section: the situation that it is about.
//   The
//                      name is the heading in lower case, with _ for what is neither letter nor
//                      digit. It ends with 77 where the machine can't make it; the section is
//                      skipped then.
//   after              runs after each section
//
// A section (`## `) has a directory of its own, and so its own /var, /etc, /run and /mnt: these
// become directories there in what is run. Behind `$ ` in its ```console blocks stands a command
// (`> ` goes on), below it what it writes, in which … stands for any text, or alone on a line for
// any lines; then its exit code in brackets where that is not 0. A command with nothing below it
// may write anything. A variable in lower case keeps its value in the section. An argument that
// ends with … is completed from the lines of `whole`. A container runtime answers at
// /run/containerd/containerd.sock, with the lists in images.json and info.json. The command's
// settings are those of /etc/waybill/config.toml, if before made that.

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <regex>
#include <string>
#include <vector>

#include "tests/cri/fake_runtime.h"
#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(pages)

namespace {

using Lines = std::vector<std::string>;

const std::filesystem::path kSource = WAYBILL_SOURCE;
constexpr std::string_view kAny = "…";

struct Step {
  std::string command;
  Lines says;
  int exit_code = 0;
};
struct Section {
  std::string heading;
  std::vector<Step> steps;
};

std::vector<Section> SectionsOf(const std::string& page) {
  static const std::regex exit_code(R"(\[(\d+)\])");
  std::vector<Section> sections = {{"top", {}}};
  bool console = false;
  bool in_command = false;
  for (const std::string& line : LinesOf(page)) {
    if (line.starts_with("```")) {
      console = !console && line == "```console";
      in_command = false;
    } else if (!console) {
      if (line.starts_with("## ")) sections.push_back({line.substr(3), {}});
    } else if (line.starts_with("$ ")) {
      sections.back().steps.push_back({line.substr(2), {}});
      in_command = true;
    } else if (in_command && line.starts_with("> ")) {
      sections.back().steps.back().command += "\n" + line.substr(2);
    } else if (!sections.back().steps.empty()) {
      Step& step = sections.back().steps.back();
      in_command = false;
      if (std::smatch code; std::regex_match(line, code, exit_code)) {
        step.exit_code = std::stoi(code[1]);
      } else {
        step.says.push_back(line);
      }
    }
  }
  std::erase_if(sections, [](const Section& section) { return section.steps.empty(); });
  return sections;
}

bool LineFits(std::string_view expected, std::string_view line) {
  const std::size_t any = expected.find(kAny);
  if (any == std::string_view::npos) return expected == line;
  if (!line.starts_with(expected.substr(0, any))) return false;
  expected.remove_prefix(any + kAny.size());
  for (std::size_t from = any; from <= line.size(); ++from) {
    if (LineFits(expected, line.substr(from))) return true;
  }
  return false;
}

bool Fits(const Lines& expected, std::size_t i, const Lines& lines, std::size_t j) {
  if (i == expected.size()) return j == lines.size();
  if (expected[i] == kAny) {
    for (std::size_t from = j; from <= lines.size(); ++from) {
      if (Fits(expected, i + 1, lines, from)) return true;
    }
    return false;
  }
  return j < lines.size() && LineFits(expected[i], lines[j]) && Fits(expected, i + 1, lines, j + 1);
}

std::string FunctionOf(const std::string& heading) {
  std::string name = "before_";
  for (const char c : heading) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : plain ? c : '_';
  }
  return name;
}

constexpr const char* kKeepVariables = R"bash(
if [ -e "$D/variables" ]; then . "$D/variables"; fi
trap 'compgen -v | grep "^[a-z]" | while read -r v; do declare -p "$v"; done >"$D/variables"' EXIT
)bash";

class Shell {
 public:
  explicit Shell(const std::filesystem::path& set_up)
      : begin_("cd '" + dir_.path().string() +
               "' && WAYBILL_CLI='" WAYBILL_CLI "' FIXTURES='" WAYBILL_FIXTURES "' D='" +
               dir_.path().string() + "'\n" + ReadFile(kSource / "tests/docs/prelude.bash") +
               ReadFile(set_up) + kKeepVariables) {
    const auto socket = dir_ / "run/containerd/containerd.sock";
    for (const char* folder : {"var/lib", "etc", "mnt"}) {
      std::filesystem::create_directories(dir_ / folder);
    }
    std::filesystem::create_directories(socket.parent_path());
    std::filesystem::create_symlink(runtime_.path(), socket);
    runtime_.Answer("Version", Version("containerd", "2.1.0"));
  }
  ~Shell() { Run("after\n"); }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  CommandResult Run(const std::string& command) {
    const auto list = dir_ / "images.json";
    const auto info = dir_ / "info.json";
    if (std::filesystem::exists(list)) runtime_.Answer("ListImages", ImagesFrom(ReadFile(list)));
    if (std::filesystem::exists(info)) runtime_.Answer("Status", StatusFrom(ReadFile(info)));
    return RunCommand({"/bin/bash", "-c", begin_ + command});
  }
  std::string Here(const std::string& command) const {
    static const std::regex absolute(R"re((^|[\s='">(:]|unix://)(/(?:var|etc|run|mnt)/))re");
    return std::regex_replace(command, absolute, "$1" + dir_.path().string() + "$2");
  }
  std::string There(const std::string& text) const {
    return Replaced(text, dir_.path().string(), "");
  }

 private:
  FakeRuntime runtime_;
  TempDir dir_;
  std::string begin_;
};

// What a section shows is checked to its end, so that one run says all that is wrong with a page.
void PlaySection(const Section& section, const std::string& page,
                 const std::filesystem::path& set_up) {
  const std::string where = page + ": " + section.heading;
  Shell shell(set_up);
  for (const std::string& before : {std::string("before"), FunctionOf(section.heading)}) {
    const auto made =
        shell.Run("set -e\nif declare -F " + before + " >/dev/null; then " + before + "; fi\n");
    if (made.exit_code == 77) {
      std::cout << "*** SKIPPED: " << where << ": " << made.out << "***" << std::endl;
      return;
    }
    BOOST_TEST_REQUIRE(made.exit_code == 0,
                       where << ": " << before << ": " << made.out << made.err);
  }
  for (const Step& step : section.steps) {
    const auto result = shell.Run(shell.Here(step.command) + "\n");
    const Lines said = LinesOf(shell.There(result.out + result.err));
    const bool fits =
        result.exit_code == step.exit_code && (step.says.empty() || Fits(step.says, 0, said, 0));
    std::string all;
    for (const std::string& line : said) all += line + "\n";
    BOOST_TEST(fits, where << ": $ " << step.command << "\nsays:\n"
                           << all << "[" << result.exit_code << "]");
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_pages_show_is_what_happens) {
  // Where this is allowed, a section may mount what it needs; the mounts end with this process.
  if (::geteuid() == 0 && ::unshare(CLONE_NEWNS) == 0) {
    BOOST_TEST(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  } else {
    ::setenv("WAYBILL_NO_MOUNTS", "1", 1);
  }
  // WAYBILL_PAGE=operations: that page alone.
  const char* only = std::getenv("WAYBILL_PAGE");
  int pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "tests/docs")) {
    if (entry.path().extension() != ".bash" || entry.path().stem() == "prelude") continue;
    if (only != nullptr && entry.path().stem() != only) continue;
    const std::string first = LinesOf(ReadFile(entry.path())).at(0);
    BOOST_TEST_REQUIRE(first.starts_with("# page: "), entry.path());
    const auto sections = SectionsOf(ReadFile(kSource / first.substr(8)));
    BOOST_TEST(!sections.empty(), first);
    for (const Section& section : sections) PlaySection(section, first.substr(8), entry.path());
    ++pages;
  }
  BOOST_TEST(pages > 0);
}

BOOST_AUTO_TEST_CASE(each_alert_has_its_place) {
  const std::string page = ReadFile(kSource / "docs/operations.md");
  int alerts = 0;
  for (const std::string& line : LinesOf(ReadFile(kSource / "monitoring/waybill.rules.yml"))) {
    const std::size_t at = line.find("- alert: ");
    if (at == std::string::npos) continue;
    ++alerts;
    BOOST_TEST(page.find("`" + line.substr(at + 9) + "`") != std::string::npos, line);
  }
  BOOST_TEST(alerts > 0);
}

BOOST_AUTO_TEST_CASE(a_page_that_is_wrong_is_noticed) {
  const Lines said = {"a 1", "b 2"};
  BOOST_TEST(Fits({"a 1", "b 2"}, 0, said, 0));
  BOOST_TEST(Fits({"…", "b 2"}, 0, said, 0));
  BOOST_TEST(Fits({"a …", "b …2"}, 0, said, 0));
  BOOST_TEST(!Fits({"…", "a 1"}, 0, said, 0));
  BOOST_TEST(!Fits({"a 1", "c…"}, 0, said, 0));
  BOOST_TEST(!Fits({"a 1", "b 2", "more"}, 0, said, 0));

  const auto sections =
      SectionsOf("```console\n$ a\n```\n## B\n```console\n$ c\n> d\n…\n[3]\n```\n");
  BOOST_TEST_REQUIRE(sections.size() == 2U);
  BOOST_TEST(sections[1].heading == "B");
  BOOST_TEST(sections[1].steps.at(0).command == "c\nd");
  BOOST_TEST(sections[1].steps.at(0).says == Lines{"…"}, boost::test_tools::per_element());
  BOOST_TEST(sections[1].steps.at(0).exit_code == 3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
