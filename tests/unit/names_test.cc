// Names of images, and what decoders make of texts.

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "migrations/kubelet_files/userns_file.h"
#include "runtime/files/documents.h"
#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/platform.h"
#include "store/base/timestamp.h"
#include "store/pods/pool.h"
#include "tests/support/allocations.h"
#include "tests/support/as_json.h"
#include "tests/support/draw.h"
#include "tests/support/temp_dir.h"
#include "waybill/limits.h"

namespace waybill::testing {

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
  const auto parts = PartsOfImage(image);
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

  const auto again = PartsOfImage(parts->name);
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
  const auto fast = PartsOfImage(image);
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
    if (draw.OneIn(10)) CheckProperties(image);
    sound += PartsOfImage(image).has_value() ? 1 : 0;
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
  BOOST_TEST(PartsOfImage(path255).has_value());
  BOOST_TEST(!PartsOfImage(path255 + "a").has_value());
  // The domain does not count.
  BOOST_TEST(PartsOfImage("registry.example.com/" + path255).has_value());
  BOOST_TEST(!PartsOfImage("registry.example.com/" + path255 + "a").has_value());
  BOOST_TEST(PartsOfImage(std::string(2000, 'h') + "/" + path255).has_value());
  // Without a domain the whole name is the path, and adding the default domain makes it too long.
  BOOST_TEST(!PartsOfImage("a_b/" + path255).has_value());
  BOOST_TEST(!NormaliseImage(path255).has_value());
  BOOST_TEST(NormaliseImage(path255.substr(8)).has_value());

  BOOST_TEST(PartsOfImage("a:" + std::string(128, 't')).has_value());
  BOOST_TEST(!PartsOfImage("a:" + std::string(129, 't')).has_value());
  for (const auto& [algorithm, digits] :
       {std::pair{"sha256", 64u}, {"sha384", 96u}, {"sha512", 128u}}) {
    for (unsigned other = digits - 1; other <= digits + 1; ++other) {
      BOOST_TEST(PartsOfImage("a@" + Digest(algorithm, other)).has_value() == (other == digits));
    }
    BOOST_TEST(!PartsOfImage("@" + Digest(algorithm, digits)).has_value());
    BOOST_TEST(!PartsOfImage("a:@" + Digest(algorithm, digits)).has_value());
    std::string image = "a@" + Digest(algorithm, digits);
    for (std::size_t i = image.size() - digits; i < image.size(); ++i) {
      for (const char bad : {'E', 'g', '/', ':', '`', '\0', '\xe5'}) {
        const char good = std::exchange(image[i], bad);
        BOOST_TEST(!PartsOfImage(image).has_value());
        image[i] = good;
      }
    }
    BOOST_TEST(PartsOfImage(image).has_value());
  }
}

BOOST_AUTO_TEST_CASE(parsing_allocates_nothing) {
  std::vector<std::string> images = FixtureImages();
  images.push_back(std::string(kMaxImageBytes, 'a'));
  const std::size_t before = testing::AllocationsOfThread();
  std::size_t parsed = 0;
  for (const std::string& image : images) {
    parsed += PartsOfImage(image).has_value() ? 1 : 0;
    parsed += ImageName(image).has_value() ? 1 : 0;
  }
  const std::size_t after = testing::AllocationsOfThread();
  BOOST_TEST(parsed > 0u);
  BOOST_TEST(after == before);
}

BOOST_AUTO_TEST_SUITE_END()

// fixtures/texts/*.jsonl: what each text means to the function that the first line names. Lines are
// {"case":…,"why":…}, and {"in":…,"answer":…}, as as_json.h writes answers. WAYBILL_REWRITE=1
// writes the answers of this build over those of the files: read the difference before you commit
// it.
BOOST_AUTO_TEST_SUITE(texts)

