// What a store, or a backup, holds about images, for comparing it with another.

#ifndef WAYBILL_BINDINGS_CLI_STORE_CONTENT_H_
#define WAYBILL_BINDINGS_CLI_STORE_CONTENT_H_

#include <string>
#include <vector>

#include "bindings/cli/output.h"
#include "waybill/node_store.h"

namespace waybill::cli {

struct StoreContent {
  // Both without forgotten credentials: the records as they count now, and the same with
  // credentials that are too old.
  std::vector<ImagePulledRecord> records = {};
  std::vector<ImagePulledRecord> records_of_any_age = {};
  std::vector<Revocation> revocations = {};
  std::vector<LedgerEntry> ledger = {};
  std::vector<OpenPull> pulls = {};
  std::vector<QuarantineEntry> quarantine = {};
  bool distrustful = false;
};

// `path`: a store's directory, read without a trace (quiet_store.h) and whatever its witness says,
// or the file of a backup. Ages are those of now, by the limits that are stored. kNotFound,
// kUnsafePath, kIo, kDamaged, kNewerSchema.
Result<StoreContent> ReadStoreContent(const std::string& path);

// One difference. The members that are not empty say what it is about.
struct ContentChange {
  enum class Effect : std::uint8_t { kOpened, kClosed, kOther };
  enum class What : std::uint8_t {
    kNodePods,
    kSecret,
    kServiceAccount,
    kRecord,
    kLedger,
    kQuarantine,
    kDistrust,
    kPull,
  };
  Effect effect = Effect::kOther;
  What what = What::kRecord;
  std::string image_ref = {};
  std::string runtime_handler = {};
  std::string image_name = {};
  std::string who = {};  // namespace/name/uid
  std::string because = {};
};

// From `before` to `after`: what became open, what became closed, and what else changed, and why,
// as far as they tell. Sorted by effect, then by image.
std::vector<ContentChange> Compare(const StoreContent& before, const StoreContent& after);

Json JsonOf(const ContentChange& change);
// One line of text.
std::string TextOf(const ContentChange& change);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_STORE_CONTENT_H_
