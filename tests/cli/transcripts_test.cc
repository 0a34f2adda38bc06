// fixtures/transcripts/*.txt: what `waybill` says in a shell, one session a file, in a directory of
// its own. Behind `$ ` stands a command (bash; `> ` goes on), below it what it wrote to standard
// output, behind `! ` what to standard error, and its exit code in brackets where that is not 0.
// prelude.bash has what sessions share. WAYBILL_REWRITE=1 writes what this build says over them:
// read the difference before you commit it.

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>

#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(transcripts)

namespace {

std::string Lines(const std::string& text, const std::string& before) {
  std::string lines;
  for (const std::string& line : LinesOf(text)) lines += before + line + "\n";
  return lines;
}

std::string Said(const CommandResult& result, const std::filesystem::path& directory) {
  std::string said = Lines(result.out, "") + Lines(result.err, "! ");
  if (result.exit_code != 0) said += "[" + std::to_string(result.exit_code) + "]\n";
  said = Replaced(said, directory.string(), "DIR");
  const std::regex time(R"(20\d\d-?\d\d-?\d\dT\d\d:?\d\d:?\d\d(\.\d+)?Z(-\d+)?)");
  // What depends on the machine: since when it runs, and which boot this is.
  const std::regex token(R"(\b\d+\.\d+\.\d+\.[0-9a-f]{32}\b)");
  const std::regex boot(R"("endedAt":"\d+\.[0-9a-f]{32}")");
  said = std::regex_replace(said, token, "TOKEN");
  said = std::regex_replace(said, boot, R"("endedAt":"BOOT TIME")");
  return std::regex_replace(said, time, "TIME");
}

// The session as it goes now.
std::string Play(std::istream& in) {
  const TempDir scratch;
  const std::string prelude = "cd '" + scratch.path().string() + "' && WAYBILL_CLI='" +
                              WAYBILL_CLI + "' FIXTURES='" + WAYBILL_FIXTURES "'\n" +
                              ReadFile(WAYBILL_FIXTURES "/transcripts/prelude.bash");
  std::string played;
  std::string command;
  const auto run = [&] {
    if (command.empty()) return;
    played += Said(RunCommand({"/bin/bash", "-c", prelude + command}), scratch.path());
    command.clear();
  };
  for (std::string line; std::getline(in, line);) {
    const bool starts = line.starts_with("$ ");
    const bool goes_on = !command.empty() && line.starts_with("> ");
    if (starts || line.starts_with("# ")) run();
    if (starts || goes_on) command += line.substr(2) + "\n";
    if (starts || goes_on || line.starts_with("# ")) played += line + "\n";
  }
  run();
  return played;
}

}  // namespace

BOOST_AUTO_TEST_CASE(waybill_says_what_the_transcripts_say) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WAYBILL_FIXTURES "/transcripts")) {
    if (entry.path().extension() != ".txt") continue;
    const std::string expected = ReadFile(entry.path());
    std::istringstream in(expected);
    const std::string played = Play(in);
    ++files;
    if (std::getenv("WAYBILL_REWRITE") != nullptr) {
      WriteFile(entry.path(), played);
      continue;
    }
    // Line by line, under the command.
    std::istringstream left(expected);
    std::istringstream right(played);
    std::string command;
    std::string a;
    std::string b;
    while (std::getline(left, a) && std::getline(right, b)) {
      if (a.starts_with("$ ")) command = a;
      BOOST_TEST_REQUIRE(b == a, entry.path().filename().string() << ": " << command);
    }
    BOOST_TEST(played.size() == expected.size());
  }
  BOOST_TEST(files > 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
