// Links between pages lead somewhere, what a page says of ./dev is there, and commands are run.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(links)

namespace {

const std::filesystem::path kTree = WAYBILL_SOURCE;

std::vector<std::filesystem::path> Pages() {
  std::vector<std::filesystem::path> pages;
  for (auto entry = std::filesystem::recursive_directory_iterator(kTree);
       entry != std::filesystem::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename();
    if (entry->is_directory() && (name.starts_with(".") || name == "build")) {
      entry.disable_recursion_pending();
    } else if (entry->path().extension() == ".md") {
      pages.push_back(entry->path());
    }
  }
  return pages;
}

// The anchor that GitHub gives a heading.
std::string AnchorOf(const std::string& heading) {
  std::string anchor;
  for (const char c : std::regex_replace(heading, std::regex(R"(\[([^\]]*)\]\([^)]*\))"), "$1")) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 'A' && byte <= 'Z') {
      anchor += static_cast<char>(byte - 'A' + 'a');
    } else if (byte == ' ') {
      anchor += '-';
    } else if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
               byte == '_') {
      anchor += c;
    }
  }
  return anchor;
}

struct Page {
  std::set<std::string> anchors;
  std::vector<std::string> targets;
};

Page Parse(const std::string& text) {
  static const std::regex code(R"((`+)[^`]*\1)");
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  Page page;
  std::map<std::string, int> seen;
  bool fenced = false;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced) continue;
    if (const std::size_t level = line.find_first_not_of('#');
        level != 0 && level != std::string::npos && line[level] == ' ') {
      const std::string anchor = AnchorOf(line.substr(level + 1));
      const int before = seen[anchor]++;
      page.anchors.insert(before == 0 ? anchor : anchor + "-" + std::to_string(before));
    }
    // `code` may stand in a link's text, and there may be what looks like a link in code.
    const std::string plain = std::regex_replace(line, code, "code");
    for (auto at = std::sregex_iterator(plain.begin(), plain.end(), link);
         at != std::sregex_iterator(); ++at) {
      page.targets.push_back((*at)[1]);
    }
  }
  return page;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_leads_somewhere) {
  int links = 0;
  for (const auto& path : Pages()) {
    for (const std::string& target : Parse(ReadFile(path)).targets) {
      if (target.find("://") != std::string::npos || target.starts_with("mailto:")) continue;
      ++links;
      const std::size_t hash = target.find('#');
      const auto file = hash == 0 ? path : path.parent_path() / target.substr(0, hash);
      BOOST_TEST(std::filesystem::exists(file), path << " links to " << target);
      if (hash == std::string::npos || file.extension() != ".md") continue;
      if (!std::filesystem::exists(file)) continue;
      BOOST_TEST(Parse(ReadFile(file)).anchors.count(target.substr(hash + 1)) == 1U,
                 path << " links to " << target << ": no such heading");
    }
  }
  BOOST_TEST(links > 0);
}

BOOST_AUTO_TEST_CASE(each_developer_action_is_one) {
  static const std::regex action(R"(\./dev ([a-z][a-z-]*))");
  const std::string dev = ReadFile(kTree / "dev");
  int actions = 0;
  for (const auto& path : Pages()) {
    const std::string text = ReadFile(path);
    for (auto at = std::sregex_iterator(text.begin(), text.end(), action);
         at != std::sregex_iterator(); ++at) {
      ++actions;
      const std::string line = "\n" + (*at)[0].str();
      const bool there = dev.find(line + " ") != std::string::npos || (*at)[1] == "help";
      BOOST_TEST(there, path << ": " << (*at)[0].str() << " is no line of ./dev help");
    }
  }
  BOOST_TEST(actions > 0);
}

BOOST_AUTO_TEST_CASE(each_header_is_named_where_they_are_the_manual) {
  const std::string page = ReadFile(kTree / "docs/linking.md");
  for (const auto& entry : std::filesystem::directory_iterator(kTree / "store/include/waybill")) {
    const std::string name = entry.path().filename();
    BOOST_TEST(page.find(name) != std::string::npos, name);
  }
}

// pages_test.cc runs what has a file here.
BOOST_AUTO_TEST_CASE(each_page_with_commands_is_run) {
  std::set<std::string> run = {"bindings/go/README.md",  // builds Go, from the network
                               "tests/node/README.md"};  // makes real nodes
  for (const auto& entry : std::filesystem::directory_iterator(kTree / "tests/docs")) {
    if (entry.path().extension() != ".bash") continue;
    std::istringstream in(ReadFile(entry.path()));
    std::string first;
    std::getline(in, first);
    if (first.starts_with("# page: ")) run.insert(first.substr(8));
  }
  for (const auto& path : Pages()) {
    if (ReadFile(path).find("\n```console\n") == std::string::npos) continue;
    const std::string page = path.lexically_relative(kTree);
    BOOST_TEST(run.erase(page) == 1U, page << " has commands, and is not run");
  }
  BOOST_TEST(run.empty(), "these have no commands any more");
}

BOOST_AUTO_TEST_CASE(headings_and_links_are_found) {
  const Page page = Parse(
      "# The `waybill` command\n## list, show\n[a](b.md#c) `[x](y)`\n```\n# no\n```\n## list, "
      "show\n");
  BOOST_TEST(page.anchors.count("the-waybill-command") == 1U);
  BOOST_TEST(page.anchors.count("list-show") == 1U);
  BOOST_TEST(page.anchors.count("list-show-1") == 1U);
  BOOST_TEST(page.anchors.count("no") == 0U);
  BOOST_TEST(page.targets == std::vector<std::string>{"b.md#c"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
