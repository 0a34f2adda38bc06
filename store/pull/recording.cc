#include "store/pull/recording.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "store/database/typed_tables.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

// Merges secrets or service accounts by their coordinates, and sorts them as the kubelet does.
// Returns whether anything changed; if not, the order is unchanged, too.
template <typename T>
bool Merge(std::vector<T>& all, const std::vector<T>& added) {
  std::map<std::tuple<std::string, std::string, std::string>, T> merged;
  for (const T& one : all) {
    merged.insert_or_assign({one.namespace_name, one.name, one.uid}, one);
  }
  bool changed = false;
  for (const T& one : added) {
    const auto [at, is_new] = merged.try_emplace({one.namespace_name, one.name, one.uid}, one);
    changed = changed || is_new || at->second != one;
    at->second = one;
  }
  if (!changed) return false;
  all.clear();
  for (auto& [coordinates, one] : merged) all.push_back(std::move(one));
  return true;
}

// Merges `added` into the entry of `image_name` (kubelet behaviour). Returns whether anything
// changed. Node-wide access wins and clears both lists; once set, nothing is added. Otherwise
// secrets are merged by coordinates and sorted by namespace, name, uid; or, if none are given,
// service accounts likewise. A first entry is kept as given.
bool MergeCredentials(ImagePulledRecord& record, std::string_view image_name,
                      const ImagePullCredentials& added) {
  if (added.empty()) return false;
  const auto [at, is_new] = record.credential_mapping.try_emplace(std::string(image_name), added);
  if (is_new) return true;
  ImagePullCredentials& entry = at->second;
  if (entry.node_pods_accessible) return false;
  if (added.node_pods_accessible) {
    entry = {};
    entry.node_pods_accessible = true;
    return true;
  }
  if (!added.kubernetes_secrets.empty()) {
    return Merge(entry.kubernetes_secrets, added.kubernetes_secrets);
  }
  return Merge(entry.kubernetes_service_accounts, added.kubernetes_service_accounts);
}

// Stores the pulled manifest and the guest platform. If one of them differs from the record's,
// drops the credentials, which were proven for the old one. Returns whether anything changed.
bool TakeManifest(ImagePulledRecord& record, const PulledImage& pulled, bool is_new) {
  const bool other_guest = record.guest_platform != pulled.guest_platform;
  const bool other_manifest = pulled.manifest && !record.manifest_digest.empty() &&
                              record.manifest_digest != pulled.manifest->digest;
  if (!is_new && (other_guest || other_manifest)) {
    record.credential_mapping.clear();
    record.manifest_digest.clear();
    record.platform.reset();
  }
  bool changed = other_guest || other_manifest;
  record.guest_platform = pulled.guest_platform;
  if (pulled.manifest) {
    changed = changed || record.manifest_digest != pulled.manifest->digest ||
              record.platform != pulled.manifest->platform;
    record.manifest_digest = pulled.manifest->digest;
    record.platform = pulled.manifest->platform;
  }
  return changed;
}

// A quarantined image string stands for an unreadable intent of the default handler, since a
// kubelet without handlers wrote it. A pull for another handler reveals the string. The entry then
// becomes that intent, as if an earlier process had left it.
Result<void> ClearImageQuarantine(StoreTxn& txn, InFlight& in_flight, const PulledImage& pulled) {
  if (!pulled.runtime_handler.empty() && txn.state().digest(Table::kQuarantine).count != 0) {
    auto there = IsQuarantined(txn, QuarantineKind::kImage, pulled.image);
    if (!there) return there.error();
    if (*there) {
      if (auto stored = StoreIntent(txn, pulled.image, ""); !stored) return stored.error();
      InFlight::Entry of_default = in_flight.Get(pulled.image, "");
      of_default.inherited = true;
      if (of_default.count > 0) in_flight.Set(pulled.image, "", of_default);
    }
  }
  return EraseQuarantine(txn, QuarantineKind::kImage, pulled.image);
}

}  // namespace

