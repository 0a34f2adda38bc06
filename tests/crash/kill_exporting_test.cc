// An export is killed before each call that changes or syncs a file. The kubelet then finds the old
// folders or the new ones, complete, and the new ones only with all ID mappings. Each mapping is
// old or new, and never missing if there was one. Exporting again ends like an undisturbed export,
// and no old file is lost: nor where the power fails. WAYBILL_POWER_CUTS: how many cuts.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "migrations/kubelet_files/kubelet_export.h"
#include "migrations/kubelet_files/userns_file.h"
#include "tests/crash/recorder.h"
#include "tests/support/draw.h"
#include "tests/support/forked_child.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(kill_exporting)

namespace {

namespace fs = std::filesystem;
using internal::EncodeUsernsFile;
using internal::ExportContent;
using internal::ExportKubeletDirectory;

constexpr Timestamp kNow{1767323045, 0};
const std::vector<std::string> kPods = {"moved", "same", "new", "broken"};

std::uint32_t HostIdOf(std::size_t pod) { return static_cast<std::uint32_t>((pod + 1) << 16U); }

ExportContent SomeContent() {
  ExportContent content;
  for (int i = 0; i < 5; ++i) {
    content.store.images.push_back({{.subject = "new " + std::to_string(i),
                                     .pulled = internal::PulledPart{.last_updated = kNow}}});
    content.store.pulls.push_back({.image = "new " + std::to_string(i)});
  }
  content.preloaded = {{"new", kNow, {"x"}}};
  content.store.quarantine = {{QuarantineKind::kImage, Sha256Hex("unreadable"), "", "", kNow}};
  for (std::size_t i = 0; i < kPods.size(); ++i) {
    content.allocations.push_back({kPods[i], HostIdOf(i), 65536, {}, PoolRelation::kInPool});
  }
  content.now = kNow;
  return content;
}

int Export(const fs::path& directory) {
  return ExportKubeletDirectory(SomeContent(), {.kubelet_directory = directory}) ? 0 : 3;
}

Tree Folder(const fs::path& directory, std::string_view name) {
  return TreeOf(directory / "image_manager" / name);
}

std::string MappingOf(const fs::path& directory, const std::string& pod) {
  const fs::path file = directory / "pods" / pod / "userns";
  return fs::exists(file) ? ReadFile(file) : "missing";
}

// Whether all are new. The others are unchanged.
bool MappingsAreNew(const fs::path& before, const fs::path& now) {
  bool all = true;
  for (std::size_t i = 0; i < kPods.size(); ++i) {
    const std::string mapping = MappingOf(now, kPods[i]);
    if (mapping == EncodeUsernsFile(HostIdOf(i), 65536)) continue;
    BOOST_REQUIRE_EQUAL(mapping, MappingOf(before, kPods[i]));
    all = false;
  }
  return all;
}

// The number of calls.
std::uint64_t KillBeforeEachCall(const fs::path& before, const MemoryDir& scratch,
                                 bool may_be_missing = false) {
  const fs::path now = scratch / "now";
  const auto put_back = [&] {
    fs::remove_all(now);
    fs::copy(before, now, fs::copy_options::recursive);
  };
  const Tree was = TreeOf(before);
  put_back();
  BOOST_REQUIRE(Export(now) == 0);
  const Tree pulled = Folder(now, "pulled");
  const Tree pulling = Folder(now, "pulling");
  const Tree preloaded = Folder(now, "observed-preloaded");
  BOOST_REQUIRE(pulled != Folder(before, "pulled"));
  for (std::uint64_t call = 1;; ++call) {
    put_back();
    Child child([&] {
      KillBeforeCall(call);
      return Export(now);
    });
    const int code = child.Wait();
    BOOST_TEST_CONTEXT("killed before call " << call) {
      BOOST_REQUIRE((code == 0 || code == -SIGKILL));
      const bool pulled_is_new = Folder(now, "pulled") == pulled;
      const bool pulling_is_new = Folder(now, "pulling") == pulling;
      if (!may_be_missing || fs::exists(now / "image_manager" / "pulled")) {
        BOOST_REQUIRE((pulled_is_new || Folder(now, "pulled") == Folder(before, "pulled")));
      }
      if (!may_be_missing || fs::exists(now / "image_manager" / "pulling")) {
        BOOST_REQUIRE((pulling_is_new || Folder(now, "pulling") == Folder(before, "pulling")));
      }
      BOOST_REQUIRE((!pulled_is_new || pulling_is_new));
      BOOST_REQUIRE((MappingsAreNew(before, now) || !pulling_is_new));
      BOOST_REQUIRE_EQUAL(FirstLost(was, TreeOf(now)), "");

      BOOST_REQUIRE(Export(now) == 0);
      BOOST_REQUIRE((Folder(now, "pulled") == pulled));
      BOOST_REQUIRE((Folder(now, "pulling") == pulling));
      BOOST_REQUIRE((Folder(now, "observed-preloaded") == preloaded));
      BOOST_REQUIRE(MappingsAreNew(before, now));
      BOOST_REQUIRE(!fs::exists(now / "image_manager" / "export.tmp"));
      for (const std::string& pod : kPods) {
        BOOST_REQUIRE(!fs::exists(now / "pods" / pod / "userns.tmp"));
      }
      BOOST_REQUIRE_EQUAL(FirstLost(was, TreeOf(now)), "");
    }
    if (code == 0) return call;
  }
}

void WriteOldFiles(const fs::path& directory) {
  for (const std::string folder : {"pulled", "pulling", "observed-preloaded"}) {
    for (int i = 0; i < 3; ++i) {
      const std::string key = "old " + std::to_string(i);
      WriteRecordFile(directory, folder, key, folder + " " + key);
    }
  }
  WriteFile(directory / "image_manager" / "waybill", "the witness");
  for (const std::string& pod : kPods) fs::create_directories(directory / "pods" / pod);
  WriteFile(directory / "pods" / "moved" / "userns", EncodeUsernsFile(1U << 20U, 65536));
  WriteFile(directory / "pods" / "same" / "userns", EncodeUsernsFile(HostIdOf(1), 65536));
  WriteFile(directory / "pods" / "broken" / "userns", "{");
}

}  // namespace

