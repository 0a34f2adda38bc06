// The power fails while ID mappings are exported: each file is old or new, complete, and never
// missing if there was one. After the export all are new, and the old ones are kept. Exporting
// again ends like an undisturbed export. WAYBILL_POWER_CUTS: how many.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "migrations/kubelet/userns_export.h"
#include "migrations/kubelet/userns_file.h"
#include "store/base/files.h"
#include "tests/crash/recorder.h"
#include "tests/support/draw.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(power_cut_userns)

namespace {

namespace fs = std::filesystem;
using internal::EncodeUsernsFile;

constexpr Timestamp kNow{1767323045, 0};
constexpr std::uint32_t kLength = 65536;

// By pod UID: the content of its file.
using Files = std::map<std::string, std::string>;

const Files kOld = {{"broken", "{"},
                    {"moved", EncodeUsernsFile(100 * kLength, kLength)},
                    {"same", EncodeUsernsFile(3 * kLength, kLength)}};

std::vector<PodMapping> Allocations() {
  std::vector<PodMapping> allocations;
  std::uint32_t host_id = kLength;
  for (const std::string pod_uid : {"broken", "moved", "same", "new", "newer"}) {
    allocations.push_back({pod_uid, host_id, kLength, {}, PoolRelation::kInPool});
    host_id += kLength;
  }
  return allocations;
}

void WriteOld(const fs::path& pods) {
  Must(internal::MakePrivateDirectory(pods));
  for (const auto& [pod_uid, content] : kOld) {
    Must(internal::MakePrivateDirectory(pods / pod_uid));
    Must(internal::WriteFileDurably(pods / pod_uid / "userns", content));
  }
}

void Export(const fs::path& directory) {
  const auto plan = Must(internal::UsernsExport::Plan(directory, Allocations(), {}));
  BOOST_TEST(Must(plan.Write(kNow)) == Allocations().size());
}

// How many are new. The others are unchanged.
std::size_t CountNew(const fs::path& pods) {
  std::size_t count = 0;
  for (const PodMapping& allocation : Allocations()) {
    const fs::path file = pods / allocation.pod_uid / "userns";
    const std::string content = fs::exists(file) ? ReadFile(file) : "missing";
    if (content == EncodeUsernsFile(allocation.host_id, kLength)) {
      ++count;
      continue;
    }
    const auto old = kOld.find(allocation.pod_uid);
    BOOST_REQUIRE_EQUAL(content, old == kOld.end() ? "missing" : old->second);
  }
  return count;
}

void CheckOldIsKept(const fs::path& pods) {
  for (const auto& [pod_uid, content] : kOld) {
    BOOST_REQUIRE(FirstLost({{pod_uid, content}}, TreeOf(pods / pod_uid)) == "");
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(at_any_point) {
  Draw draw(SeedOfThisRun());
  const MemoryDir scratch;
  const fs::path directory = scratch / "kubelet";
  const fs::path pods = directory / "pods";
  fs::create_directory(directory);
  Recorder recorder(directory);
  WriteOld(pods);
  Recorder::Mark(0);
  Export(directory);
  Recorder::Mark(1);
  const std::vector<DiskEvent> log = recorder.Take();
  const std::size_t begin = PlaceOfMark(log, 0);
  std::size_t halfway = 0;
  for (std::uint64_t i = 0; i < NumberFromEnv("WAYBILL_POWER_CUTS", 2000); ++i) {
    const std::size_t cut = begin + 1 + draw.Below(log.size() - begin);
    fs::remove_all(directory);
    fs::create_directory(directory);
    PlayPowerCut(log, cut, draw, directory);
    BOOST_TEST_CONTEXT("cut " << i << " after " << cut - begin << " events") {
      const std::size_t count = CountNew(pods);
      if (cut == log.size()) BOOST_REQUIRE_EQUAL(count, Allocations().size());
      if (count > 1 && count < Allocations().size()) ++halfway;
      CheckOldIsKept(pods);
      Export(directory);
      BOOST_REQUIRE_EQUAL(CountNew(pods), Allocations().size());
      CheckOldIsKept(pods);
    }
  }
  BOOST_TEST_MESSAGE(halfway << " cuts left some of the files");
  BOOST_TEST(halfway > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
