#include "store/disk/trust.h"

#include <algorithm>
#include <utility>

#include "store/base/try.h"

namespace waybill::internal {

namespace {

Result<Journal> ReadJournal(const StoreTxn& txn) {
  auto payload = TRY(txn.GetHeaderRecord(kTrustKey, RecordKind::kTrustJournal));
  auto journal = DecodeJournal(payload);
  return journal ? std::move(*journal) : Journal();
}

Result<void> Store(StoreTxn& txn, const Journal& journal) {
  txn.state().distrustful = !ReasonsIn(journal).empty();
  return txn.PutHeaderRecord(kTrustKey, RecordKind::kTrustJournal, EncodeJournal(journal));
}

Result<void> Append(StoreTxn& txn, Journal journal, DegradedEvent event) {
  event.at = txn.now();
  journal.push_back(std::move(event));
  journal.back().distrustful = !ReasonsIn(journal).empty();
  return Store(txn, journal);
}

// Whether it is in force, and the state says so.
bool Has(const StoreTxn& txn, const Journal& journal, const Distrust& why) {
  return txn.state().distrustful && std::ranges::count(ReasonsIn(journal), why) > 0;
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
  return txn.state().distrustful ? ReasonsIn(journal) : std::vector<Distrust>();
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
