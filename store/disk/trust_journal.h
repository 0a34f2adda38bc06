// The journal of distrust: its record in the main table (schema/v1/header.fbs), and which of its
// entries are in force.

#ifndef WAYBILL_STORE_DISK_TRUST_JOURNAL_H_
#define WAYBILL_STORE_DISK_TRUST_JOURNAL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_TRUST_JOURNAL_H_
