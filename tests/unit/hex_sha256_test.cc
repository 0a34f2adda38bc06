#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/hex.h"
#include "store/base/sha256.h"
#include "store/engine/database/uuid.h"
#include "tests/support/draw.h"

namespace waybill::internal {

BOOST_AUTO_TEST_SUITE(hex_sha256)

BOOST_AUTO_TEST_CASE(hex_goes_there_and_back) {
  std::array<std::uint8_t, 256> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  const std::string text = HexEncode(all);
  BOOST_TEST(text.substr(0, 8) == "00010203");
  BOOST_TEST(text.substr(504) == "fcfdfeff");
  std::array<std::uint8_t, 256> back{};
  BOOST_TEST(HexDecode(text, back));
  BOOST_TEST(back == all);
  BOOST_TEST(HexEncode({}) == "");
}

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

// Mostly digits, so that about half of the texts are sound.
BOOST_AUTO_TEST_CASE(hex_and_uuids_are_decoded_as_without_vectors) {
  testing::Draw draw(testing::SeedOfThisRun());
  constexpr std::string_view kNear = "0123456789abcdef/:`gAF@G\xff\x80\xe1 ";
  std::size_t sound = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    for (int at = 0; at < 64; ++at) text += kNear[draw.Below(draw.OneIn(90) ? kNear.size() : 16)];
    std::array<std::uint8_t, 32> fast{};
    std::array<std::uint8_t, 32> plain{};
    const bool is_hex = HexDecodePlain(text, plain);
    sound += is_hex ? 1 : 0;
    BOOST_REQUIRE(HexDecode(text, fast) == is_hex);
    BOOST_REQUIRE(fast == plain);
    BOOST_REQUIRE(AllLowerHex<64>(text.data()) == AllLowerHexPlain<64>(text.data()));

    std::string uuid = text.substr(0, 36);
    for (const std::size_t dash : {8, 13, 18, 23}) uuid[dash] = draw.OneIn(40) ? '0' : '-';
    if (draw.OneIn(20)) uuid.resize(draw.Below(40), 'a');
    std::array<std::uint8_t, 16> fast_uuid{};
    std::array<std::uint8_t, 16> plain_uuid{};
    const bool is_uuid = DecodeUuidPlain(uuid, plain_uuid);
    BOOST_REQUIRE(DecodeUuid(uuid, fast_uuid) == is_uuid);
    if (is_uuid) BOOST_REQUIRE(fast_uuid == plain_uuid);
  }
  BOOST_TEST(sound > 10'000U);
  BOOST_TEST(sound < 190'000U);
}

BOOST_AUTO_TEST_CASE(hex_refuses_other_lengths) {
  std::array<std::uint8_t, 32> bytes{};
  for (const std::size_t size : {0u, 1u, 62u, 63u, 65u, 66u, 128u}) {
    BOOST_TEST(!HexDecode(std::string(size, '0'), bytes));
  }
  BOOST_TEST(HexDecode(std::string(64, '0'), bytes));
}

BOOST_AUTO_TEST_CASE(sha256_has_the_known_values) {
  // FIPS 180-4 examples, and a million times 'a'.
  const std::vector<std::pair<std::string, std::string_view>> known = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1000000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto& [data, hex] : known) {
    BOOST_TEST(HexEncode(Sha256(data).value()) == hex);
  }
  BOOST_TEST(HexEncode(Sha256(std::string_view()).value()) == known.front().second);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::internal
