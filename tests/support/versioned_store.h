// A closed store, to be migrated, backed up, restored or damaged.

#ifndef WAYBILL_TESTS_SUPPORT_VERSIONED_STORE_H_
#define WAYBILL_TESTS_SUPPORT_VERSIONED_STORE_H_

#include <functional>
#include <string>
#include <utility>

#include "store/base/options.h"
#include "store/maintenance.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"
#include "tests/support/versions.h"
#include "waybill/values.h"

namespace waybill::testing {

class VersionedStore {
 public:
  // Empty: the first opening creates a store. The clock is later than the golden stores.
  VersionedStore() { clock_.AdvanceSeconds(std::int64_t{365} * 24 * 60 * 60); }
  explicit VersionedStore(std::uint32_t golden) : VersionedStore() {
    PlaceGolden(directory(), golden);
  }

  std::filesystem::path directory() const { return scratch_ / "store"; }
  std::filesystem::path database() const { return directory() / "data.mdb"; }
  std::filesystem::path witness() const { return scratch_ / "witness"; }
  std::filesystem::path scratch() const { return scratch_.path(); }
  FakeClock& clock() { return clock_; }

  NodeStoreOptions Options() const {
    NodeStoreOptions options = OptionsIn(scratch_.path());
    options.clock = clock_.AsClock();
    return options;
  }
  // Opens, and closes again.
  OpeningReport Open(const std::function<void(NodeStore&)>& then = nullptr) const {
    auto store = Must(NodeStore::Open(Options()));
    if (then) then(*store);
    OpeningReport report = store->recovery_report();
    Must(store->Close());
    return report;
  }

  MigrateOptions To(std::uint32_t version) const {
    MigrateOptions options{.directory = directory(), .to = version};
    options.clock = clock_.AsClock();
    options.boot_clock = FakeClock().AsBootClock();
    options.map_bytes = kMapBytes;
    return options;
  }
  MigrationReport Migrate(std::uint32_t version, bool accept_loss = false) const {
    MigrateOptions options = To(version);
    options.accept_loss = accept_loss;
    return Must(waybill::MigrateStore(options));
  }
  RestoreOptions From(const std::filesystem::path& backup) const {
    RestoreOptions options{.directory = directory(), .backup = backup};
    options.clock = clock_.AsClock();
    options.boot_clock = FakeClock().AsBootClock();
    options.map_bytes = kMapBytes;
    return options;
  }

  // Everything on disk except which process had it open last.
  Tree Files() const {
    Tree tree = TreeOf(scratch_.path());
    tree.erase("store/owner.lock");
    tree.erase("store/lock.mdb");
    return tree;
  }

 private:
  static constexpr std::uint64_t kMapBytes = std::uint64_t{64} << 20U;
  MemoryDir scratch_;
  FakeClock clock_;
};

// Fixtures.
struct OldestStore {
  const VersionedStore store{1};
};
struct NoStoreYet {
  const VersionedStore store;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_VERSIONED_STORE_H_
