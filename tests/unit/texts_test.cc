// fixtures/texts/*.jsonl: what each text means to the function that the first line names. Lines are
// {"case":…,"why":…}, and {"in":…,"answer":…}, as as_json.h writes answers. WAYBILL_REWRITE=1
// writes the answers of this build over those of the files: read the difference before you commit
// it.

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "migrations/kubelet/userns_file.h"
#include "store/node/userns/pool.h"
#include "tests/support/as_json.h"
#include "tests/support/temp_dir.h"
#include "waybill/image_index.h"
#include "waybill/image_name.h"
#include "waybill/kubelet_format.h"
#include "waybill/limits.h"
#include "waybill/policy.h"
#include "waybill/runtime_handler.h"
#include "waybill/user_namespace.h"

namespace waybill::testing {

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

Json ToJson(const std::vector<ImageOnNode>& images) {
  Json list = Json::array();
  for (const ImageOnNode& image : images) {
    list.push_back(
        {{"id", image.id}, {"repoTags", image.repo_tags}, {"repoDigests", image.repo_digests}});
  }
  return list;
}

Json ToJson(const UserNamespacePool& pool) {
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
  return Sound(CheckUserNamespacePool({first, count, ids, pods}));
}
Result<std::string> CheckRange(std::string_view text) {
  const auto [first, length] = NumbersIn<2>(text);
  return Sound(internal::CheckMapping(first, length));
}
Result<std::string> CheckUid(std::string_view text) { return Sound(internal::CheckPodUid(text)); }
// Beside a pattern that is sound.
Result<std::string> CheckPattern(std::string_view text) {
  const auto policy = VerificationPolicy::Make(VerificationMode::kNeverVerifyAllowlistedImages,
                                               {"sound", std::string(text)});
  if (!policy) return policy.error();
  return std::string("sound");
}

// For both kinds of IDs.
Result<UserNamespacePool> PoolOf(std::string_view output) {
  const std::string ids(output);
  return PoolOfSubordinateIds({.user_exists = true, .tool_exists = true, .uids = ids, .gids = ids});
}

Json MeaningOfImage(const std::string& text) {
  Json answer = {{"repository", RepositoryOf(text)}};
  if (const auto full = NormaliseImage(text)) answer["full"] = *full;
  if (const auto parts = ParseImage(text)) {
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
                                                   {"CheckUserNamespacePool", Of(CheckPool)},
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
  BOOST_TEST(two_more["message"] ==
             "runtimeHandlers: has 1026 runtime handlers, above the 1025 allowed");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
