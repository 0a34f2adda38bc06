// Recording pulls, garbage collection, whole records.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "store/base/empty_list.h"
#include "store/database/pulled_record.h"
#include "store/database/typed_tables.h"
#include "store/handlers/runtime_handlers.h"
#include "store/node_store/impl.h"
#include "store/pull/prune.h"
#include "store/pull/recording.h"
#include "waybill/image_name.h"

namespace waybill {

using internal::FoundHandler;
using internal::Lookup;
using internal::Payload;
using internal::ReaderPool;
using internal::StoreTxn;
using internal::Table;

namespace {

Result<void> CheckLength(std::string_view what, std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return {};
  return Error{ErrorCode::kLimitExceeded, "the " + std::string(what) + " is longer than " +
                                              std::to_string(limit) +
                                              " bytes; nothing was changed"};
}

Error EmptyRef() {
  return {ErrorCode::kInvalidArgument, "the image ref is empty; nothing was changed",
          "pass what the runtime returned for the image"};
}

Result<void> CheckRef(const ImageCopy& copy) {
  if (copy.image_ref.empty()) return EmptyRef();
  return CheckLength("image ref", copy.image_ref, kMaxImageRefBytes);
}

Result<void> CheckHandler(std::string_view runtime_handler) {
  return CheckLength("runtime handler", runtime_handler, kMaxRuntimeHandlerBytes);
}

Result<void> CheckIntent(const ImageCopy& copy) {
  if (copy.image.empty() && !copy.image_ref.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the image is empty, beside the image ref \"" +
                     std::string(copy.image_ref.substr(0, kMaxImageRefBytes)) +
                     "\"; nothing was changed",
                 "pass the container's image string"};
  }
  return CheckLength("image", copy.image, kMaxImageBytes);
}

Result<void> CheckPull(const ImageCopy& copy) {
  if (auto r = CheckIntent(copy); !r) return r;
  return CheckHandler(copy.runtime_handler);
}

Error Unknown(const StoreTxn& txn, std::string_view runtime_handler) {
  auto known = internal::ReadRuntimeHandlers(txn);
  return known ? internal::UnknownHandler(runtime_handler, *known) : known.error();
}

Result<void> CheckKnown(const StoreTxn& txn, const ImageCopy& copy, const FoundHandler& handler) {
  return handler.known ? Result<void>() : Unknown(txn, copy.runtime_handler);
}

// For a pull that ends. An unknown handler is accepted if its pull was begun: the registry may have
// been replaced meanwhile.
Result<void> CheckBegun(const StoreTxn& txn, const internal::InFlight& in_flight,
                        const ImageCopy& copy, const FoundHandler& handler) {
  if (handler.known || in_flight.Get(copy.image, copy.runtime_handler).count > 0) return {};
  auto intent = internal::FindIntent(txn, copy.image, copy.runtime_handler);
  return intent && !*intent ? Unknown(txn, copy.runtime_handler) : Result<void>();
}

// Checks the copy, then runs `change` with its handler, known or not. No exception leaves it.
template <typename Check, typename Change>
Result<void> WriteCopy(NodeStore::Impl& impl, const ImageCopy& copy, const Check& check,
                       const Change& change) {
  return Guarded([&]() -> Result<void> {
    if (auto r = check(copy); !r) return r;
    return impl.Write([&](StoreTxn& txn) -> Result<void> {
      auto handler = internal::FindHandler(txn, copy.runtime_handler);
      return handler ? change(txn, *handler) : handler.error();
    });
  });
}

}  // namespace

Result<void> NodeStore::RecordPullIntent(const ImageCopy& copy) {
  const auto record = [&](StoreTxn& txn, const FoundHandler& handler) -> Result<void> {
    if (auto r = CheckKnown(txn, copy, handler); !r) return r;
    return internal::RecordIntent(txn, impl_->in_flight, copy.image, handler.stored);
  };
  return WriteCopy(*impl_, copy, CheckPull, record);
}