Result<void> RecordIntent(StoreTxn& txn, InFlight& in_flight, std::string_view image,
                          std::string_view runtime_handler) {
  InFlight::Entry entry = in_flight.Get(image, runtime_handler);
  if (entry.count == 0 && in_flight.size() >= kMaxInFlightImages) {
    return Error{ErrorCode::kLimitExceeded,
                 "pulls of " + std::to_string(kMaxInFlightImages) + " images are in flight already",
                 "record how earlier pulls ended"};
  }
  auto stored = StoreIntent(txn, image, runtime_handler);
  if (!stored) return stored.error();
  if (entry.count == 0) entry.inherited = !*stored;
  ++entry.count;
  in_flight.Set(image, runtime_handler, entry);
  return {};
}

Result<void> RecordPulled(StoreTxn& txn, InFlight& in_flight, Rules rules,
                          const PulledImage& pulled) {
  auto found = FindRecord(txn, pulled.image_ref, pulled.runtime_handler);
  if (!found && found.error().code != ErrorCode::kDamaged) return found.error();
  const bool is_new = !found || !*found;  // an unreadable record is replaced
  ImagePulledRecord record;
  if (!is_new) record = std::move(**found);
  record.image_ref = pulled.image_ref;
  record.runtime_handler = pulled.runtime_handler;
  bool changed = TakeManifest(record, pulled, is_new) || is_new;
  if (pulled.credentials) {
    const bool merged = MergeCredentials(record, pulled.image_name, *pulled.credentials);
    // On a new record the kubelet keeps even an entry without credentials.
    if (is_new) {
      record.credential_mapping.try_emplace(std::string(pulled.image_name), *pulled.credentials);
    }
    changed = changed || merged;
  }
  // Rule 4: a pull that adds nothing still confirms the record, or garbage collection could remove
  // it.
  if (changed || rules == Rules::kClosed) {
    // A record written by a clock that was ahead keeps its time.
    const bool ahead = rules == Rules::kClosed && record.last_updated > txn.now();
    if (!ahead) record.last_updated = txn.now();
    if (auto r = StoreRecord(txn, std::move(record)); !r) return r;
  }
  if (auto r = EraseQuarantine(txn, QuarantineKind::kImageRef, pulled.image_ref); !r) return r;
  if (auto r = ClearImageQuarantine(txn, in_flight, pulled); !r) return r;

  InFlight::Entry entry = in_flight.Get(pulled.image, pulled.runtime_handler);
  if (entry.count > 1) {
    --entry.count;
    entry.inherited = false;
    in_flight.Set(pulled.image, pulled.runtime_handler, entry);
    return {};
  }
  if (auto erased = EraseIntent(txn, pulled.image, pulled.runtime_handler); !erased) {
    return erased.error();
  }
  in_flight.Set(pulled.image, pulled.runtime_handler, {});
  return {};
}

Result<void> RecordFailed(StoreTxn& txn, InFlight& in_flight, Rules rules, std::string_view image,
                          std::string_view runtime_handler, bool may_still_arrive) {
  InFlight::Entry entry = in_flight.Get(image, runtime_handler);
  const bool closed = rules == Rules::kClosed;
  if (closed && (may_still_arrive || entry.count == 0)) entry.inherited = true;
  if (entry.count > 1) {
    --entry.count;
    in_flight.Set(image, runtime_handler, entry);
    return {};
  }
  const bool keep = closed && entry.inherited;  // rule 2
  if (!keep) {
    if (auto erased = EraseIntent(txn, image, runtime_handler); !erased) return erased.error();
  }
  in_flight.Set(image, runtime_handler, {});
  return {};
}

Result<void> ForgetIntent(StoreTxn& txn, InFlight& in_flight, std::string_view image,
                          std::string_view runtime_handler) {
  InFlight::Entry entry = in_flight.Get(image, runtime_handler);
  if (entry.count > 0) {
    entry.inherited = false;
    in_flight.Set(image, runtime_handler, entry);
    return {};
  }
  auto erased = EraseIntent(txn, image, runtime_handler);
  return erased ? Result<void>() : erased.error();
}

Result<void> WriteBack(StoreTxn& txn, std::string_view image_name, std::string_view image_ref,
                       std::string_view runtime_handler, const ImagePullSecret& secret) {
  auto record = FindRecord(txn, image_ref, runtime_handler);
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
