// Recording pulls, garbage collection, whole records.

#include <algorithm>
#include <string>
#include <utility>

#include "store/node_store_impl.h"
#include "store/pull/prune.h"
#include "store/pull/recording.h"
#include "store/record/pulled_record.h"
#include "store/record/small_records.h"
#include "store/record/typed_tables.h"
#include "waybill/image_name.h"

namespace waybill {

using internal::Lookup;
using internal::Payload;
using internal::ReaderPool;
using internal::StoreTxn;
using internal::Table;

namespace {

Result<void> CheckLength(std::string_view what, std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return {};
  return Error{ErrorCode::kLimitExceeded,
               "the " + std::string(what) + " is longer than " + std::to_string(limit) +
                   " bytes; nothing was changed",
               ""};
}

Result<void> CheckImage(std::string_view image) {
  return CheckLength("image", image, kMaxImageBytes);
}

Result<void> CheckRef(std::string_view image_ref) {
  if (image_ref.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the image ref is empty; nothing was changed",
                 "pass what the runtime returned for the image"};
  }
  return CheckLength("image ref", image_ref, kMaxImageRefBytes);
}

// Decodes every value of a table. An error where one can't be read, or some are missing.
template <typename T>
Result<std::vector<T>> ListTable(NodeStore::Impl& impl, Table table, std::string_view what,
                                 std::optional<T> (*decode)(Payload)) {
  return Guarded<std::vector<T>>([&]() -> Result<std::vector<T>> {
    const ReaderPool::Lease snapshot = impl.Read();
    if (!snapshot) return impl.Unreadable(what);
    std::vector<T> all;
    lmdb::Cursor cursor;
    if (cursor.Open(snapshot.txn(), snapshot.dbi(table)) != MDB_SUCCESS) {
      return impl.Unreadable(what);
    }
    const internal::TableInfo& info = internal::InfoOf(table);
    lmdb::Bytes key;
    lmdb::Bytes value;
    int rc = MDB_SUCCESS;
    while ((rc = cursor.Get(&key, &value, MDB_NEXT)) == MDB_SUCCESS) {
      if (key.size() != 16) return impl.Unreadable(what);
      const internal::Opened opened =
          internal::OpenEnvelope(internal::Key16::From(key), value, info.kind, info.newest_version);
      if (opened.state != internal::EnvelopeState::kSound) return impl.Unreadable(what);
      auto decoded = decode(opened.payload);
      if (!decoded) return impl.Unreadable(what);
      all.push_back(std::move(*decoded));
    }
    if (rc != MDB_NOTFOUND || !snapshot.CountIsTrue(table)) return impl.Unreadable(what);
    return all;
  });
}

}  // namespace

Result<void> NodeStore::RecordPullIntent(std::string_view image) {
  if (auto r = CheckImage(image); !r) return r;
  return impl_->Write(
      [&](StoreTxn& txn) { return internal::RecordIntent(txn, impl_->in_flight, image); });
}

Result<void> NodeStore::RecordImagePulled(std::string_view image, std::string_view image_ref,
                                          const std::optional<ImagePullCredentials>& credentials) {
  if (auto r = CheckImage(image); !r) return r;
  if (auto r = CheckRef(image_ref); !r) return r;
  const auto name = ImageName(image);
  if (!name) {
    return Error{ErrorCode::kInvalidArgument,
                 "the image \"" + std::string(image) +
                     "\" does not parse; no record was written, its intent stays",
                 ""};
  }
  return impl_->Write([&](StoreTxn& txn) {
    return internal::RecordPulled(txn, impl_->in_flight, impl_->rules, image, *name, image_ref,
                                  credentials);
  });
}

Result<void> NodeStore::RecordImagePullFailed(std::string_view image, PullFailure failure) {
  if (auto r = CheckImage(image); !r) return r;
  return impl_->Write([&](StoreTxn& txn) {
    return internal::RecordFailed(txn, impl_->in_flight, impl_->rules, image, failure);
  });
}

Result<PruneToken> NodeStore::BeginPrune() {
  if (!impl_->committer) return impl_->Write({}).error();
  return PruneToken{impl_->committer->state().commit_sequence};
}

Result<PruneReport> NodeStore::Prune(const std::vector<std::string>& image_refs, PruneToken token) {
  PruneReport report;
  auto written = impl_->Write([&](StoreTxn& txn) -> Result<void> {
    if (token.value >= txn.sequence()) {
      return Error{ErrorCode::kInvalidArgument,
                   "the token " + std::to_string(token.value) +
                       " is from the future or from another store; nothing was changed",
                   "draw one with BeginPrune (`waybill prune --begin`) before listing the images"};
    }
    auto pruned = internal::PruneRecords(txn, impl_->rules, image_refs,
                                         {.by_stamp = true, .token = token.value, .until = {}});
    if (!pruned) return pruned.error();
    report = *pruned;
    return {};
  });
  if (!written) return written.error();
  return report;
}