Result<void> NodeStore::RecordImagePulled(const ImageCopy& copy,
                                          const std::optional<ImagePullCredentials>& credentials,
                                          const std::optional<PulledManifest>& manifest) {
  std::optional<std::string_view> name;
  const auto check = [&](const ImageCopy&) -> Result<void> {
    if (auto r = CheckLength("image", copy.image, kMaxImageBytes); !r) return r;
    if (auto r = CheckHandler(copy.runtime_handler); !r) return r;
    if (auto r = CheckRef(copy); !r) return r;
    name = ImageName(copy.image);
    if (name) return {};
    return Error{ErrorCode::kInvalidArgument,
                 "the image \"" + std::string(copy.image) +
                     "\" does not parse; no record was written, its intent stays"};
  };
  const auto record = [&](StoreTxn& txn, const FoundHandler& handler) -> Result<void> {
    if (auto r = CheckBegun(txn, impl_->in_flight, copy, handler); !r) return r;
    // An unknown handler is gone, so its platform is unknown: verify again.
    const std::optional<ImagePullCredentials> unknown;
    return internal::RecordPulled(
        txn, impl_->in_flight, impl_->rules,
        {copy.image, *name, copy.image_ref, handler.stored, handler.known ? credentials : unknown,
         manifest, handler.guest_platform});
  };
  return WriteCopy(*impl_, copy, check, record);
}

Result<void> NodeStore::RecordImagePullFailed(const ImageCopy& copy, PullFailure failure) {
  const auto record = [&](StoreTxn& txn, const FoundHandler& handler) -> Result<void> {
    if (auto r = CheckBegun(txn, impl_->in_flight, copy, handler); !r) return r;
    return internal::RecordFailed(txn, impl_->in_flight, impl_->rules, copy.image, handler.stored,
                                  failure == PullFailure::kUnknown);
  };
  return WriteCopy(*impl_, copy, CheckPull, record);
}

Result<PruneToken> NodeStore::BeginPrune() try {
  if (!impl_->committer) return impl_->NotOwner();
  const std::uint64_t token = impl_->committer->state().commit_sequence;
  impl_->NoteToken(token);
  return PruneToken{token};
} catch (...) {
  return internal::Caught();
}

namespace {

// The images of a list, their handlers by the names that records have.
Result<std::vector<internal::PruneImage>> ToPrune(const StoreTxn& txn,
                                                  const std::vector<ListedImage>& listed) {
  auto handlers = internal::ReadRuntimeHandlers(txn);
  if (!handlers) return handlers.error();
  std::vector<internal::PruneImage> images;
  images.reserve(listed.size());
  for (const ListedImage& image : listed) {
    std::optional<std::string_view> handler;
    if (!image.runtime_handler.empty()) {
      const bool is_default = internal::StoredName(*handlers, image.runtime_handler).empty();
      handler = is_default ? std::string_view() : std::string_view(image.runtime_handler);
    }
    images.push_back({image.image_ref, handler});
  }
  return images;
}

void AddTo(PruneReport& sum, const PruneReport& part) {
  sum.examined += part.examined;
  sum.removed += part.removed;
  sum.kept_in_list += part.kept_in_list;
  sum.kept_newer += part.kept_newer;
  sum.kept_intent += part.kept_intent;
  sum.kept_without_credentials += part.kept_without_credentials;
}

Result<PruneReport> PruneTo(NodeStore::Impl& impl, const std::vector<ListedImage>& listed,
                            const internal::PruneLimit& limit, const ChangeOptions& options) {
  PruneReport report;
  // All in one transaction; in parts if a full store has too few pages left for that.
  for (std::optional<internal::PrunePart> part{std::in_place}; part;) {
    const auto prune = [&](StoreTxn& txn) -> Result<internal::PrunedPart> {
      if (limit.by_stamp && limit.token >= txn.sequence()) {
        return Error{ErrorCode::kInvalidArgument,
                     "the token " + std::to_string(limit.token) +
                         " is from the future or from another store; nothing was changed",
                     {},
                     Hint::kBeginPrune};
      }
      const std::uint64_t records = txn.state().digest(Table::kPulled).count;
      if (listed.empty() && records > 0 && !options.allow_empty) {
        return internal::EmptyList("the list of images on the node is",
                                   "holds " + internal::HowMany(records, "record"),
                                   "no record was removed");
      }
      auto images = ToPrune(txn, listed);
      if (!images) return images.error();
      return internal::PruneRecords(txn, impl.rules, *images, limit, *part);
    };
    const auto pruned = WriteAndGet(impl, prune, options);
    if (!pruned) {
      if (!TakeSmallerSteps(pruned.error(), part->most)) return pruned.error();
      continue;
    }
    AddTo(report, pruned->report);
    if (pruned->next) {
      part->first = *pruned->next;
    } else {
      part.reset();
    }
  }
  return report;
}

}  // namespace

