// Texts that others read: how they are spelt, and what is read of theirs.

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/files/documents.h"
#include "store/base/base64.h"
#include "store/base/hex.h"
#include "store/base/json_value.h"
#include "store/base/timestamp.h"
#include "tests/support/draw.h"
#include "waybill/limits.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(base64)

namespace {

std::string Base64(std::string_view encoded, internal::Base64Padding padding) {
  internal::WipedString out;
  return internal::DecodeBase64(encoded, padding, out) ? "=" + out.text : "refused";
}

}  // namespace

BOOST_AUTO_TEST_CASE(base64_as_go_reads_it) {
  using internal::Base64Padding;
  BOOST_TEST(Base64("", Base64Padding::kRequired) == "=");
  BOOST_TEST(Base64("YWI=", Base64Padding::kRequired) == "=ab");
  BOOST_TEST(Base64("YWJ=", Base64Padding::kRequired) == "=ab");  // spare bits are not looked at
  BOOST_TEST(Base64("YW\nI=\n", Base64Padding::kRequired) == "=ab");
  BOOST_TEST(Base64("YWI", Base64Padding::kRequired) == "refused");
  BOOST_TEST(Base64("YWI", Base64Padding::kOptional) == "=ab");
  BOOST_TEST(Base64("YQ=", Base64Padding::kOptional) == "refused");
  BOOST_TEST(Base64("YWJj=", Base64Padding::kOptional) == "refused");
  BOOST_TEST(Base64("Y", Base64Padding::kOptional) == "refused");
  BOOST_TEST(Base64("Y=I=", Base64Padding::kOptional) == "refused");
  BOOST_TEST(Base64("YWI\t", Base64Padding::kOptional) == "refused");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(timestamp)

BOOST_AUTO_TEST_CASE(clamps_what_cannot_be_written) {
  BOOST_TEST(FormatTimestamp({INT64_MIN, -1}) == "0001-01-01T00:00:00Z");
  BOOST_TEST(FormatTimestamp({INT64_MAX, INT32_MAX}) == "9999-12-31T23:59:59Z");
}

BOOST_AUTO_TEST_CASE(any_time_comes_back) {
  std::mt19937_64 random(testing::SeedOfThisRun());
  std::uniform_int_distribution<std::int64_t> seconds(-62135596800, 253402300799);
  std::uniform_int_distribution<std::int32_t> nanoseconds(0, 999999999);
  for (int round = 0; round < 20000; ++round) {
    const Timestamp time{seconds(random), nanoseconds(random)};
    const auto again = ParseTimestamp(FormatTimestamp(time));
    BOOST_REQUIRE(again);
    BOOST_TEST((*again == time));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// Values of JSON that no struct describes.
BOOST_AUTO_TEST_SUITE(json_value)

BOOST_AUTO_TEST_CASE(fields_of_another_kind_are_none) {
  const internal::Json object = {{"number", 1U}, {"below", -2}, {"text", "more"}};
  BOOST_TEST(internal::NumberAt(object, "number") == 1U);
  BOOST_TEST(internal::TextAt(object, "text") == "more");
  BOOST_TEST(internal::FieldAt(object, "below") != nullptr);
  for (const char* key : {"below", "text", "none"}) {
    BOOST_TEST(internal::NumberAt(object, key) == 0U, key);
  }
  for (const char* key : {"below", "number", "none"}) {
    BOOST_TEST(internal::TextAt(object, key).empty(), key);
  }
  for (const internal::Json& other : {internal::Json(), internal::Json("text"), object["text"]}) {
    BOOST_TEST(internal::FieldAt(other, "text") == nullptr);
  }
}

BOOST_AUTO_TEST_CASE(a_terminal_gets_ascii_and_utf8_is_made_valid) {
  const internal::Json json = {{"a", "\xC3\xA9\xE2\x80\xAE\xFF\x1b"}};
  BOOST_TEST(internal::AsciiOf(json) == R"({"a":"\u00e9\u202e\ufffd\u001b"})");
  BOOST_TEST(internal::TextOf(json) == "{\"a\":\"\xC3\xA9\xE2\x80\xAE\xEF\xBF\xBD\\u001b\"}");
  BOOST_TEST(internal::TextOf({{"a", 1}}, 2) == "{\n  \"a\": 1\n}");
}

BOOST_AUTO_TEST_CASE(what_is_not_json_or_too_deep_is_null) {
  const std::string deep(kMaxJsonDepth, '[');
  const std::string end(kMaxJsonDepth, ']');
  BOOST_TEST(internal::ParseJson(R"({"b":1,"a":[]})").dump() == R"({"b":1,"a":[]})");
  BOOST_TEST(!internal::ParseJson(deep + end).is_null());
  for (const std::string& text : {std::string("{"), std::string(), deep + "[]" + end}) {
    BOOST_TEST(internal::ParseJson(text).is_null(), text);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(credential_hash)

namespace {

std::string Unhex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(equals_what_go_computes) {
  std::ifstream in(WAYBILL_FIXTURES "/credential_hashes.jsonl");
  std::size_t seen = 0;
  for (std::string line; std::getline(in, line); ++seen) {
    const auto vector = nlohmann::json::parse(line);
    const AuthConfig auth{Unhex(vector["username"]), Unhex(vector["password"]),
                          Unhex(vector["email"])};
    BOOST_TEST(HashCredentials(auth).value() == vector["hash"].get<std::string>(), line);
  }
  BOOST_TEST(seen == 560u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(secrets_in_messages)

// A registry may be a URL with a password in it, and a secret may stand in the wrong field.
BOOST_AUTO_TEST_CASE(errors_never_quote_what_a_document_holds) {
  const std::string documents[] = {
      R"({"auths":{"S":{"password":7}}})",
      R"({"auths":{"https://u:S@r.io":[]}})",
      R"({"auths":{"S":{},"S":{}}})",
      R"({"S":"x"})",
      R"({"auths":"S"})",
      R"({"kind":"S"})",
      R"({"kind":"Secret","type":"S"})",
      R"({"kind":"Secret","type":"kubernetes.io/dockercfg","data":{".dockercfg":"S"}})",
      R"({"kind":"Secret","type":"kubernetes.io/dockercfg","stringData":{".dockercfg":"{\"S\":1}"}})",
      R"({"auths":{"S":{"auth":"S"}}})",
      R"({"auths":{"r":{"Password":"S"}}} S)"};
  for (const std::string& document : documents) {
    BOOST_TEST_CONTEXT(document) {
      std::string text = document;
      for (std::size_t at = 0; (at = text.find("S\"", at)) != std::string::npos; at += 7) {
        text.replace(at, 1, "hunter2");
      }
      const auto read = DecodeAuthDocument(text);
      BOOST_REQUIRE(!read);
      const std::string message = read.error().ToString();
      BOOST_TEST(message.find("hunter2") == std::string::npos, message);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// Every hint code has words. No text of the library names a command or a flag: most callers do not
// have those.
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
      if (path.filename().string().starts_with("streaming_facts.") ||
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

namespace waybill::internal {

BOOST_AUTO_TEST_SUITE(hex_sha256)

BOOST_AUTO_TEST_CASE(hex_refuses_every_other_character_everywhere) {
  std::string text(64, 'a');
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int c = 0; c < 256; ++c) {
      const bool good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      const char before = std::exchange(text[at], static_cast<char>(c));
      std::array<std::uint8_t, 32> bytes{};
      BOOST_REQUIRE(HexDecode(text, bytes) == good);
      if (!good) BOOST_REQUIRE((bytes == std::array<std::uint8_t, 32>{}));
      BOOST_REQUIRE(IsLowerHex(text.data(), text.size()) == good);
      BOOST_REQUIRE(IsLowerHex(text.data() + 1, text.size() - 1) == (good || at == 0));
      text[at] = before;
    }
  }
}

BOOST_AUTO_TEST_CASE(hex_digits_are_those_of_their_bytes_alone) {
  testing::Draw draw(testing::SeedOfThisRun());
  for (int i = 0; i < 1000; ++i) {
    std::array<std::uint8_t, 32> bytes{};
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(draw.Below(256));
    std::string text = HexEncode(bytes);
    BOOST_REQUIRE(AreDigitsOf(text.data(), bytes.data()));
    char& digit = text.at(draw.Below(64));
    digit = static_cast<char>(digit ^ static_cast<char>(1 + draw.Below(255)));
    BOOST_REQUIRE(!AreDigitsOf(text.data(), bytes.data()));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::internal
