// Version 5 keeps evidence: a ledger of preloaded images, the spellings of images, and open pulls
// in place of intents.
//
// Up: each intent becomes a pull of unknown end, which ended now. The first list of images is that
// of a first start: images with neither record nor intent enter the ledger, as version 4 presumes.
//
// Down: version 4 presumes an image without a record preloaded, and finds a record under the very
// ref only. So each image with a record gets one under each of its spellings, open pulls become
// intents, and one of anything becomes distrust. The records' reasons for being closed are dropped,
// too.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/empty_list.h"
#include "store/base/try.h"
#include "store/engine/trust/trust.h"
#include "store/node/pulls/open_pulls.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/keys.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"

namespace waybill::internal {

namespace v4_to_v5 {
namespace {

Result<std::vector<std::pair<Key16, UnresolvedPull>>> PullsAndKeys(const StoreTxn& txn) {
  std::vector<std::pair<Key16, UnresolvedPull>> pulls;
  TRY(txn.ForEach(Table::kIntents, [&](const Key16& key, Payload payload) -> Result<bool> {
    auto pull = DecodeUnresolvedPull(payload);
    if (!pull) return Error{ErrorCode::kDamaged, "an open pull can't be read", {}, Hint::kRecover};
    pulls.emplace_back(key, std::move(*pull));
    return true;
  }));
  return pulls;
}

Result<void> Up(StepRun& run) {
  auto pulls = TRY(PullsAndKeys(run.txn));
  for (const auto& [key, pull] : pulls) {
    TRY(run.txn.Delete(Table::kIntents, key));
    TRY(TakeOverIntent(run.txn, pull.image, pull.runtime_handler, pull.began, run.now));
    if (auto r = Report(run, pulls.size()); !r) return r;
  }
  // Version 4 has no last ID, and the store may have been at version 5 before.
  CountAllAsGiven(run.txn);
  run.txn.state().awaits_first_list = true;
  // A list from before may enter nothing in the ledger: nobody knows what was removed meanwhile.
  run.txn.state().evidence_removed = run.txn.sequence();
  run.txn.Touch();
  return {};
}

Result<void> PullsDown(StepRun& run) {
  auto pulls = TRY(PullsAndKeys(run.txn));
  bool anything = false;
  for (const auto& [key, pull] : pulls) {
    TRY(run.txn.Delete(Table::kIntents, key));
    anything = anything || pull.anything;
  }
  for (auto& [key, pull] : pulls) {
    if (pull.anything || pull.nothing_at != 0) continue;
    pull.id = {};
    TRY(run.txn.PutAs(SchemaOf(4), Table::kIntents,
                      OlderIntentKey(pull.image, pull.runtime_handler, run.txn.seed()),
                      EncodeUnresolvedPull(pull)));
    if (auto r = Report(run, pulls.size()); !r) return r;
  }
  if (!anything) return {};
  return SetDistrust(run.txn, {DegradedKind::kOther, std::string(kUnnamedPulls)});
}

Result<bool> InQuarantine(const StoreTxn& txn, const std::string& image_ref) {
  if (txn.state().digest(Table::kQuarantine).count == 0) return false;
  auto refs = TRY(RefsOfImage(txn, image_ref));
  for (const std::string& ref : refs) {
    if (TRY(IsQuarantined(txn, QuarantineKind::kImageRef, ref))) return true;
  }
  return false;
}

// Records whose credentials RecordsDown drops.
Result<std::uint64_t> CountQuarantined(const StoreTxn& txn) {
  std::uint64_t count = 0;
  if (txn.state().kubelet_rules || txn.state().digest(Table::kQuarantine).count == 0) return count;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    const auto record = DecodePulledRecordValue(payload);
    if (!record || record->credential_mapping.empty()) return true;
    auto there = InQuarantine(txn, record->image_ref);
    if (!there) return there;
    count += *there ? 1U : 0U;
    return true;
  }));
  return count;
}

// Entries of the ledger whose image is in quarantine under one spelling. Nothing is proven of it
// under the others either: it gets a record without credentials.
Result<std::vector<ImagePulledRecord>> QuarantinedEntries(const StoreTxn& txn) {
  std::vector<ImagePulledRecord> records;
  TRY(txn.ForEach(Table::kLedger, [&](const Key16&, Payload payload) -> Result<bool> {
    const auto entry = DecodeLedgerEntry(payload);
    if (!entry) return true;
    auto there = InQuarantine(txn, entry->image_ref);
    if (!there || !*there) return there ? Result<bool>(true) : there;
    auto recorded = AnyRecordOfImage(txn, entry->image_ref);
    if (!recorded) return recorded;
    if (!*recorded) {
      records.push_back({.image_ref = entry->image_ref,
                         .last_updated = txn.now(),
                         .stamp = txn.sequence(),
                         .runtime_handler = entry->runtime_handler});
    }
    return true;
  }));
  return records;
}

