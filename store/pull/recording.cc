#include "store/pull/recording.h"

#include <string>
#include <utility>

#include "store/pull/merge.h"
#include "store/record/typed_tables.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

// The record of `image_ref`, a new one where there is none or it can't be read.
Result<ImagePulledRecord> RecordToChange(const StoreTxn& txn, std::string_view image_ref,
                                         bool& is_new) {
  auto found = FindRecord(txn, image_ref);
  if (!found && found.error().code != ErrorCode::kDamaged) return found.error();
  is_new = !found || !*found;
  if (!is_new) return std::move(**found);
  ImagePulledRecord record;
  record.image_ref = std::string(image_ref);
  return record;
}

}  // namespace

Result<void> RecordIntent(StoreTxn& txn, InFlight& in_flight, std::string_view image) {
  InFlight::Entry entry = in_flight.Get(image);
  if (entry.count == 0 && in_flight.size() >= kMaxInFlightImages) {
    return Error{ErrorCode::kLimitExceeded,
                 "pulls of " + std::to_string(kMaxInFlightImages) + " images are in flight already",
                 "record how earlier pulls ended"};
  }
  auto stored = StoreIntent(txn, image);
  if (!stored) return stored.error();
  if (entry.count == 0) entry.inherited = !*stored;
  ++entry.count;
  in_flight.Set(image, entry);
  return {};
}

Result<void> RecordPulled(StoreTxn& txn, InFlight& in_flight, Rules rules, std::string_view image,
                          std::string_view image_name, std::string_view image_ref,
                          const std::optional<ImagePullCredentials>& credentials) {
  bool changed = false;
  auto record = RecordToChange(txn, image_ref, changed);
  if (!record) return record.error();
  if (credentials) {
    const bool merged = MergeCredentials(*record, image_name, *credentials);
    // On a new record the kubelet keeps even an entry without credentials.
    if (changed) record->credential_mapping.try_emplace(std::string(image_name), *credentials);
    changed = changed || merged;
  }
  // Rule 4: a pull that adds nothing still confirms the record, or garbage collection could take
  // it.
  if (changed || rules == Rules::kClosed) {
    record->last_updated = txn.now();
    if (auto r = StoreRecord(txn, std::move(*record)); !r) return r;
  }
  if (auto r = EraseQuarantine(txn, QuarantineKind::kImageRef, image_ref); !r) return r;
  if (auto r = EraseQuarantine(txn, QuarantineKind::kImage, image); !r) return r;

  InFlight::Entry entry = in_flight.Get(image);
  if (entry.count > 1) {
    --entry.count;
    entry.inherited = false;
    in_flight.Set(image, entry);
    return {};
  }
  if (auto erased = EraseIntent(txn, image); !erased) return erased.error();
  in_flight.Set(image, {});
  return {};
}

Result<void> RecordFailed(StoreTxn& txn, InFlight& in_flight, Rules rules, std::string_view image,
                          PullFailure failure) {
  InFlight::Entry entry = in_flight.Get(image);
  const bool closed = rules == Rules::kClosed;
  if (closed && (failure == PullFailure::kUnknown || entry.count == 0)) entry.inherited = true;
  if (entry.count > 1) {
    --entry.count;
    in_flight.Set(image, entry);
    return {};
  }
  const bool keep = closed && entry.inherited;  // rule 2
  if (!keep) {
    if (auto erased = EraseIntent(txn, image); !erased) return erased.error();
  }
  in_flight.Set(image, {});
  return {};
}

Result<void> ForgetIntent(StoreTxn& txn, InFlight& in_flight, std::string_view image) {
  InFlight::Entry entry = in_flight.Get(image);
  if (entry.count > 0) {
    entry.inherited = false;
    in_flight.Set(image, entry);
    return {};
  }
  auto erased = EraseIntent(txn, image);
  if (!erased) return erased.error();
  return {};
}

Result<void> WriteBack(StoreTxn& txn, std::string_view image_name, std::string_view image_ref,
                       const ImagePullSecret& secret) {
  auto record = FindRecord(txn, image_ref);
  if (!record) return record.error();
  if (!*record) return {};
  const auto entry = (*record)->credential_mapping.find(std::string(image_name));
  if (entry == (*record)->credential_mapping.end()) return {};
  const auto& secrets = entry->second.kubernetes_secrets;
  if (secrets.size() >= kMaxSecretsForWriteBack) return {};
  bool matches = false;
  for (const auto& stored : secrets) {
    const bool hash =
        !stored.credential_hash.empty() && stored.credential_hash == secret.credential_hash;
    const bool coordinates = stored.uid == secret.uid && stored.name == secret.name &&
                             stored.namespace_name == secret.namespace_name;
    matches = matches || hash || coordinates;
  }
  if (!matches) return {};
  ImagePullCredentials added;
  added.kubernetes_secrets.push_back(secret);
  if (!MergeCredentials(**record, image_name, added)) return {};
  (*record)->last_updated = txn.now();
  return StoreRecord(txn, std::move(**record));
}

}  // namespace waybill::internal
