// Values to be written as JSON: spelled as nlohmann's library spells them.

#include "store/base/json_value.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(json_value)

namespace {

using internal::Json;
using Reference = nlohmann::ordered_json;

std::string AnyText(std::mt19937_64& random) {
  static const std::string kPieces[] = {
      "a",    "\"",   "\\",       "\n",           "\x01",
      "\x7F", "<",    "\xC3\xA9", "\xE2\x80\xAE", "\xF0\x9F\x98\x80",
      "\xFF", "\xC3", "\xE2\x80", "\xED\xA0\x80"};
  std::string text;
  for (std::uint64_t n = random() % 5; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
  return text;
}

// The same value for both.
std::pair<Json, Reference> AnyValue(std::mt19937_64& random, int depth) {
  const auto both = [](auto value) { return std::pair<Json, Reference>(value, value); };
  switch (random() % (depth == 0 ? 6 : 8)) {
    case 0:
      return both(nullptr);
    case 1:
      return both(random() % 2 == 0);
    case 2:
      return both(random());
    case 3:
      return both(static_cast<std::int64_t>(random()));
    case 4:
      return both(static_cast<double>(random()) / static_cast<double>(1 + random() % 1000));
    case 5:
      return both(AnyText(random));
    case 6: {
      std::pair<Json, Reference> list = {Json::array(), Reference::array()};
      for (std::uint64_t n = random() % 4; n > 0; --n) {
        auto [json, reference] = AnyValue(random, depth - 1);
        list.first.push_back(json);
        list.second.push_back(reference);
      }
      return list;
    }
    default: {
      std::pair<Json, Reference> fields = {Json::object(), Reference::object()};
      for (std::uint64_t n = random() % 4; n > 0; --n) {
        const std::string key = AnyText(random);
        auto [json, reference] = AnyValue(random, depth - 1);
        fields.first[key] = json;
        fields.second[key] = reference;
      }
      return fields;
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(any_value_is_spelled_as_the_reference_spells_it) {
  constexpr auto kReplace = Reference::error_handler_t::replace;
  std::mt19937_64 random(20'260'102);
  for (int i = 0; i < 3000; ++i) {
    const auto [json, reference] = AnyValue(random, 4);
    const std::string text = json.Text();
    BOOST_REQUIRE_EQUAL(text, reference.dump(-1, ' ', false, kReplace));
    BOOST_REQUIRE_EQUAL(json.Text(Json::Letters::kAscii), reference.dump(-1, ' ', true, kReplace));
    BOOST_REQUIRE_EQUAL(json.Text(Json::Letters::kAny, Json::Lines::kIndented),
                        reference.dump(2, ' ', false, kReplace));
    BOOST_REQUIRE_EQUAL(Json::Parse(text).Text(), Reference::parse(text).dump());
  }
}

BOOST_AUTO_TEST_CASE(braces_make_fields_or_elements) {
  const std::vector<std::string> words = {"x", "y"};
  BOOST_TEST(Json({{"a", 1}, {"b", {{"c", words}}}}).Text() == R"({"a":1,"b":{"c":["x","y"]}})");
  BOOST_TEST(Json({"a", 1, nullptr}).Text() == R"(["a",1,null])");
  BOOST_TEST(Json({{"a", 1}, {2, 3}}).Text() == R"([["a",1],[2,3]])");
  BOOST_TEST(Json(std::set<int>{2, -1}).Text() == "[-1,2]");
}

BOOST_AUTO_TEST_CASE(fields_are_found_replaced_and_erased) {
  Json object = {{"a", 1}, {"b", "text"}};
  object.Update({{"b", -2}, {"c", "more"}});
  BOOST_TEST(object.Text() == R"({"a":1,"b":-2,"c":"more"})");
  BOOST_TEST(object.NumberAt("a") == 1U);
  BOOST_TEST(object.NumberAt("b") == 0U);
  BOOST_TEST(object.TextAt("c") == "more");
  BOOST_TEST(object.TextAt("a").empty());
  object.Erase("a");
  BOOST_TEST(!object.contains("a"));
  BOOST_TEST((object["c"] == "more"));
}

BOOST_AUTO_TEST_CASE(what_is_not_json_too_deep_or_not_flat_is_null) {
  BOOST_TEST(Json::Parse("{").is_null());
  BOOST_TEST(!Json::Parse(std::string(60, '[') + std::string(60, ']')).is_null());
  BOOST_TEST(Json::Parse(std::string(100, '[') + std::string(100, ']')).is_null());
  BOOST_TEST(Json::ParseFlat(R"({"a":"b","c":1})").size() == 2U);
  for (const char* text : {R"({"a":"b","a":"c"})", R"({"a":{}})", R"({"a":[]})", "[]", "1", "{"}) {
    BOOST_TEST(Json::ParseFlat(text).is_null(), text);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