BOOST_AUTO_TEST_CASE(into_folders_that_are_there) {
  const MemoryDir scratch;
  WriteOldFiles(scratch / "before");
  BOOST_TEST(KillBeforeEachCall(scratch / "before", scratch) > 40U);
}

BOOST_AUTO_TEST_CASE(into_an_empty_directory) {
  const MemoryDir scratch;
  fs::create_directory(scratch / "before");
  BOOST_TEST(KillBeforeEachCall(scratch / "before", scratch) > 40U);
}

BOOST_AUTO_TEST_CASE(while_the_power_fails) {
  Draw draw(SeedOfThisRun());
  const MemoryDir scratch;
  const fs::path before = scratch / "before";
  const fs::path now = scratch / "now";
  WriteOldFiles(before);
  const Tree was = TreeOf(before);
  fs::copy(before, now, fs::copy_options::recursive);
  std::vector<DiskEvent> log = LogOf(now);
  const std::size_t begin = log.size();
  {
    Recorder recorder(now, FilesAfter(log));
    BOOST_REQUIRE(Export(now) == 0);
    Append(log, recorder.Take());
  }
  for (std::uint64_t i = 0; i < NumberFromEnv("WAYBILL_POWER_CUTS", 1000); ++i) {
    const std::size_t cut = begin + draw.Below(log.size() - begin + 1);
    fs::remove_all(now);
    fs::create_directory(now);
    PlayPowerCut(log, cut, draw, now);
    BOOST_TEST_CONTEXT("cut " << i << " after " << cut - begin << " events") {
      const bool all_are_new = MappingsAreNew(before, now);
      BOOST_REQUIRE((all_are_new || cut < log.size()));
      BOOST_REQUIRE_EQUAL(FirstLost(was, TreeOf(now)), "");
      BOOST_REQUIRE(Export(now) == 0);
      BOOST_REQUIRE(MappingsAreNew(before, now));
      BOOST_REQUIRE_EQUAL(FirstLost(was, TreeOf(now)), "");
    }
  }
}

// Between two renames the folder is missing: this file system can't exchange folders.
BOOST_AUTO_TEST_CASE(where_folders_cannot_be_exchanged) {
  const MemoryDir scratch;
  WriteOldFiles(scratch / "before");
  RefuseExchange(true);
  BOOST_TEST(KillBeforeEachCall(scratch / "before", scratch, true) > 40U);
  RefuseExchange(false);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
