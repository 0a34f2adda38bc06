// Whether a store may presume that an image without a record was preloaded, and the journal of why
// not.

#ifndef WAYBILL_STORE_DISK_TRUST_H_
#define WAYBILL_STORE_DISK_TRUST_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/disk/store_txn.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

using Journal = std::vector<DegradedEvent>;  // oldest first

std::vector<std::uint8_t> EncodeJournal(const Journal& journal);
// nullopt: not a FlatBuffer of that record, a field is missing, or more entries than a journal may
// have.
std::optional<Journal> DecodeJournal(std::span<const std::uint8_t> payload);

// For each entry, whether it is a reason for distrust: no later entry took it back, and no operator
// cleared distrust after it. An entry that this version does not know is a reason.
std::vector<bool> InForce(const Journal& journal);

// Why a store is distrustful, as the journal says it.
struct Distrust {
  DegradedKind kind = DegradedKind::kOther;
  std::string reason;  // empty: no reason

  bool empty() const { return reason.empty(); }
  friend bool operator==(const Distrust&, const Distrust&) = default;
};
// The reasons in force, the last one first.
std::vector<Distrust> ReasonsIn(const Journal& journal);
// The last of them; empty: no reason is in force.
std::string LastReasonOf(const Journal& journal);

// Makes room for one more entry. Drops the oldest ones not in force, which does not change the
// others. False: kMaxTrustEvents are in force.
bool MakeRoom(Journal& journal);

// Notes a reason for distrust. Writes nothing if the same one is in force.
Result<void> SetDistrust(StoreTxn& txn, const Distrust& why);
// At an operator's word: ends every reason.
Result<void> SetTrust(StoreTxn& txn, std::string_view reason);
// An operator's word on a single image or pull. Changes no reason.
Result<void> NoteInJournal(StoreTxn& txn, std::string_view reason);
// Takes one reason back, even if later ones exist; the store stays distrustful for the others.
// Writes nothing if it is not in force.
Result<void> TakeBackDistrust(StoreTxn& txn, const Distrust& why);
// Whoever noted the reason has nothing to tell of: its entry goes. False: it is not the last one.
Result<bool> DropLastDistrust(StoreTxn& txn, const Distrust& why);
// The reasons in force, the last one first. Empty: the store is trustful, or its journal can't be
// read.
Result<std::vector<Distrust>> ReasonsOfDistrust(const StoreTxn& txn);

// Whether the reason does not mean that something newer was lost: it is about images alone.
bool LosesNothing(const Distrust& why);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_TRUST_H_