Result<bool> HasSharedDigests(const StoreTxn& txn) {
  bool shared = false;
  TRY(txn.ForEach(Table::kSpellings, [&](const Key16&, Payload payload) -> Result<bool> {
    const auto row = DecodeSpelling(payload);
    shared = !row || row->image.empty();
    return !shared;
  }));
  return shared;
}

// A record by what names it.
struct Name {
  std::string image_ref;
  std::string runtime_handler;

  Key16 Key(const StoreTxn& txn) const { return PulledKey(image_ref, runtime_handler, txn.seed()); }
  friend auto operator<=>(const Name&, const Name&) = default;
};

// A spelling that several records share gets a copy of the first. The order must be the same in
// every store, which the order of the keys is not.
Result<void> CopyToSpellings(StepRun& run, std::vector<Name> records) {
  std::sort(records.begin(), records.end());
  for (const Name& name : records) {
    auto refs = TRY(RefsOfImage(run.txn, name.image_ref));
    std::optional<ImagePulledRecord> record;
    for (std::string& ref : refs) {
      const Key16 key = Name{ref, name.runtime_handler}.Key(run.txn);
      if (TRY(run.txn.Get(Table::kPulled, key))) continue;
      if (!record) record = TRY(RecordUnder(run.txn, name.Key(run.txn)));
      record->image_ref = std::move(ref);
      TRY(PutAsOldest(run, key, *record, 4));
      TRY(Report(run, records.size()));
    }
  }
  return {};
}

Result<void> RecordsDown(StepRun& run) {
  const bool kubelet = run.txn.state().kubelet_rules;
  const bool quarantine = !kubelet && run.txn.state().digest(Table::kQuarantine).count != 0;
  std::vector<ImagePulledRecord> of_ledger;
  if (quarantine) of_ledger = TRY(QuarantinedEntries(run.txn));
  std::vector<Name> records;
  TRY(RewriteRecords(run, 4, [&](ImagePulledRecord& record) -> Result<void> {
    // Version 4 finds quarantine under the exact ref only.
    if (quarantine && TRY(InQuarantine(run.txn, record.image_ref))) {
      record.credential_mapping.clear();
    }
    record.closed_because.clear();
    record.closed_by_list = false;
    record.absent_since.reset();
    records.push_back({record.image_ref, record.runtime_handler});
    return {};
  }));
  for (const ImagePulledRecord& record : of_ledger) {
    records.push_back({record.image_ref, record.runtime_handler});
    TRY(PutAsOldest(run, records.back().Key(run.txn), record, 4));
    TRY(Report(run, records.size()));
  }
  // Under the rules `kubelet` a record counts for its own ref only.
  if (kubelet) return {};
  auto shared = TRY(HasSharedDigests(run.txn));
  if (shared && !records.empty()) {
    TRY(SetDistrust(run.txn, {DegradedKind::kOther, std::string(kSharedDigests)}));
  }
  return CopyToSpellings(run, std::move(records));
}

Result<void> Down(StepRun& run) {
  if (auto r = PullsDown(run); !r) return r;
  return RecordsDown(run);
}

Result<std::vector<std::string>> Losses(const StoreTxn& txn) {
  std::vector<std::string> losses;
  if (!txn.schema().has(Table::kLedger)) return losses;
  if (const std::uint64_t count = txn.state().digest(Table::kLedger).count; count > 0) {
    losses.push_back("the ledger of " + HowMany(count, "preloaded image") +
                     ": version 4 presumes every image without a record or an intent preloaded");
  }
  auto pulls = TRY(AllOpenPulls(txn));
  std::uint64_t ended = 0;
  for (const UnresolvedPull& pull : pulls) {
    if (pull.anything) {
      losses.emplace_back("a pull of anything: the store turns distrustful instead");
    } else if (pull.ended && pull.nothing_at == 0) {
      ++ended;
    }
  }
  auto quarantined = TRY(CountQuarantined(txn));
  if (quarantined > 0) {
    losses.push_back("the credentials of " + HowMany(quarantined, "record") +
                     " in quarantine: to be verified again");
  }
  if (TRY(HasSharedDigests(txn))) {
    losses.emplace_back("which digests two images have: the store turns distrustful instead");
  }
  if (ended > 0) {
    losses.push_back("when " + HowMany(ended, "open pull") +
                     " ended: in version 4 an intent stays until its image is pulled");
  }
  return losses;
}

}  // namespace
}  // namespace v4_to_v5

const Step kStepV4ToV5 = {4, 5, "evidence", v4_to_v5::Up, v4_to_v5::Down, v4_to_v5::Losses};

}  // namespace waybill::internal
