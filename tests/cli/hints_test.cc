// What the library advises, in commands of waybill.

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

#include "bindings/cli/output.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(hints)

BOOST_AUTO_TEST_CASE(every_hint_has_words_in_commands) {
  std::set<std::string_view> seen;
  for (int i = 1; i <= static_cast<int>(kLastHint); ++i) {
    const std::string_view words = cli::CommandsFor(static_cast<Hint>(i));
    BOOST_TEST(!words.empty(), "hint " << i);
    BOOST_TEST(seen.insert(words).second, words);
    // A C++ call would be of no use here.
    BOOST_TEST(words.find("NodeStore") == std::string_view::npos, words);
    BOOST_TEST(words.find('_') == std::string_view::npos, words);
  }
  BOOST_TEST(cli::CommandsFor(Hint::kNone).empty());
}

BOOST_AUTO_TEST_CASE(a_code_comes_before_text) {
  const Error coded{ErrorCode::kDamaged, "message", {}, Hint::kRecover};
  BOOST_TEST(cli::HintOf(coded) == cli::CommandsFor(Hint::kRecover));
  const Error text{ErrorCode::kIo, "message", "free space"};
  BOOST_TEST(cli::HintOf(text) == "free space");
  const Error bare{ErrorCode::kIo, "message", {}};
  BOOST_TEST(cli::HintOf(bare).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
