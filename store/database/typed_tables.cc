#include "store/database/typed_tables.h"

#include <algorithm>
#include <utility>

#include "store/base/hex.h"
#include "store/base/sha256.h"
#include "store/database/pulled_record.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

Error Unreadable(std::string_view what, std::string_view identity) {
  return {ErrorCode::kDamaged,
          "the " + std::string(what) + " of \"" + std::string(identity) + "\" can't be read",
          {},
          Hint::kPullAgain};
}

bool IsDamaged(const Error& error) { return error.code == ErrorCode::kDamaged; }

}  // namespace

Error KeyIsTaken(const std::string& whose) {
  return {ErrorCode::kConflict,
          "the key of " + whose + " is taken by another one; nothing was changed",
          "rebuild the store under a new hash seed: set it aside and import again"};
}

Result<std::optional<ImagePulledRecord>> FindRecord(const StoreTxn& txn, std::string_view image_ref,
                                                    std::string_view runtime_handler) {
  auto payload = txn.Get(Table::kPulled, PulledKey(image_ref, runtime_handler, txn.seed()));
  if (!payload) {
    return IsDamaged(payload.error()) ? Unreadable("record", image_ref) : payload.error();
  }
  if (!*payload) return std::optional<ImagePulledRecord>();
  auto record = DecodePulledRecordValue(**payload);
  if (!record) return Unreadable("record", image_ref);
  if (record->image_ref != image_ref || record->runtime_handler != runtime_handler) {
    return KeyIsTaken("image ref \"" + std::string(image_ref) + "\"");
  }
  return record;
}

Result<bool> AnyRecordOf(const StoreTxn& txn, std::string_view image_ref) {
  bool found = false;
  auto walked =
      txn.ForEachWithPrefix(Table::kPulled, FirstPulledKeyOfRef(image_ref, txn.seed()),
                            kRefKeyBytes, [&](const Key16&, Payload payload) -> Result<bool> {
                              found = payload.empty() || PulledRecordView(payload).RefIs(image_ref);
                              return !found;
                            });
  if (!walked) return walked.error();
  return found;
}

Result<void> StoreRecord(StoreTxn& txn, ImagePulledRecord record) {
  const Key16 key = PulledKey(record.image_ref, record.runtime_handler, txn.seed());
  auto existing = FindRecord(txn, record.image_ref, record.runtime_handler);
  if (!existing && !IsDamaged(existing.error())) return existing.error();
  record.stamp = txn.sequence();
  auto payload = EncodePulledRecordValue(record);
  if (!payload) return payload.error();
  return txn.Put(Table::kPulled, key, *payload);
}

Result<bool> CloseCopy(StoreTxn& txn, std::string_view image_ref,
                       std::string_view runtime_handler) {
  if (image_ref.empty() || image_ref.size() > kMaxImageRefBytes) return false;
  auto found = FindRecord(txn, image_ref, runtime_handler);
  if (!found) {
    if (IsDamaged(found.error())) return false;
    return found.error();
  }
  if (*found) return false;
  ImagePulledRecord record;
  record.image_ref = std::string(image_ref);
  record.runtime_handler = std::string(runtime_handler);
  record.last_updated = txn.now();
  if (auto r = StoreRecord(txn, std::move(record)); !r) return r.error();
  return true;
}

Result<bool> EraseRecord(StoreTxn& txn, std::string_view image_ref,
                         std::string_view runtime_handler) {
  auto existing = FindRecord(txn, image_ref, runtime_handler);
  if (!existing && !IsDamaged(existing.error())) return existing.error();
  if (existing && !*existing) return false;
  return txn.Delete(Table::kPulled, PulledKey(image_ref, runtime_handler, txn.seed()));
}

