// The reader and writer of JSON, and nlohmann's as the judge. Longer texts: fuzz/door_json.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/json.h"
#include "tests/support/draw.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(door_json)

namespace {

using internal::JsonReader;
using internal::JsonWriter;
using nlohmann::json;
using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

// What is wrong with a text whose content does not matter.
std::string Wrong(std::string_view text) {
  JsonReader from(text);
  std::string_view whole;
  if (from.Skip(whole)) from.End();
  return from.Problem();
}

std::string WrongString(std::string_view text) {
  JsonReader from(text);
  std::string read;
  if (from.String(read)) from.End();
  return from.Problem();
}

template <typename N>
std::optional<N> Number(std::string_view text) {
  JsonReader from(text);
  N number{};
  if (!from.Number(number) || !from.End()) return std::nullopt;
  return number;
}

std::string Written(std::string_view text) {
  std::string written;
  JsonWriter(written).String(text);
  return written;
}

// Reads anything, as a described type reads what it knows.
bool Build(JsonReader& from, json& to) {
  const int c = from.Peek();
  std::string text;
  if (c == '{') {
    if (!from.Open('{')) return false;
    to = json::object();
    for (bool first = true; from.More('{', first);) {
      if (!from.Key(text)) return false;
      if (to.contains(text)) return from.FailAtToken("twice");
      if (!Build(from, to[text])) return false;
    }
    return from.ok();
  }
  if (c == '[') {
    if (!from.Open('[')) return false;
    to = json::array();
    for (bool first = true; from.More('[', first);) {
      if (!from.Afford(1)) return false;
      if (!Build(from, to.emplace_back())) return false;
    }
    return from.ok();
  }
  if (c == '"') {
    if (!from.String(text)) return false;
    to = text;
    return true;
  }
  if (c == 't' || c == 'f') {
    bool value = false;
    if (!from.Bool(value)) return false;
    to = value;
    return true;
  }
  if (from.Null()) {
    to = nullptr;
    return true;
  }
  std::string_view token;
  if (!from.Skip(token)) return false;
  if (const auto natural = Number<std::uint64_t>(token)) {
    to = *natural;
  } else if (const auto whole = Number<std::int64_t>(token)) {
    to = *whole;
  } else {
    to = Number<double>(token).value_or(std::strtod(std::string(token).c_str(), nullptr));
  }
  return true;
}

// What nlohmann says, and where it has no say.
struct Verdict {
  bool is_json = false;
  bool unknown = false;  // it has no number beyond a double
  bool repeats = false;  // a key
  int depth = 0;
  json value;
};
Verdict Judge(const std::string& text) {
  Verdict verdict;
  std::vector<std::vector<std::string>> keys;
  const auto note = [&](int, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      keys.emplace_back();
      verdict.depth = std::max(verdict.depth, static_cast<int>(keys.size()));
    } else if (event == Event::object_end || event == Event::array_end) {
      keys.pop_back();
    } else if (event == Event::key) {
      auto& known = keys.back();
      const auto key = parsed.get<std::string>();
      if (std::find(known.begin(), known.end(), key) != known.end()) verdict.repeats = true;
      known.push_back(key);
    }
    return true;
  };
  try {
    verdict.value = json::parse(text, note);
    // It skips a byte order mark, and takes a zero byte for the end.
    verdict.is_json = text.rfind("\xEF\xBB\xBF", 0) != 0 && text.find('\0') == std::string::npos;
  } catch (const json::out_of_range&) {
    verdict.unknown = true;
  } catch (const json::exception&) {
  }
  return verdict;
}

void Compare(const std::string& text) {
  const Verdict verdict = Judge(text);
  if (verdict.unknown) return;
  const bool expected = verdict.is_json && verdict.depth <= internal::kMaxJsonDepth;
  BOOST_TEST_INFO_SCOPE(text);
  BOOST_TEST(Wrong(text).empty() == expected);
  JsonReader from(text);
  json built;
  const bool is_read = Build(from, built) && from.End();
  BOOST_TEST(is_read == (expected && !verdict.repeats));
  BOOST_TEST(is_read == from.Problem().empty());
  if (is_read) BOOST_TEST(built == verdict.value);
}

const std::vector<std::string> kSound = {
    "{}",
    "[]",
    "null",
    " \t\r\n true \n",
    "false",
    "\"\"",
    "0",
    "-0",
    "-0.0e-0",
    "1E+2",
    "123456789012345678901234567890",
    "0.1",
    R"({"a":1,"b":[true,null,{"c":"d"}],"":{}})",
    R"([[],[[]],{},{"a":{}}])",
    R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\ude00")",
    "\"\x7F\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xEF\xBF\xBF\xF4\x8F\xBF\xBF\"",
    "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
    "[1e308,1e-308,4.9e-324,18446744073709551615,-9223372036854775808,18446744073709551616]",
};

}  // namespace

