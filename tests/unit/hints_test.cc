// Every hint code has words. No text of the library names a command or a flag: most callers do not
// have those.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include "waybill/result.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(hints)

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(every_hint_has_words_of_its_own) {
  BOOST_TEST(HintText(Hint::kNone).empty());
  for (int i = 1; i <= static_cast<int>(kLastHint); ++i) {
    const auto hint = static_cast<Hint>(i);
    const std::string words(HintText(hint));
    BOOST_TEST(!words.empty(), "hint " << i);
    BOOST_TEST(words.find('`') == std::string::npos, words);
    BOOST_TEST(words.find("--") == std::string::npos, words);
    const Error error{ErrorCode::kDamaged, "message", {}, hint};
    BOOST_TEST(error.has_hint());
    BOOST_TEST(error.ToString() == "message; " + words);
  }
  BOOST_TEST(HintText(static_cast<Hint>(static_cast<int>(kLastHint) + 1)).empty());
}

BOOST_AUTO_TEST_CASE(an_error_says_its_hint_whether_it_has_a_code_or_text) {
  const Error bare{ErrorCode::kIo, "message", {}};
  BOOST_TEST(!bare.has_hint());
  BOOST_TEST(bare.ToString() == "message");
  const Error text{ErrorCode::kIo, "message", "free space"};
  BOOST_TEST(text.has_hint());
  BOOST_TEST(text.ToString() == "message; free space");
}

// String literals only: comments may name `waybill list`.
BOOST_AUTO_TEST_CASE(no_text_of_the_library_names_a_command_or_a_flag) {
  const fs::path root = fs::path(WAYBILL_FIXTURES) / ".." / "..";
  const std::regex command(R"re("[^"]*(`waybill |waybill [a-z]+ --|--[a-z])[^"]*")re");
  // Stored reasons of distrust: readers compare them word by word.
  const std::regex stored(
      R"re(is not finished; run|--after-gap --images|requested with --after-gap)re");
  std::size_t files = 0;
  for (const char* folder : {"store", "migrations"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".cc" && path.extension() != ".h") continue;
      // What is said there of flags is of those of a kubelet and an API server.
      if (path.filename().string().starts_with("streaming_lint.") ||
          path.filename().string().starts_with("streaming_facts.") ||
          path.filename().string().starts_with("streaming_plan.")) {
        continue;
      }
      ++files;
      std::ifstream in(path);
      for (std::string line; std::getline(in, line);) {
        const bool names = std::regex_search(line, command) && !std::regex_search(line, stored);
        BOOST_TEST(!names, path.filename().string() << ": " << line);
      }
    }
  }
  BOOST_TEST(files > 100);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
