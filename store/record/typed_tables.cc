#include "store/record/typed_tables.h"

#include <utility>

#include "store/base/hex.h"
#include "store/base/sha256.h"
#include "store/record/pulled_record.h"

namespace waybill::internal {

namespace {

Error Collision(std::string_view what, std::string_view identity) {
  return {ErrorCode::kConflict,
          "the key of " + std::string(what) + " \"" + std::string(identity) +
              "\" is taken by another one; nothing was changed",
          "rebuild the store under a new hash seed: set it aside and import again"};
}

Error Unreadable(std::string_view what, std::string_view identity) {
  return {ErrorCode::kDamaged,
          "the " + std::string(what) + " of \"" + std::string(identity) + "\" can't be read",
          "pull the image again, or run `waybill start` to recover the store"};
}

bool IsDamaged(const Error& error) { return error.code == ErrorCode::kDamaged; }

}  // namespace

Result<std::optional<ImagePulledRecord>> FindRecord(const StoreTxn& txn,
                                                    std::string_view image_ref) {
  auto payload = txn.Get(Table::kPulled, HashKey(image_ref, txn.seed()));
  if (!payload) {
    return IsDamaged(payload.error()) ? Unreadable("record", image_ref) : payload.error();
  }
  if (!*payload) return std::optional<ImagePulledRecord>();
  auto record = DecodePulledRecordValue(**payload);
  if (!record) return Unreadable("record", image_ref);
  if (record->image_ref != image_ref) return Collision("image ref", image_ref);
  return record;
}

Result<void> StoreRecord(StoreTxn& txn, ImagePulledRecord record) {
  const Key16 key = HashKey(record.image_ref, txn.seed());
  auto existing = FindRecord(txn, record.image_ref);
  if (!existing && !IsDamaged(existing.error())) return existing.error();
  record.stamp = txn.sequence();
  auto payload = EncodePulledRecordValue(record);
  if (!payload) return payload.error();
  return txn.Put(Table::kPulled, key, *payload);
}

Result<bool> EraseRecord(StoreTxn& txn, std::string_view image_ref) {
  auto existing = FindRecord(txn, image_ref);
  if (!existing && !IsDamaged(existing.error())) return existing.error();
  if (existing && !*existing) return false;
  return txn.Delete(Table::kPulled, HashKey(image_ref, txn.seed()));
}

Result<bool> FindIntent(const StoreTxn& txn, std::string_view image) {
  auto payload = txn.Get(Table::kIntents, IntentKey(image, txn.seed()));
  if (!payload) {
    return IsDamaged(payload.error()) ? Unreadable("intent", image) : payload.error();
  }
  if (!*payload) return false;
  const auto intent = DecodeIntentValue(**payload);
  if (!intent) return Unreadable("intent", image);
  if (intent->image != image) return Collision("image", image);
  return true;
}

Result<bool> StoreIntent(StoreTxn& txn, std::string_view image) {
  auto existing = FindIntent(txn, image);
  if (!existing && !IsDamaged(existing.error())) return existing.error();
  if (existing && *existing) return false;
  if (auto r = txn.Put(Table::kIntents, IntentKey(image, txn.seed()),
                       EncodeIntentValue(image, txn.now()));
      !r) {
    return r.error();
  }
  return true;
}

Result<bool> EraseIntent(StoreTxn& txn, std::string_view image) {
  auto existing = FindIntent(txn, image);
  if (!existing && !IsDamaged(existing.error())) return existing.error();
  if (existing && !*existing) return false;
  return txn.Delete(Table::kIntents, IntentKey(image, txn.seed()));
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