BOOST_AUTO_TEST_CASE(takes_what_is_json_and_nothing_else) {
  for (const std::string& text : kSound) {
    BOOST_TEST_INFO_SCOPE(text);
    BOOST_TEST(Wrong(text) == "");
    BOOST_TEST(Judge(text).is_json);
    Compare(text);
  }
  // Only we take it: JSON's grammar has it.
  BOOST_TEST(Wrong("[1e965536]") == "");
  BOOST_TEST(!Number<double>("1e965536").has_value());
  // A key twice passes where nobody reads it.
  BOOST_TEST(Wrong(R"({"a":1,"a":2})") == "");
}

// Each text of up to three of these parts, by itself and where a value, a list or a string has
// room.
BOOST_AUTO_TEST_CASE(agrees_with_another_reader_on_every_short_text) {
  const std::string parts[] = {
      "",   "{",       "}",       "[",    "]",   ",",   ":",    "\"a\"",       "0",  "-",
      "1.", "e+",      "true",    "nul",  " ",   "\"",  "\\",   "\\u12",       "\n", "\v",
      "//", "\\ud800", "\\udc00", "\x1F", "'a'", "\0"s, "\xC3", "\xEF\xBB\xBF"};
  const std::pair<const char*, const char*> places[] = {
      {"", ""}, {"{\"b\":", "}"}, {"[1", "]"}, {"\"", "\""}};
  for (const std::string& first : parts) {
    for (const std::string& second : parts) {
      for (const std::string& third : parts) {
        const std::string text = first + second + third;
        for (const auto& [before, after] : places) Compare(before + text + after);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(reads_each_byte_of_a_string_as_utf8_has_it) {
  // All pairs of bytes and what may follow them.
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      for (const std::string_view rest : {"", "\x80", "\x80\x80", "\x80\x80\x80"}) {
        std::string text = "\"";
        text += static_cast<char>(first);
        text += static_cast<char>(second);
        text += std::string(rest) + "\"";
        if (WrongString(text).empty() !=
            (json::accept(text) && text.find('\0') == std::string::npos))
          BOOST_ERROR(text);
      }
    }
  }
  std::string read;
  JsonReader from(R"("\u0000\u007f\u0080\u07ff\u0800\uffff\ud800\udc00\udbff\udfff")");
  BOOST_TEST(from.String(read));
  BOOST_TEST(read ==
             "\0\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"s);
}

BOOST_AUTO_TEST_CASE(writes_what_any_reader_takes) {
  BOOST_TEST(Written("a\"\\\n\t\x7F") == R"("a\"\\\n\u0009\u007f")");
  BOOST_TEST(Written("\xC3\xA9\xF0\x9F\x98\x80") == "\"\xC3\xA9\xF0\x9F\x98\x80\"");
  BOOST_TEST(Written("a\xFF\xC3") == "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
  std::mt19937_64 random(SeedOfThisRun());
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (std::size_t n = random() % 12; n > 0; --n) {
      text += random() % 2 == 0 ? std::string(1, static_cast<char>(random())) : "\xE2\x82\xAC";
    }
    const std::string written = Written(text);
    const json theirs = json::parse(written, nullptr, false);
    BOOST_REQUIRE(theirs.is_string());
    std::string back;
    BOOST_REQUIRE(JsonReader(written).String(back));
    BOOST_TEST(back == theirs.get<std::string>());
    // A zero byte is the end to nlohmann, whatever follows.
    const bool is_utf8 = text.find('\0') == std::string::npos && json::accept('"' + text + '"');
    if (is_utf8) BOOST_TEST(back == text);
  }
  std::string numbers;
  JsonWriter to(numbers);
  to.Begin('[');
  to.Number(std::int8_t{-5});
  to.Number(std::numeric_limits<std::uint64_t>::max());
  to.Number(0.1);
  to.Number(1e300);
  to.Number(std::nan(""));
  to.Number(-std::numeric_limits<double>::infinity());
  to.Bool(true);
  to.Begin('{');
  const auto before = to.Here();
  to.Key("gone");
  const auto value = to.Here();
  to.String("x");
  BOOST_TEST(to.Since(value) == "\"x\"");
  to.TakeBack(before);
  to.Key("a");
  to.Begin('[');
  to.End(']');
  to.Key("b");
  to.Raw("null");
  to.End('}');
  to.End(']');
  BOOST_TEST(numbers == R"([-5,18446744073709551615,0.1,1e+300,null,null,true,{"a":[],"b":null}])");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
