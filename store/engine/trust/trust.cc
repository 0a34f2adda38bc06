#include "store/engine/trust/trust.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "store/base/try.h"
#include "store/engine/trust/trust_journal.h"

namespace waybill::internal {

namespace {

Result<Journal> ReadJournal(const StoreTxn& txn) {
  auto payload = TRY(txn.GetHeaderRecord(kTrustKey, RecordKind::kTrustJournal));
  auto journal = DecodeJournal(payload);
  return journal ? std::move(*journal) : Journal();
}

bool IsDistrustful(const Journal& journal) {
  const std::vector<bool> in_force = InForce(journal);
  return std::find(in_force.begin(), in_force.end(), true) != in_force.end();
}

Result<void> Store(StoreTxn& txn, const Journal& journal) {
  txn.state().distrustful = IsDistrustful(journal);
  return txn.PutHeaderRecord(kTrustKey, RecordKind::kTrustJournal, EncodeJournal(journal));
}

Result<void> Append(StoreTxn& txn, Journal journal, DegradedEvent event) {
  event.at = txn.now();
  journal.push_back(std::move(event));
  journal.back().distrustful = IsDistrustful(journal);
  return Store(txn, journal);
}

// Whether it is in force, and the state says so.
bool Has(const StoreTxn& txn, const Journal& journal, const Distrust& why) {
  if (!txn.state().distrustful) return false;
  const std::vector<bool> in_force = InForce(journal);
  for (std::size_t i = 0; i < journal.size(); ++i) {
    if (in_force[i] && journal[i].kind == why.kind && journal[i].reason == why.reason) return true;
  }
  return false;
}

}  // namespace

Result<void> SetDistrust(StoreTxn& txn, const Distrust& why) {
  auto journal = TRY(ReadJournal(txn));
  if (Has(txn, journal, why)) return {};
  DegradedEvent event{{}, why.kind, DegradedAction::kDistrust, true, why.reason};
  if (!MakeRoom(journal)) {
    // No reason is dropped. Only an operator can clear the ones that did not fit.
    const Distrust full{DegradedKind::kJournalFull,
                        "there are more reasons than the journal holds"};
    if (Has(txn, journal, full)) return {};
    event.kind = full.kind;
    event.reason = full.reason;
  }
  return Append(txn, std::move(journal), std::move(event));
}

Result<void> SetTrust(StoreTxn& txn, std::string_view reason) {
  auto journal = TRY(ReadJournal(txn));
  DegradedEvent event{
      {}, DegradedKind::kOperator, DegradedAction::kTrust, false, std::string(reason)};
  static_cast<void>(MakeRoom(journal));  // if all are in force, this entry ends them
  return Append(txn, std::move(journal), std::move(event));
}

Result<void> NoteInJournal(StoreTxn& txn, std::string_view reason) {
  auto journal = TRY(ReadJournal(txn));
  DegradedEvent event{
      {}, DegradedKind::kOperator, DegradedAction::kNote, false, std::string(reason)};
  // If all entries are in force, none may go for a note.
  if (!MakeRoom(journal)) return {};
  return Append(txn, std::move(journal), std::move(event));
}

Result<void> TakeBackDistrust(StoreTxn& txn, const Distrust& why) {
  auto journal = TRY(ReadJournal(txn));
  if (!Has(txn, journal, why)) return {};
  DegradedEvent event{{}, why.kind, DegradedAction::kTakenBack, false, why.reason};
  static_cast<void>(MakeRoom(journal));
  return Append(txn, std::move(journal), std::move(event));
}

Result<std::vector<Distrust>> ReasonsOfDistrust(const StoreTxn& txn) {
  const auto journal = TRY(ReadJournal(txn));
  std::vector<Distrust> reasons;
  if (!txn.state().distrustful) return reasons;
  const std::vector<bool> in_force = InForce(journal);
  for (std::size_t i = journal.size(); i > 0; --i) {
    if (in_force[i - 1]) reasons.push_back({journal[i - 1].kind, journal[i - 1].reason});
  }
  return reasons;
}

Result<bool> DropLastDistrust(StoreTxn& txn, const Distrust& why) {
  auto journal = TRY(ReadJournal(txn));
  if (!Has(txn, journal, why) || journal.back().kind != why.kind ||
      journal.back().reason != why.reason) {
    return false;
  }
  journal.pop_back();
  TRY(Store(txn, journal));
  return true;
}

bool LosesNothing(const Distrust& why) {
  return why.kind == DegradedKind::kImportUnfinished || why.kind == DegradedKind::kGap;
}

}  // namespace waybill::internal
