// schema/README.md, the map of the database, must match the code.

#include <array>
#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "store/disk/envelope.h"
#include "store/disk/tables.h"
#include "tests/support/temp_dir.h"

BOOST_AUTO_TEST_SUITE(schema_map)

namespace {

using waybill::internal::Key16;
using waybill::internal::RecordKind;

std::string Map() { return waybill::testing::ReadFile(WAYBILL_FIXTURES "/../../schema/README.md"); }

std::string NameOf(const Key16& key) {
  return {reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_table_is_drawn) {
  const std::string map = Map();
  for (const auto& table : waybill::internal::kTables) {
    BOOST_TEST_CONTEXT(table.name) {
      BOOST_TEST(map.find("── " + std::string(table.name) + "/") != std::string::npos);
    }
  }
  std::size_t drawn = 0;
  for (std::size_t at = map.find("├── "); at != std::string::npos; at = map.find("── ", at + 1)) {
    const std::size_t end = map.find_first_of(" \n", at + std::string("├── ").size());
    if (map[end - 1] == '/' && map.find("    key    ", end) < map.find("── ", end)) ++drawn;
  }
  BOOST_TEST(drawn == waybill::internal::kTableCount);
}

BOOST_AUTO_TEST_CASE(each_header_record_is_drawn) {
  const std::string map = Map();
  for (const Key16& key : {waybill::internal::kIdentityKey, waybill::internal::kStateKey,
                           waybill::internal::kTrustKey}) {
    BOOST_TEST(map.find("── \"" + NameOf(key) + "\"") != std::string::npos, NameOf(key));
  }
}

BOOST_AUTO_TEST_CASE(each_kind_has_its_number) {
  const std::string map = Map();
  const std::array<std::pair<RecordKind, std::string_view>, 12> kinds = {{
      {RecordKind::kIdentity, "Identity"},
      {RecordKind::kState, "State"},
      {RecordKind::kTrustJournal, "TrustJournal"},
      {RecordKind::kImage, "Image"},
      {RecordKind::kPullIntent, "PullIntent"},
      {RecordKind::kQuarantine, "Quarantine"},
      {RecordKind::kPreloadedRecord, "PreloadedRecord"},
      {RecordKind::kKubeletFile, "KubeletFile"},
      {RecordKind::kRuntimeHandler, "RuntimeHandler"},
      {RecordKind::kHostIds, "HostIds"},
      {RecordKind::kRevocation, "Revocation"},
      {RecordKind::kStreamingToken, "StreamingToken"},
  }};
  for (const auto& [kind, name] : kinds) {
    const std::string entry = std::to_string(static_cast<int>(kind)) + " " + std::string(name);
    BOOST_TEST(map.find(entry) != std::string::npos, entry);
  }
}

BOOST_AUTO_TEST_CASE(each_schema_version_is_listed) {
  const std::string map = Map();
  BOOST_TEST(map.find("Schema version " + std::to_string(waybill::kNewestSchema) + ".") !=
             std::string::npos);
  for (auto version = waybill::kOldestSchema; version <= waybill::kNewestSchema; ++version) {
    BOOST_TEST(map.find("\n| " + std::to_string(version) + " | ") != std::string::npos, version);
  }
}

BOOST_AUTO_TEST_CASE(an_envelope_is_as_drawn) {
  const Key16 key = Key16::OfName("0123456789abcdef");
  const std::array<std::uint8_t, 5> payload = {1, 2, 3, 4, 5};
  const auto value = waybill::internal::Seal(key, RecordKind::kPullIntent, 1, payload);
  BOOST_TEST(value.size() == 16U + 8U);
  BOOST_TEST(std::to_integer<int>(value[0]) == 1);
  BOOST_TEST(std::to_integer<int>(value[1]) == 5);
  BOOST_TEST(std::to_integer<int>(value[2]) == 1);
  BOOST_TEST(std::to_integer<int>(value[3]) == 0);
  BOOST_TEST(std::to_integer<int>(value[4]) == 5);
  for (std::size_t i = 0; i < payload.size(); ++i) {
    BOOST_TEST(std::to_integer<int>(value[16 + i]) == payload[i]);
  }
  for (std::size_t i = 21; i < 24; ++i) BOOST_TEST(std::to_integer<int>(value[i]) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