Result<PruneReport> NodeStore::Prune(const std::vector<ListedImage>& images, PruneToken token,
                                     const ChangeOptions& options) try {
  internal::PruneLimit limit;
  limit.token = token.value;
  return PruneTo(*impl_, images, limit, options);
} catch (...) {
  return internal::Caught();
}
Result<PruneReport> NodeStore::PruneBefore(const std::vector<ListedImage>& images, Timestamp until,
                                           const ChangeOptions& options) try {
  bool met_ahead = false;
  internal::PruneLimit limit;
  limit.by_stamp = false;
  limit.until = until;
  if (impl_->rules == Rules::kClosed) {
    limit.mended_at = impl_->clock_mended_at.load();
    limit.met_ahead = &met_ahead;
  }
  auto report = PruneTo(*impl_, images, limit, options);
  // So that the next prune can remove them. In a full store they stay as they are.
  if (report && met_ahead && !options.dry_run) static_cast<void>(impl_->MendClock());
  return report;
} catch (...) {
  return internal::Caught();
}

namespace {

// The handler that a reader asks for, by the name that records have. An unknown one is used as it
// is: its records stay until they are pruned. nullopt: the registry can't be read.
std::optional<std::string_view> HandlerToRead(const ReaderPool::Lease& snapshot,
                                              std::string_view runtime_handler) {
  std::string_view stored;
  const Lookup state = internal::FindStoredHandler(snapshot, runtime_handler, stored);
  if (state == Lookup::kDamaged) return std::nullopt;
  return stored;
}

// Damage counts only if a fresh snapshot has it, too.
Lookup GetTwice(ReaderPool::Lease& snapshot, Table table, const internal::Key16& key,
                Payload& payload) {
  const Lookup found = snapshot.Get(table, key, payload);
  return found == Lookup::kDamaged && snapshot.Refresh() ? snapshot.Get(table, key, payload)
                                                         : found;
}

}  // namespace

Result<ImagePulledRecord> NodeStore::GetRecord(const ImageCopy& copy) const {
  return Guarded([&]() -> Result<ImagePulledRecord> {
    if (copy.image_ref.empty() && !copy.image.empty()) return EmptyRef();
    const std::string what = "the record of \"" + std::string(copy.image_ref) + "\"";
    ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, what);
    const auto handler = HandlerToRead(snapshot, copy.runtime_handler);
    if (!handler) return impl_->Unreadable("the runtime handlers");
    const internal::Key16 key = internal::PulledKey(copy.image_ref, *handler, snapshot.seed());
    Payload payload;
    const Lookup found = GetTwice(snapshot, Table::kPulled, key, payload);
    if (found == Lookup::kAbsent) {
      return Error{ErrorCode::kNotFound,
                   "there is no record of \"" + std::string(copy.image_ref) + "\" " +
                       (handler->empty() ? "" : "for " + std::string(*handler) + " ") + "in " +
                       impl_->directory.string()};
    }
    if (found == Lookup::kDamaged) return impl_->Unreadable(what);
    auto record = internal::DecodePulledRecordValue(payload);
    if (!record || record->image_ref != copy.image_ref || record->runtime_handler != *handler) {
      return impl_->Unreadable(what);
    }
    return std::move(*record);
  });
}

