// The power fails while a store is made with its first witness, or gets one: whatever is left of
// both, the next start starts.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <vector>

#include "tests/crash/recorder.h"
#include "tests/support/draw.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

namespace {

BOOST_AUTO_TEST_SUITE(first_witness)

namespace fs = std::filesystem;

void Empty(const fs::path& directory) {
  for (const auto& entry : fs::directory_iterator(directory)) fs::remove_all(entry.path());
}

BOOST_AUTO_TEST_CASE(a_power_cut_while_it_is_made_keeps_no_store_from_opening) {
  constexpr int kStates = 400;
  Draw draw(SeedOfThisRun());
  for (const bool is_new : {true, false}) {
    const MemoryDir root;
    NodeStoreOptions options = OptionsIn(root.path());
    std::vector<DiskEvent> log;
    if (!is_new) {
      NodeStoreOptions without = options;
      without.witness = Witness::None();
      Must(Must(NodeStore::Open(without))->Close());
      log = LogOf(root.path());
    }
    const std::size_t before = log.size();
    {
      Recorder recorder(root.path(), FilesAfter(log));
      Must(Must(NodeStore::Open(options))->Close());
      Append(log, recorder.Take());
    }
    FakeClock rebooted;
    rebooted.Reboot();
    options.boot_clock = rebooted.AsBootClock();
    for (int i = 0; i < kStates; ++i) {
      const std::size_t cut = before + draw.Below(log.size() - before + 1);
      BOOST_TEST_CONTEXT((is_new ? "a new store" : "a store without") << ", cut at " << cut) {
        Empty(root.path());
        PlayPowerCut(log, cut, draw, root.path());
        for (int times = 0; times < 2; ++times) {
          auto store = NodeStore::Open(options);
          BOOST_REQUIRE_MESSAGE(store, (store ? "" : store.error().ToString()));
          // Nothing was acknowledged before the first opening ended.
          BOOST_TEST(!(*store)->recovery_report().distrustful,
                     (*store)->recovery_report().distrust_reason);
          Must((*store)->Close());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace

}  // namespace waybill::testing