namespace {

using Json = nlohmann::ordered_json;
using Meaning = std::function<Json(const std::string&)>;

Json ToJson(const std::vector<RegistryAuth>& entries) {
  Json list = Json::array();
  for (const auto& [registry, auth] : entries) {
    list.push_back(registry + '|' + auth.username + '|' + auth.password + '|' + auth.email);
  }
  return list;
}

Json ToJson(const std::vector<ListedImage>& images) {
  Json list = Json::array();
  for (const ListedImage& image : images) {
    list.push_back(
        {{"id", image.id}, {"repoTags", image.repo_tags}, {"repoDigests", image.repo_digests}});
  }
  return list;
}

Json ToJson(const IdPool& pool) {
  return std::to_string(pool.first_id) + "+" + std::to_string(pool.id_count) + " in " +
         std::to_string(pool.ids_per_pod) + " for " + std::to_string(pool.max_pods);
}

Json ToJson(const Timestamp& time) {
  return std::to_string(time.seconds) + "." + std::to_string(time.nanoseconds);
}

template <typename T>
Json ToJson(const T& value) {
  return AsJson(value);
}

// Of a function whose result is a value or an error.
template <typename T>
Meaning Of(Result<T> (*decode)(std::string_view)) {
  return [decode](const std::string& text) -> Json {
    const Result<T> result = decode(text);
    if (result) return ToJson(*result);
    Json error = AsJson(result.error());
    if (!result.error().hint.empty()) error["hint"] = result.error().hint;
    return error;
  };
}

Json MeaningOfUsernsFile(const std::string& text) {
  const auto shown = [](const HostIdRange& range) {
    return std::to_string(range.first) + "+" + std::to_string(range.length);
  };
  const internal::UsernsFile file = internal::DecodeUsernsFile("uid", "pods/uid/userns", text);
  BOOST_TEST(file.mapping.has_value() == file.problem.empty());
  if (file.mapping) return {{"mapping", shown(*file.mapping)}};
  Json answer = {{"error", "refused"}, {"message", file.problem}};
  for (const HostIdRange& range : file.ranges) answer["blocked"].push_back(shown(range));
  return answer;
}

// Numbers with a space between two of them.
template <std::size_t kCount>
std::array<std::uint64_t, kCount> NumbersIn(std::string_view text) {
  std::array<std::uint64_t, kCount> numbers{};
  std::istringstream in{std::string(text)};
  for (std::uint64_t& number : numbers) in >> number;
  return numbers;
}

Result<std::string> Sound(const Result<void>& checked) {
  if (!checked) return checked.error();
  return std::string("sound");
}
Result<std::string> CheckPool(std::string_view text) {
  const auto [first, count, ids, pods] = NumbersIn<4>(text);
  return Sound(CheckIdPool({first, count, ids, pods}));
}
Result<std::string> CheckRange(std::string_view text) {
  const auto [first, length] = NumbersIn<2>(text);
  return Sound(internal::CheckMapping(first, length));
}
Result<std::string> CheckUid(std::string_view text) { return Sound(internal::CheckPodUid(text)); }
// Beside a pattern that is sound.
Result<std::string> CheckPattern(std::string_view text) {
  const auto policy = VerificationPolicy::Make(Verification::kNeverVerifyAllowlistedImages,
                                               {"sound", std::string(text)});
  if (!policy) return policy.error();
  return std::string("sound");
}

// For both kinds of IDs.
Result<IdPool> PoolOf(std::string_view output) {
  const std::string ids(output);
  return PoolOfSubordinateIds({.user_exists = true, .tool_exists = true, .uids = ids, .gids = ids});
}

Json MeaningOfImage(const std::string& text) {
  Json answer = {{"repository", RepositoryOf(text)}};
  if (const auto full = NormaliseImage(text)) answer["full"] = *full;
  if (const auto parts = PartsOfImage(text)) {
    answer.update({{"name", parts->name},
                   {"domain", parts->domain},
                   {"path", parts->path},
                   {"tag", parts->tag},
                   {"digest", parts->digest}});
  } else {
    answer["error"] = "does not parse";
  }
  return answer;
}

const std::map<std::string, Meaning> kFunctions = {{"DecodeImageIndex", Of(DecodeImageIndex)},
                                                   {"DecodeRuntimeStatus", Of(DecodeRuntimeStatus)},
                                                   {"DecodePodList", Of(DecodePodList)},
                                                   {"DecodeImageList", Of(DecodeImageList)},
                                                   {"DecodeAuthDocument", Of(DecodeAuthDocument)},
                                                   {"ParsePlatform", Of(ParsePlatform)},
                                                   {"ParseTimestamp", Of(ParseTimestamp)},
                                                   {"DecodeUsernsFile", MeaningOfUsernsFile},
                                                   {"DecodePulledRecord", Of(DecodePulledRecord)},
                                                   {"DecodePullIntent", Of(DecodePullIntent)},
                                                   {"PoolOfSubordinateIds", Of(PoolOf)},
                                                   {"CheckIdPool", Of(CheckPool)},
                                                   {"CheckMapping", Of(CheckRange)},
                                                   {"CheckPodUid", Of(CheckUid)},
                                                   {"AllowlistPattern", Of(CheckPattern)},
                                                   {"ParseImage", MeaningOfImage}};

bool Refused(const Json& answer) { return answer.is_object() && answer.contains("error"); }

// Each line of each file, and where it stands.
void ForEach(const std::function<void(const Meaning&, const std::string& of, Json& line)>& visit,
             bool rewrite = false) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WAYBILL_FIXTURES "/texts")) {
    std::ifstream in(entry.path());
    std::string of;
    std::string written;
    int number = 0;
    for (std::string text; std::getline(in, text);) {
      Json line = Json::parse(text);
      if (line.contains("of")) of = line["of"];
      BOOST_TEST_CONTEXT(entry.path().filename().string() << ":" << ++number) {
        if (line.contains("in")) visit(kFunctions.at(of), of, line);
      }
      written += line.dump() + "\n";
    }
    in.close();
    if (rewrite) WriteFile(entry.path(), written);
    ++files;
  }
  BOOST_TEST(files == 16);
}