Result<std::vector<ImagePulledRecord>> NodeStore::ListRecords() const {
  return ListTable(*impl_, Table::kPulled, "the records", internal::DecodePulledRecordValue);
}

Result<void> NodeStore::PutRecord(const ImagePulledRecord& record) {
  const ImageCopy of_record = {.image_ref = record.image_ref,
                               .runtime_handler = record.runtime_handler};
  const auto check = [](const ImageCopy& copy) -> Result<void> {
    if (auto r = CheckRef(copy); !r) return r;
    return CheckHandler(copy.runtime_handler);
  };
  const auto put = [&](StoreTxn& txn, const FoundHandler& handler) -> Result<void> {
    ImagePulledRecord stored = record;
    stored.runtime_handler = handler.stored;
    stored.guest_platform = handler.guest_platform;
    if (!handler.known) {
      auto there = internal::FindRecord(txn, record.image_ref, record.runtime_handler);
      if (there && !*there) return Unknown(txn, record.runtime_handler);
      if (there) stored.guest_platform = (*there)->guest_platform;
    }
    if (auto r = internal::StoreRecord(txn, std::move(stored)); !r) return r;
    return internal::EraseQuarantine(txn, QuarantineKind::kImageRef, record.image_ref);
  };
  return WriteCopy(*impl_, of_record, check, put);
}

Result<void> NodeStore::DeleteRecord(const ImageCopy& copy) {
  return WriteCopy(*impl_, copy, CheckRef, [&](StoreTxn& txn, const FoundHandler& handler) {
    auto erased = internal::EraseRecord(txn, copy.image_ref, handler.stored);
    return erased ? Result<void>() : erased.error();
  });
}

Result<bool> NodeStore::HasIntent(const ImageCopy& copy) const {
  return Guarded([&]() -> Result<bool> {
    if (auto r = CheckIntent(copy); !r) return r.error();
    ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, "the intents");
    const auto handler = HandlerToRead(snapshot, copy.runtime_handler);
    if (!handler) return impl_->Unreadable("the runtime handlers");
    const internal::Key16 key = internal::IntentKey(copy.image, *handler, snapshot.seed());
    Payload payload;
    const Lookup found = GetTwice(snapshot, Table::kIntents, key, payload);
    if (found == Lookup::kAbsent) return false;
    if (found == Lookup::kDamaged || internal::ViewIntent(payload).image != copy.image ||
        internal::ViewIntent(payload).runtime_handler != *handler) {
      return impl_->Unreadable("the intent of \"" + std::string(copy.image) + "\"");
    }
    return true;
  });
}

Result<std::vector<ImagePullIntent>> NodeStore::ListIntents() const {
  auto intents = ListTable(*impl_, Table::kIntents, "the intents", internal::DecodeIntentValue);
  if (intents) std::sort(intents->begin(), intents->end());
  return intents;
}

Result<void> NodeStore::PutIntent(const ImageCopy& copy) {
  const auto put = [&](StoreTxn& txn, const FoundHandler& handler) -> Result<void> {
    if (auto r = CheckKnown(txn, copy, handler); !r) return r;
    auto stored = internal::StoreIntent(txn, copy.image, handler.stored);
    return stored ? Result<void>() : stored.error();
  };
  return WriteCopy(*impl_, copy, CheckPull, put);
}

Result<void> NodeStore::DeleteIntent(const ImageCopy& copy) {
  return WriteCopy(*impl_, copy, CheckPull, [&](StoreTxn& txn, const FoundHandler& handler) {
    return internal::ForgetIntent(txn, impl_->in_flight, copy.image, handler.stored);
  });
}

Result<std::vector<QuarantineEntry>> NodeStore::ListQuarantine() const {
  return ListTable(*impl_, Table::kQuarantine, "the quarantine entries",
                   internal::DecodeQuarantineValue);
}

Result<std::vector<ImagePreloadedRecord>> NodeStore::ListPreloaded() const {
  return ListTable(*impl_, Table::kPreloaded, "the preloaded records",
                   internal::DecodePreloadedValue);
}

}  // namespace waybill
