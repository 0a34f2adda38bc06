// Answers as YAML: what is read again is what was written.

#include "bindings/cli/yaml_text.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <random>
#include <string>

#include "bindings/cli/yaml_document.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(yaml_text)

namespace {

using internal::Json;

Json JsonOf(const cli::YamlNode& node) {
  if (node.IsMap()) {
    Json object = Json::object();
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      object[node.keys[i]] = JsonOf(node.items[i]);
    }
    return object;
  }
  if (node.IsList()) {
    Json array = Json::array();
    for (const cli::YamlNode& item : node.items) array.push_back(JsonOf(item));
    return array;
  }
  return Json::Parse(cli::JsonOfScalar(node));
}

std::string AnyText(std::mt19937_64& random) {
  // Words that readers of YAML take for values, and what its syntax is made of.
  static const std::string kPieces[] = {
      "yes",  "No",  "null",  "~",          "true",
      "0x1F", "1e3", "12:30", "2026-01-02", "registry.example.com/x",
      ":",    "#",   " ",     "-",          "\n",
      "\t",   "\"",  "'",     "%",          "\xC3\xA9",
      "@",    "&a",  "*a",    "!",          "|",
      ">",    "{",   "]",     "\\",         "\x01",
      "y",    "on",  ".inf",  "=",          "<<",
      "---",  "...", "",      "a",          "\xE2\x80\xAE"};
  std::string text;
  for (std::uint64_t n = random() % 4; n > 0; --n) {
    text += kPieces[random() % std::size(kPieces)];
  }
  return text;
}

Json AnyValue(std::mt19937_64& random, int depth) {
  switch (random() % (depth == 0 ? 4 : 6)) {
    case 0:
      return static_cast<std::int64_t>(random() % 100'000) - 50'000;
    case 1:
      return random() % 2 == 0;
    case 2:
      return nullptr;
    case 4: {
      Json array = Json::array();
      for (std::uint64_t n = random() % 4; n > 0; --n) {
        array.push_back(AnyValue(random, depth - 1));
      }
      return array;
    }
    case 5: {
      Json object = Json::object();
      for (std::uint64_t n = random() % 4; n > 0; --n) {
        object["k" + AnyText(random)] = AnyValue(random, depth - 1);
      }
      return object;
    }
    default:
      return AnyText(random);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(any_answer_is_read_again_as_it_was) {
  const char* given = std::getenv("WAYBILL_SEED");
  const std::uint64_t seed =
      given == nullptr ? std::random_device()() : std::strtoull(given, nullptr, 10);
  BOOST_TEST_MESSAGE("WAYBILL_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 3000; ++i) {
    Json value = {{"answer", AnyValue(random, 3)}};
    const std::string yaml = cli::YamlOf(value);
    auto read = cli::ReadYaml(yaml);
    BOOST_TEST_REQUIRE(read.has_value(), "seed " << seed << ": " << yaml);
    BOOST_TEST_REQUIRE(JsonOf(*read) == value, "seed " << seed << ": " << yaml << value.Text());
  }
}

BOOST_AUTO_TEST_CASE(it_looks_as_people_write_it) {
  const Json value = {{"store", "/var/lib/waybill"},
                      {"images", {"nginx:1.27", "12", "no"}},
                      {"records", 3},
                      {"empty", Json::array()}};
  BOOST_TEST(cli::YamlOf(value) ==
             "store: \"/var/lib/waybill\"\nimages:\n- nginx:1.27\n- \"12\"\n- \"no\"\n"
             "records: 3\nempty: []\n");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