Result<bool> FindIntent(const StoreTxn& txn, std::string_view image,
                        std::string_view runtime_handler) {
  auto payload = txn.Get(Table::kIntents, IntentKey(image, runtime_handler, txn.seed()));
  if (!payload) {
    return IsDamaged(payload.error()) ? Unreadable("intent", image) : payload.error();
  }
  if (!*payload) return false;
  const auto intent = DecodeIntentValue(**payload);
  if (!intent) return Unreadable("intent", image);
  if (intent->image != image || intent->runtime_handler != runtime_handler) {
    return KeyIsTaken("image \"" + std::string(image) + "\"");
  }
  return true;
}

Result<bool> StoreIntent(StoreTxn& txn, std::string_view image, std::string_view runtime_handler) {
  auto existing = FindIntent(txn, image, runtime_handler);
  if (!existing && !IsDamaged(existing.error())) return existing.error();
  if (existing && *existing) return false;
  if (auto r = txn.Put(Table::kIntents, IntentKey(image, runtime_handler, txn.seed()),
                       EncodeIntentValue(image, runtime_handler, txn.now()));
      !r) {
    return r.error();
  }
  return true;
}

Result<bool> EraseIntent(StoreTxn& txn, std::string_view image, std::string_view runtime_handler) {
  auto existing = FindIntent(txn, image, runtime_handler);
  if (!existing && !IsDamaged(existing.error())) return existing.error();
  if (existing && !*existing) return false;
  return txn.Delete(Table::kIntents, IntentKey(image, runtime_handler, txn.seed()));
}

Result<std::vector<RuntimeHandler>> ReadRuntimeHandlers(const StoreTxn& txn) {
  std::vector<RuntimeHandler> handlers;
  auto walked =
      txn.ForEach(Table::kRuntimeHandlers, [&](const Key16&, Payload payload) -> Result<bool> {
        auto handler = DecodeRuntimeHandlerValue(payload);
        if (!handler) return Unreadable("registry", "runtime handlers");
        handlers.push_back(std::move(*handler));
        return true;
      });
  if (!walked) return walked.error();
  std::sort(handlers.begin(), handlers.end(),
            [](const RuntimeHandler& a, const RuntimeHandler& b) { return a.name < b.name; });
  return handlers;
}

Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind,
                           std::span<const std::uint8_t, 32> sha256) {
  auto payload = txn.Get(Table::kQuarantine, QuarantineKey(kind, sha256, txn.seed()));
  if (!payload) {
    if (IsDamaged(payload.error())) return true;
    return payload.error();
  }
  return payload->has_value();
}

Result<bool> IsQuarantined(const StoreTxn& txn, QuarantineKind kind, std::string_view text) {
  const auto sha256 = Sha256(text);
  if (!sha256) return sha256.error();
  return IsQuarantined(txn, kind, std::span<const std::uint8_t, 32>(*sha256));
}

Result<bool> StoreQuarantine(StoreTxn& txn, const QuarantineEntry& entry) {
  Sha256Digest sha256{};
  if (!HexDecode(entry.sha256, sha256)) {
    return Error{ErrorCode::kInvalidArgument, "a quarantine entry needs a SHA-256", ""};
  }
  auto there = IsQuarantined(txn, entry.kind, std::span<const std::uint8_t, 32>(sha256));
  if (!there) return there.error();
  if (*there) return false;
  if (auto r = txn.Put(Table::kQuarantine, QuarantineKey(entry.kind, sha256, txn.seed()),
                       EncodeQuarantineValue(entry));
      !r) {
    return r.error();
  }
  return true;
}

Result<void> EraseQuarantine(StoreTxn& txn, QuarantineKind kind, std::string_view text) {
  if (txn.state().digest(Table::kQuarantine).count == 0) return {};
  const auto sha256 = Sha256(text);
  if (!sha256) return sha256.error();
  auto erased = txn.Delete(Table::kQuarantine, QuarantineKey(kind, *sha256, txn.seed()));
  if (!erased) return erased.error();
  return {};
}

}  // namespace waybill::internal
