// What opening asks of what a store is for: a node, or streams. Asked when a store is opened,
// rebuilt and restored, never in a decision or a commit. What it asks of single values, and what is
// kept of each table, is in tables.h.

#ifndef WAYBILL_STORE_OPENING_PRODUCT_H_
#define WAYBILL_STORE_OPENING_PRODUCT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "store/base/options.h"
#include "store/disk/header.h"
#include "store/disk/store_txn.h"
#include "store/disk/trust.h"
#include "store/opening/inspect.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// A database that takes the place of another: a rebuild and a restore are this one path.
struct Replacing {
  // What is sound of a database that failed its check, or a backup.
  const Salvaged& source;
  // It is the last commit of the store.
  bool is_newest = false;
  // What a backup replaces, as far as it can be read; null: the source itself.
  const Salvaged* old = nullptr;
  // That is sound, and nothing says that it is an old copy itself: in one, credentials may have
  // been revoked since, and ranges handed out.
  bool old_is_newest = false;
  std::string reason;  // of the distrust

  bool Proves(Table table) const { return is_newest && source.Proves(table); }
};

// What was kept; of the report the counts alone.
struct Carried : RestoreReport {
  std::uint64_t intents = 0;
};

struct ProductWords {
  const char* serves;       // what the store is for
  const char* store;        // what it is
  const char* is_anothers;  // of a directory with the other product's store, and the hint to that
  const char* another_hint;
};

class Product {
 public:
  virtual ~Product() = default;

  virtual Purpose purpose() const = 0;
  virtual const ProductWords& words() const = 0;
  // False: after a loss its values are void, and whoever opens it makes them so.
  bool outlives_loss() const { return purpose() == Purpose::kNode; }
  // What is left of a store does not tell whether it was this product's.
  Error NotSaid(const std::string& what) const {
    return {ErrorCode::kDamaged,
            what + ", and nothing says that it was for " + words().serves + "; nothing was changed",
            "if it was for streaming requests, remove the directory: every token is void in any "
            "case"};
  }

  // Whether a store may be made in options.directory, which has none.
  virtual Result<void> CheckPlace(const NodeStoreOptions&) const { return {}; }
  // Why a new store starts distrustful, although none was lost.
  virtual Result<Distrust> DistrustOfNew(const NodeStoreOptions&) const { return Distrust(); }
  // What is in a new store. `lost`: why the one before counts as lost; empty: there was none.
  virtual Result<void> FillNew(StoreTxn&, const NodeStoreOptions&,
                               const std::string& /*lost*/) const {
    return {};
  }
  // Whether a database that does not say what it is for may have been this product's.
  virtual bool MayHaveBeen(const Salvaged&) const { return false; }
  // Writes what is kept into the database that takes the place of another. The clocks, the journal
  // and the distrust are there.
  virtual Result<Carried> CarryOver(StoreTxn&, const Replacing&) const { return Carried(); }

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

// A node's store: what a loss means for it, and what it keeps. node_product.cc
const Product& NodeProduct();

// Those that a caller takes; the first one makes a store where there is none.
using Products = std::vector<const Product*>;

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_PRODUCT_H_