Result<PruneReport> NodeStore::PruneBefore(const std::vector<std::string>& image_refs,
                                           Timestamp until) {
  PruneReport report;
  auto written = impl_->Write([&](StoreTxn& txn) -> Result<void> {
    auto pruned = internal::PruneRecords(txn, impl_->rules, image_refs,
                                         {.by_stamp = false, .token = 0, .until = until});
    if (!pruned) return pruned.error();
    report = *pruned;
    return {};
  });
  if (!written) return written.error();
  return report;
}

Result<ImagePulledRecord> NodeStore::GetRecord(std::string_view image_ref) const {
  return Guarded<ImagePulledRecord>([&]() -> Result<ImagePulledRecord> {
    const std::string what = "the record of \"" + std::string(image_ref) + "\"";
    ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->Unreadable(what);
    const internal::Key16 key = internal::HashKey(image_ref, snapshot.seed());
    Payload payload;
    Lookup found = snapshot.Get(Table::kPulled, key, payload);
    if (found == Lookup::kDamaged && snapshot.Refresh()) {
      found = snapshot.Get(Table::kPulled, key, payload);
    }
    if (found == Lookup::kAbsent) {
      return Error{ErrorCode::kNotFound,
                   "there is no record of \"" + std::string(image_ref) + "\" in " +
                       impl_->directory.string(),
                   ""};
    }
    if (found == Lookup::kDamaged) return impl_->Unreadable(what);
    auto record = internal::DecodePulledRecordValue(payload);
    if (!record || record->image_ref != image_ref) return impl_->Unreadable(what);
    return std::move(*record);
  });
}

Result<std::vector<ImagePulledRecord>> NodeStore::ListRecords() const {
  return ListTable<ImagePulledRecord>(*impl_, Table::kPulled, "the records",
                                      internal::DecodePulledRecordValue);
}

Result<void> NodeStore::PutRecord(const ImagePulledRecord& record) {
  if (auto r = CheckRef(record.image_ref); !r) return r;
  return impl_->Write([&](StoreTxn& txn) -> Result<void> {
    if (auto r = internal::StoreRecord(txn, record); !r) return r;
    return internal::EraseQuarantine(txn, QuarantineKind::kImageRef, record.image_ref);
  });
}

Result<void> NodeStore::DeleteRecord(std::string_view image_ref) {
  if (auto r = CheckRef(image_ref); !r) return r;
  return impl_->Write([&](StoreTxn& txn) -> Result<void> {
    auto erased = internal::EraseRecord(txn, image_ref);
    if (!erased) return erased.error();
    return {};
  });
}

Result<bool> NodeStore::HasIntent(std::string_view image) const {
  if (auto r = CheckImage(image); !r) return r.error();
  return Guarded<bool>([&]() -> Result<bool> {
    ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->Unreadable("the intents");
    const internal::Key16 key = internal::IntentKey(image, snapshot.seed());
    Payload payload;
    Lookup found = snapshot.Get(Table::kIntents, key, payload);
    if (found == Lookup::kDamaged && snapshot.Refresh()) {
      found = snapshot.Get(Table::kIntents, key, payload);
    }
    if (found == Lookup::kAbsent) return false;
    if (found == Lookup::kDamaged || internal::IntentImage(payload) != image) {
      return impl_->Unreadable("the intent of \"" + std::string(image) + "\"");
    }
    return true;
  });
}

Result<std::vector<ImagePullIntent>> NodeStore::ListIntents() const {
  auto intents = ListTable<ImagePullIntent>(*impl_, Table::kIntents, "the intents",
                                            internal::DecodeIntentValue);
  if (intents) std::sort(intents->begin(), intents->end());
  return intents;
}

Result<void> NodeStore::PutIntent(std::string_view image) {
  if (auto r = CheckImage(image); !r) return r;
  return impl_->Write([&](StoreTxn& txn) -> Result<void> {
    auto stored = internal::StoreIntent(txn, image);
    if (!stored) return stored.error();
    return {};
  });
}

Result<void> NodeStore::DeleteIntent(std::string_view image) {
  if (auto r = CheckImage(image); !r) return r;
  return impl_->Write(
      [&](StoreTxn& txn) { return internal::ForgetIntent(txn, impl_->in_flight, image); });
}

Result<std::vector<QuarantineEntry>> NodeStore::ListQuarantine() const {
  return ListTable<QuarantineEntry>(*impl_, Table::kQuarantine, "the quarantine entries",
                                    internal::DecodeQuarantineValue);
}

Result<std::vector<ImagePreloadedRecord>> NodeStore::ListPreloaded() const {
  return ListTable<ImagePreloadedRecord>(*impl_, Table::kPreloaded, "the preloaded records",
                                         internal::DecodePreloadedValue);
}

}  // namespace waybill
