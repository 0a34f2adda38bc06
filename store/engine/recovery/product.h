// What the engine asks of what a store is for: a node, or streams. Asked when a store is opened,
// rebuilt and restored, never in a decision or a commit. What it asks of single values is in
// tables.h.

#ifndef WAYBILL_STORE_ENGINE_RECOVERY_PRODUCT_H_
#define WAYBILL_STORE_ENGINE_RECOVERY_PRODUCT_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "store/base/files.h"
#include "store/base/options.h"
#include "store/engine/database/header.h"
#include "store/engine/database/store_txn.h"
#include "store/engine/recovery/salvage.h"
#include "store/engine/trust/trust.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// A database that failed its check, and the new one that takes its place.
struct Rebuilding {
  const Salvaged& salvaged;
  const std::optional<State>& state;  // of the tree that was salvaged
  bool newest = false;                // that is proven to be the last commit; there is a state
  std::string reason;                 // of the distrust

  bool HasAll(Table table) const { return state && salvaged.Has(table, *state); }
  bool Proves(Table table) const { return newest && salvaged.Proves(table, *state); }
};

// The store that a backup replaces.
struct Replaced {
  Fd file;  // not valid: there is none
  std::optional<Identity> identity;
  std::optional<State> state;
  std::uint64_t map_bytes = 0;  // 0: unknown
  Salvaged values;
  // It is sound, and nothing says that it is an old copy itself: in one, credentials may have been
  // revoked since, and ranges handed out.
  bool current = false;

  std::uint64_t sequence() const { return state ? state->commit_sequence : 0; }
};

struct Restoring {
  const State& state;  // of the backup; likewise below
  const Salvaged& values;
  const Replaced& replaced;
  std::string reason;  // of the distrust
};

class Product {
 public:
  virtual ~Product() = default;

  virtual Purpose purpose() const = 0;
  // kInvalidArgument: the store in `directory` is of another product.
  virtual Error IsAnothers(const std::filesystem::path& directory) const = 0;
  // False: after a loss its values are void, and whoever opens it makes them so.
  virtual bool outlives_loss() const { return true; }

  // Whether a store may be made in options.directory, which has none.
  virtual Result<void> CheckPlace(const NodeStoreOptions&) const { return {}; }
  // The same where `trace` tells of a store that was lost. Only asked if !outlives_loss().
  virtual Result<void> CheckLost(const std::string& /*trace*/) const { return {}; }
  // Why a new store starts distrustful, although none was lost.
  virtual Result<Distrust> DistrustOfNew(const NodeStoreOptions&) const { return Distrust(); }
  // What is in a new store. `lost`: why the one before counts as lost; empty: there was none.
  virtual Result<void> FillNew(StoreTxn& txn, const NodeStoreOptions& options,
                               const std::string& lost) const = 0;
  // kDamaged: a database that failed its check does not say that it is one. `failure` says how.
  virtual Result<void> CheckRebuild(const Salvaged& salvaged, const std::string& failure) const = 0;
  // What a rebuilt store keeps.
  virtual Result<void> FillRebuilt(StoreTxn& txn, const Rebuilding& from,
                                   OpeningReport& report) const = 0;

  // kConflict: `backup`, which is one, does not replace a store of another product.
  virtual Error ReplacesOnlyOwn(const std::filesystem::path& backup) const = 0;
  // What a restored store has, of the backup and of what it replaces.
  virtual Result<void> FillRestored(StoreTxn& txn, const Restoring& from,
                                    RestoreReport& report) const = 0;

  // The store may be an older copy, for that reason.
  virtual Result<void> DropStale(StoreTxn&, const std::string&, OpeningReport&) const { return {}; }
  // Whether a store with that identity and state, whose witness comes to the path that the options
  // name, begins to stand for what others did there. Then OnTakeOver is part of the commit that
  // remembers the path.
  virtual Result<bool> TakesOver(const NodeStoreOptions&, const Identity&, const State&) const {
    return false;
  }
  virtual Result<void> OnTakeOver(StoreTxn&, const NodeStoreOptions&) const { return {}; }
};

// Those that a caller takes; the first one makes a store where there is none.
using Products = std::vector<const Product*>;

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_RECOVERY_PRODUCT_H_
