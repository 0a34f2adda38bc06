// What the command writes on a terminal: colours, and no line wider than it.

#include <boost/test/unit_test.hpp>
#include <sstream>
#include <string>

#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(terminal)

namespace {

// Runs `command` on a terminal with 80 columns. Standard error goes there, too.
std::string OnTerminal(const std::string& command, const std::string& environment = "TERM=xterm") {
  const std::string inside = "stty cols 80; " + environment + " '" WAYBILL_CLI "' " + command;
  const CommandResult result = RunCommand({"/usr/bin/script", "-qec", inside, "/dev/null"}, "");
  std::string out = result.out;
  std::erase(out, '\r');
  return out;
}

// Columns, without what steers the terminal.
std::size_t WidthOf(const std::string& line) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = line.find('m', i);
      if (i == std::string::npos) break;
    } else if ((static_cast<unsigned char>(line[i]) & 0xC0U) != 0x80U) {
      ++width;
    }
  }
  return width;
}

}  // namespace

BOOST_AUTO_TEST_CASE(tables_fit_and_are_coloured_unless_somebody_minds) {
  const TempDir scratch;
  const std::string store = (scratch.path() / "store").string();
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), WAYBILL_CLI);
    arguments.insert(arguments.end(), {"--store", store});
    BOOST_TEST(RunCommand(arguments).exit_code == 0);
  };
  run({"start", "--no-witness"});
  const std::string ref = "sha256:" + std::string(64, 'a');
  const std::string image = "registry.example.com/a-team/" + std::string(100, 'x');
  run({"pulled", "--image", image, "--image-ref", ref, "--secret", "team/pull/uid-1/hash"});
  const std::string list = "list --store '" + store + "'";

  const std::string table = OnTerminal(list);
  std::istringstream lines(table);
  int seen = 0;
  for (std::string line; std::getline(lines, line); ++seen) {
    BOOST_TEST(WidthOf(line) <= 80U, line);
  }
  BOOST_TEST(seen == 2);
  BOOST_TEST(table.starts_with("\x1b[1mIMAGE REF"), table);
  BOOST_TEST(table.find("sha256:aaaaaaaaaaaa ") != std::string::npos, table);
  BOOST_TEST(table.find("…") != std::string::npos, table);
  BOOST_TEST(table.find(image) == std::string::npos, table);
  // Whoever wants all of it gets it.
  const std::string whole = OnTerminal(list + " --no-trunc");
  BOOST_TEST(whole.find(ref) != std::string::npos, whole);
  BOOST_TEST(whole.find(image) != std::string::npos, whole);

  const std::string error = OnTerminal("list --store '" + store + "/absent'");
  BOOST_TEST(error.starts_with("\x1b[1;31merror:\x1b[0m "), error);
  for (const char* plain : {"TERM=xterm NO_COLOR=1", "TERM=dumb", "-u TERM"}) {
    const std::string environment = std::string("env ") + plain;
    BOOST_TEST(OnTerminal(list, environment).find('\x1b') == std::string::npos, plain);
    BOOST_TEST(OnTerminal("nonsense", environment).find('\x1b') == std::string::npos, plain);
  }
  // An empty one does not count (no-color.org).
  BOOST_TEST(OnTerminal(list, "env TERM=xterm NO_COLOR=").find('\x1b') != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
