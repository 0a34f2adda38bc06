// A kubelet's file of ID mappings: what is accepted, and what a refused file blocks.

#include "migrations/kubelet_files/userns_file.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "store/pods/pool.h"
#include "tests/support/draw.h"
#include "tests/support/mutation.h"
#include "tests/support/temp_dir.h"
#include "waybill/limits.h"

namespace waybill {

// How Boost.Test prints it.
static std::ostream& operator<<(std::ostream& out, const HostIdRange& range) {
  return out << range.first << "+" << range.length;
}

namespace testing {

BOOST_AUTO_TEST_SUITE(userns_file)

namespace {

using internal::DecodeUsernsFile;
using internal::EncodeUsernsFile;
using internal::UsernsFile;
using Ranges = std::vector<HostIdRange>;

const std::filesystem::path kPods = std::filesystem::path(WAYBILL_FIXTURES) / "kubelet-v1.36/pods";

UsernsFile Decode(std::string_view content) {
  return DecodeUsernsFile("uid", "pods/uid/userns", content);
}

std::string Mapping(const std::string& host_id, const std::string& length,
                    const std::string& container_id = "0") {
  return R"({"hostId":)" + host_id + R"(,"containerId":)" + container_id + R"(,"length":)" +
         length + "}";
}

std::string File(const std::string& uids, const std::string& gids) {
  return R"({"uidMappings":[)" + uids + R"(],"gidMappings":[)" + gids + "]}";
}

// The same for both.
std::string FileOf(const std::string& mapping) { return File(mapping, mapping); }

void CheckTaken(std::string_view content, HostIdRange range) {
  BOOST_TEST_CONTEXT(content) {
    const UsernsFile file = Decode(content);
    BOOST_TEST_REQUIRE(file.mapping.has_value(), file.problem);
    BOOST_TEST(*file.mapping == range);
    BOOST_TEST(file.problem == "");
    BOOST_TEST(file.ranges.empty());
  }
}

void CheckRefused(std::string_view content, const Ranges& ranges, std::string_view about) {
  BOOST_TEST_CONTEXT(content.substr(0, 300)) {
    const UsernsFile file = Decode(content);
    BOOST_TEST(!file.mapping.has_value());
    BOOST_TEST(file.ranges == ranges, boost::test_tools::per_element());
    BOOST_TEST(file.problem.find(about) != std::string::npos, file.problem);
  }
}

void CheckUnreadable(std::string_view content, std::string_view about = "it can't be read: ") {
  CheckRefused(content, {}, about);
}

}  // namespace

BOOST_AUTO_TEST_CASE(bounds) {
  const auto many = [](std::size_t count) {
    std::string list;
    for (std::size_t i = 0; i < count; ++i) {
      list += (i == 0 ? "" : ",") + Mapping(std::to_string((i + 1) * kIdsPerBlock), "65536");
    }
    return list;
  };
  const UsernsFile most = Decode(File(many(kMaxMappingsPerFile), ""));
  BOOST_TEST(most.ranges.size() == kMaxMappingsPerFile);
  BOOST_TEST(!most.mapping.has_value());
  CheckUnreadable(File(many(kMaxMappingsPerFile + 1), ""), "it has more than 340 elements");
  CheckUnreadable(File(many(171), many(170)), "they have more than 340 mappings");

  std::string file = FileOf(Mapping("65536", "65536"));
  file.resize(kMaxUsernsFileBytes, ' ');
  CheckTaken(file, {65536, 65536});
  CheckUnreadable(file + " ", "65537 bytes");
}

namespace {

// The field as another reader sees it, in whole files without duplicate keys.
nlohmann::json FieldOf(const nlohmann::json& object, std::string_view name) {
  for (const auto& [key, value] : object.items()) {
    std::string lower;
    for (const char c : key) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    if (lower == name) return value;
  }
  return nullptr;
}

void CheckSays(const std::string& text, HostIdRange range) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return;  // what is passed over has a number that no double holds
  for (const std::string_view list : {"uidmappings", "gidmappings"}) {
    const auto mappings = FieldOf(json, list);
    BOOST_TEST_REQUIRE(mappings.size() == 1U);
    BOOST_TEST(FieldOf(mappings[0], "hostid").get<std::uint64_t>() == range.first);
    BOOST_TEST(FieldOf(mappings[0], "length").get<std::uint64_t>() == range.length);
    const auto container_id = FieldOf(mappings[0], "containerid");
    BOOST_TEST((container_id.is_null() || container_id == 0));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(damaged_files_never_say_anything_else) {
  std::vector<std::string> documents = {
      FileOf(R"({"hostId":131072,"length":65536})"),
      File(Mapping("65536", "65536") + "," + Mapping("131072", "65536"), Mapping("1", "2", "3")),
      R"({"UIDMAPPINGS":null,"x":{"y":[1,2.5e7,"z"]},"gidMappings":[)" + Mapping("7", "8") + "]}"};
  for (const auto& pod : std::filesystem::directory_iterator(kPods)) {
    documents.push_back(ReadFile(pod.path() / "userns"));
  }
  int taken = 0;
  int blocked = 0;
  std::mt19937_64 random(SeedOfThisRun());
  for (int round = 0; round < 50000; ++round) {
    const std::string text = Mutate(documents[random() % documents.size()], random);
    BOOST_TEST_CONTEXT(text) {
      const UsernsFile file = Decode(text);
      BOOST_TEST_REQUIRE(file.mapping.has_value() == file.problem.empty());
      if (!file.mapping) {
        blocked += file.ranges.empty() ? 0 : 1;
        continue;
      }
      ++taken;
      const auto [first, length] = *file.mapping;
      BOOST_TEST_REQUIRE(internal::CheckMapping(first, length).has_value());
      CheckSays(text, *file.mapping);
      CheckTaken(
          EncodeUsernsFile(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(length)),
          *file.mapping);
    }
  }
  BOOST_TEST(taken > 100);
  BOOST_TEST(blocked > 100);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace testing
}  // namespace waybill
