#include "waybill/image_name.h"

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/image_spellings.h"
#include "tests/support/allocations.h"
#include "tests/support/draw.h"
#include "waybill/limits.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(image_name)

namespace {

std::string Digest(std::string_view algorithm, std::size_t digits) {
  return std::string(algorithm) + ":" + std::string(digits, 'e');
}

std::vector<std::string> FixtureImages() {
  std::ifstream in(WAYBILL_FIXTURES "/names.jsonl");
  std::vector<std::string> images;
  for (std::string line; std::getline(in, line);) {
    images.push_back(nlohmann::json::parse(line)["image"]);
  }
  return images;
}

// What must hold for every string.
void CheckProperties(const std::string& image) {
  const auto parts = ParseImage(image);
  BOOST_REQUIRE(ImageName(image).has_value() == parts.has_value());
  if (!parts) {
    BOOST_TEST(!NormaliseImage(image).has_value());
    BOOST_TEST(RepositoryOf(image) == image);
    return;
  }
  BOOST_TEST(*ImageName(image) == parts->name);
  std::string joined(parts->name);
  if (!parts->tag.empty()) joined.append(":").append(parts->tag);
  if (!parts->digest.empty()) joined.append("@").append(parts->digest);
  BOOST_TEST(joined == image);
  BOOST_TEST(parts->name.data() == image.data());
  const std::string domain(parts->domain);
  BOOST_TEST((domain.empty() ? "" : domain + "/") + std::string(parts->path) == parts->name);

  const auto again = ParseImage(parts->name);
  BOOST_REQUIRE(again.has_value());
  BOOST_TEST(again->name == parts->name);
  BOOST_TEST(again->domain == parts->domain);
  BOOST_TEST(again->tag.empty());

  if (const auto full = NormaliseImage(image)) {
    BOOST_TEST(NormaliseImage(*full).value_or("refused") == *full);
    BOOST_TEST(RepositoryOf(image) == ImageName(*full).value_or("refused"));
    BOOST_TEST(RepositoryOf(*full) == RepositoryOf(image));
  } else {
    BOOST_TEST(RepositoryOf(image) == parts->name);
  }
}

// Whether the scan in blocks and the scan of bytes agree.
void CheckBothScans(const std::string& image) {
  const auto fast = ParseImage(image);
  const auto bytes = internal::ParseImageBytes(image);
  BOOST_REQUIRE(fast.has_value() == bytes.has_value());
  if (!fast) return;
  const auto same = [](std::string_view a, std::string_view b) {
    return a == b && (a.empty() || a.data() == b.data());
  };
  BOOST_REQUIRE(same(fast->name, bytes->name));
  BOOST_REQUIRE(same(fast->domain, bytes->domain));
  BOOST_REQUIRE(same(fast->path, bytes->path));
  BOOST_REQUIRE(same(fast->tag, bytes->tag));
  BOOST_REQUIRE(same(fast->digest, bytes->digest));
}

}  // namespace

BOOST_AUTO_TEST_CASE(both_scans_give_the_same_answer) {
  testing::Draw draw(testing::SeedOfThisRun());
  const std::vector<std::string> fixtures = FixtureImages();
  for (const std::string& image : fixtures) CheckBothScans(image);
  // Pieces of names, joined as the grammar does or not, and then now and then a byte of any value.
  const std::vector<std::pair<std::size_t, std::string>> pieces = {{20, "a"},
                                                                   {20, "team"},
                                                                   {20, "registry"},
                                                                   {10, "0"},
                                                                   {10, "example"},
                                                                   {20, "/"},
                                                                   {20, "."},
                                                                   {20, "-"},
                                                                   {4, ":"},
                                                                   {3, "--"},
                                                                   {3, "_"},
                                                                   {2, "__"},
                                                                   {2, "A"},
                                                                   {2, "//"},
                                                                   {1, ":5000/"},
                                                                   {1, "[::1]"},
                                                                   {1, "@"},
                                                                   {1, "z9"},
                                                                   {1, std::string(15, 'x')},
                                                                   {1, std::string(16, 'y')},
                                                                   {1, std::string(100, 'w')}};
  std::size_t sound = 0;
  for (int i = 0; i < 400'000; ++i) {
    std::string image;
    if (draw.OneIn(8)) {
      image = draw.From(fixtures);
    } else {
      for (std::size_t n = draw.Below(16); n > 0; --n) image += draw.Weighted(pieces);
      if (draw.OneIn(4)) image += ":v1." + std::to_string(draw.Below(1000));
      if (draw.OneIn(50)) image += ":" + std::string(120 + draw.Below(12), 'T');
      if (draw.OneIn(6)) image += "@" + Digest("sha256", 62 + draw.Below(4));
    }
    if (!image.empty() && draw.OneIn(3)) {
      image[draw.Below(image.size())] = static_cast<char>(draw.Below(256));
    }
    CheckBothScans(image);
    sound += ParseImage(image).has_value() ? 1 : 0;
  }
  BOOST_TEST(sound > 20'000U);
}

// Where blocks meet, and at both ends: each byte at each place of names of each length.
BOOST_AUTO_TEST_CASE(both_scans_give_the_same_answer_for_each_byte_at_each_place) {
  for (std::size_t size = 1; size <= 50; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        std::string image(size, 'a');
        if (size > 20) image[size / 2] = '/';
        image[at] = static_cast<char>(byte);
        CheckBothScans(image);
        for (const char next : {'.', '/', ':', '-'}) {
          if (at + 1 < size) image[at + 1] = next;
          CheckBothScans(image);
        }
      }
    }
  }
  for (const std::size_t path : {254, 255, 256, 260}) {
    CheckBothScans(std::string(path, 'p'));
    CheckBothScans("registry.example.com/" + std::string(path, 'p') + ":v1");
  }
}

