// The journal of distrust: its record in the main table (schema/v1/header.fbs,
// schema/v4/header.fbs), and which of its entries are in force.

#ifndef WAYBILL_STORE_TRUST_JOURNAL_H_
#define WAYBILL_STORE_TRUST_JOURNAL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waybill/report.h"

namespace waybill::internal {

using Journal = std::vector<TrustEvent>;  // oldest first

// Payload bytes as the schema version has them. Versions before 4 know no kind and no entry that
// was taken back: what is in force for such a reason says it in the sentence that they look for,
// and what was taken back is left out, as they do.
std::vector<std::uint8_t> EncodeJournal(const Journal& journal, std::uint32_t schema_version);
// nullopt: not a FlatBuffer of that record, a field is missing, or it has more entries than any
// journal. Those of all versions are read:
// the kinds of an older one come from its sentences.
std::optional<Journal> DecodeJournal(std::span<const std::uint8_t> payload);

// Whether each entry is a reason for distrust: none of its kind and words took it back, and no word
// of trust came after it. What this version does not know is a reason.
std::vector<bool> InForce(const Journal& journal);

// The reason that is in force and came last; empty: none is.
std::string LastReasonOf(const Journal& journal);

// Makes room for one entry more by dropping the oldest that are not in force, each of which changes
// nothing of the others. False: kMaxTrustEvents are in force.
bool MakeRoom(Journal& journal);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_TRUST_JOURNAL_H_