std::string CodeOf(const Json& answer) {
  return Refused(answer) ? answer["error"].get<std::string>() : "accepted";
}

}  // namespace

BOOST_AUTO_TEST_CASE(texts_mean_what_the_files_say) {
  const bool rewrite = std::getenv("WAYBILL_REWRITE") != nullptr;
  int seen = 0;
  ForEach(
      [&](const Meaning& meaning, const std::string&, Json& line) {
        const Json answer = meaning(line["in"]);
        if (rewrite) {
          line["answer"] = answer;
        } else {
          BOOST_TEST(nlohmann::json(answer) == nlohmann::json(line["answer"]));
        }
        ++seen;
      },
      rewrite);
  BOOST_TEST(seen > 400);
}

// A document cut short is refused; one with a flipped bit is read within its bounds.
BOOST_AUTO_TEST_CASE(every_prefix_and_flipped_byte_ends_well) {
  ForEach([](const Meaning& meaning, const std::string& of, Json& line) {
    const std::string text = line["in"];
    const bool document = of.starts_with("Decode");
    const bool accepted = !Refused(line["answer"]);
    const std::size_t end = text.find_last_not_of(" \n") + 1;
    for (std::size_t at = 0; at < end; ++at) {
      const Json cut = meaning(text.substr(0, at));
      if (document && accepted) BOOST_TEST(Refused(cut), at);
      if (text.size() > 400 && !accepted) continue;
      std::string flipped = text;
      for (const char bit : {'\x01', '\x20', '\x80'}) {
        flipped[at] = static_cast<char>(text[at] ^ bit);
        const auto answer = meaning(flipped);
        if (of == "DecodeImageIndex") BOOST_TEST(!answer.empty());
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(lists_and_names_have_bounds) {
  const auto pods = [](std::size_t bytes) {
    return CodeOf(Of(DecodePodList)(R"({"items":[{"metadata":{"uid":")" + std::string(bytes, 'x') +
                                    R"("}}]})"));
  };
  BOOST_TEST(pods(kMaxPodUidBytes) == "accepted");
  BOOST_TEST(pods(kMaxPodUidBytes + 1) == "limitExceeded");
  BOOST_TEST(CodeOf(Of(DecodePodList)(R"({"items":[],"x":)" + std::string(5000, '[') +
                                      std::string(5000, ']') + "}")) == "limitExceeded");
  const auto images = [](std::size_t bytes) {
    return CodeOf(Of(DecodeImageList)(R"({"images":[{"id":")" + std::string(bytes, 'a') + "\"}]}"));
  };
  BOOST_TEST(images(kMaxImageRefBytes) == "accepted");
  BOOST_TEST(images(kMaxImageRefBytes + 1) == "limitExceeded");
  BOOST_TEST(ParsePlatform(std::string(1 << 20, '/')).error().message.size() < 300U);
  const auto type = DecodeImageIndex(R"({"schemaVersion":2,"manifests":[{"mediaType":")" +
                                     std::string(100'000, 'x') + "\"}]}");
  BOOST_TEST(type.error().message.size() < 500U);
}

BOOST_AUTO_TEST_CASE(runtime_handlers_have_a_bound) {
  const auto read = [](const std::string& handlers, const std::string& config = "") {
    return Of(DecodeRuntimeStatus)(R"({"runtimeHandlers":[)" + handlers + "]" + config + "}");
  };
  std::string many = "{}";
  for (std::size_t i = 0; i < kMaxRuntimeHandlers; ++i) {
    many += R"(,{"name":"h)" + std::to_string(i) + "\"}";
  }
  // With the nameless one merged, there are exactly as many as allowed.
  const std::string merging = R"(,"config":{"containerd":{"defaultRuntimeName":"h7"}})";
  BOOST_TEST(read(many, merging).size() == kMaxRuntimeHandlers);
  const Json one_more = read(many);
  BOOST_TEST(CodeOf(one_more) == "limitExceeded");
  BOOST_TEST(one_more["message"] == "the list has 1025 runtime handlers, and 1024 are allowed");
  const Json two_more = read(many + R"(,{"name":"x"})");
  BOOST_TEST(CodeOf(two_more) == "limitExceeded");
  BOOST_TEST(two_more["message"].get<std::string>().starts_with(
      "runtimeHandlers: it has more than 1025 elements"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