// The kubelet's verdicts on them: `replay`.
BOOST_AUTO_TEST_CASE(what_must_hold_for_every_string_holds_for_the_fixtures) {
  for (const std::string& image : FixtureImages()) CheckProperties(image);
}

BOOST_AUTO_TEST_CASE(bounds_are_exact) {
  const std::string path255(255, 'a');
  BOOST_TEST(ParseImage(path255).has_value());
  BOOST_TEST(!ParseImage(path255 + "a").has_value());
  // The domain does not count.
  BOOST_TEST(ParseImage("registry.example.com/" + path255).has_value());
  BOOST_TEST(!ParseImage("registry.example.com/" + path255 + "a").has_value());
  BOOST_TEST(ParseImage(std::string(2000, 'h') + "/" + path255).has_value());
  // Without a domain the whole name is the path, and adding the default domain makes it too long.
  BOOST_TEST(!ParseImage("a_b/" + path255).has_value());
  BOOST_TEST(!NormaliseImage(path255).has_value());
  BOOST_TEST(NormaliseImage(path255.substr(8)).has_value());

  BOOST_TEST(ParseImage("a:" + std::string(128, 't')).has_value());
  BOOST_TEST(!ParseImage("a:" + std::string(129, 't')).has_value());
  for (const auto& [algorithm, digits] :
       {std::pair{"sha256", 64u}, {"sha384", 96u}, {"sha512", 128u}}) {
    for (unsigned other = digits - 1; other <= digits + 1; ++other) {
      BOOST_TEST(ParseImage("a@" + Digest(algorithm, other)).has_value() == (other == digits));
    }
    BOOST_TEST(!ParseImage("@" + Digest(algorithm, digits)).has_value());
    BOOST_TEST(!ParseImage("a:@" + Digest(algorithm, digits)).has_value());
    std::string image = "a@" + Digest(algorithm, digits);
    for (std::size_t i = image.size() - digits; i < image.size(); ++i) {
      for (const char bad : {'E', 'g', '/', ':', '`', '\0', '\xe5'}) {
        const char good = std::exchange(image[i], bad);
        BOOST_TEST(!ParseImage(image).has_value());
        image[i] = good;
      }
    }
    BOOST_TEST(ParseImage(image).has_value());
  }
}

BOOST_AUTO_TEST_CASE(any_bytes_are_safe) {
  const unsigned seed = static_cast<unsigned>(testing::SeedOfThisRun());
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return random() % n; };
  constexpr char kBytes[] = "ab0zA9F.-_:/@[]\0\n\x80\xff ";
  const std::string alphabet(kBytes, sizeof(kBytes) - 1);
  BOOST_TEST_CONTEXT("seed " << seed) {
    for (int i = 0; i < 20000; ++i) {
      std::string image(below(24), '\0');
      for (char& c : image) c = alphabet[below(alphabet.size())];
      if (below(4) == 0) image += "@" + Digest("sha256", 64);
      CheckProperties(image);
    }
    const std::vector<std::string> images = FixtureImages();
    for (int i = 0; i < 20000; ++i) {
      std::string image = images[below(images.size())];
      for (std::size_t edits = 1 + below(3); edits != 0; --edits) {
        const std::size_t at = below(image.size() + 1);
        if (below(2) == 0 || at == image.size()) {
          image.insert(at, 1, alphabet[below(alphabet.size())]);
        } else {
          image.erase(at, 1);
        }
      }
      CheckProperties(image);
    }
  }
}

BOOST_AUTO_TEST_CASE(reads_nothing_outside_the_view) {
  // Each prefix stands in a buffer of exactly its size, so that a sanitizer sees any read past its
  // end.
  const std::string image = "[::1]:80/a.b__c-d/e:tag@" + Digest("sha256", 64);
  for (std::size_t size = 0; size <= image.size(); ++size) {
    const std::vector<char> exact(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size));
    const bool parses = ParseImage({exact.data(), exact.size()}).has_value();
    BOOST_TEST(parses == ParseImage(image.substr(0, size)).has_value());
  }
  BOOST_TEST(!ParseImage(std::string_view()).has_value());
}

BOOST_AUTO_TEST_CASE(parsing_allocates_nothing) {
  std::vector<std::string> images = FixtureImages();
  images.push_back(std::string(kMaxImageBytes, 'a'));
  const std::size_t before = testing::AllocationsOfThread();
  std::size_t parsed = 0;
  for (const std::string& image : images) {
    parsed += ParseImage(image).has_value() ? 1 : 0;
    parsed += ImageName(image).has_value() ? 1 : 0;
  }
  const std::size_t after = testing::AllocationsOfThread();
  BOOST_TEST(parsed > 0u);
  BOOST_TEST(after == before);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
