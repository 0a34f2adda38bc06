#include "store/disk/trust.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <string>
#include <utility>

#include "schema/v1/header_generated.h"
#include "store/base/try.h"
#include "store/disk/flatbuffer.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace v1 = schema::v1;

namespace {

bool IsTakenBackBy(const DegradedEvent& event, const DegradedEvent& later) {
  return later.action == DegradedAction::kTakenBack && later.kind == event.kind &&
         later.reason == event.reason;
}

}  // namespace

std::vector<bool> InForce(const Journal& journal) {
  std::vector<bool> in_force(journal.size(), false);
  for (std::size_t i = 0; i < journal.size(); ++i) {
    if (journal[i].action == DegradedAction::kTrust) {
      in_force.assign(journal.size(), false);
    } else if (journal[i].action == DegradedAction::kTakenBack) {
      for (std::size_t j = 0; j < i; ++j) {
        if (IsTakenBackBy(journal[j], journal[i])) in_force[j] = false;
      }
    } else if (journal[i].action != DegradedAction::kNote) {
      in_force[i] = true;
    }
  }
  return in_force;
}

std::vector<Distrust> ReasonsIn(const Journal& journal) {
  const std::vector<bool> in_force = InForce(journal);
  std::vector<Distrust> reasons;
  for (std::size_t i = journal.size(); i > 0; --i) {
    if (in_force[i - 1]) reasons.push_back({journal[i - 1].kind, journal[i - 1].reason});
  }
  return reasons;
}

std::string LastReasonOf(const Journal& journal) {
  const std::vector<Distrust> reasons = ReasonsIn(journal);
  return reasons.empty() ? std::string() : reasons.front().reason;
}

bool MakeRoom(Journal& journal) {
  while (journal.size() >= kMaxTrustEvents) {
    const std::vector<bool> in_force = InForce(journal);
    const auto oldest = std::find(in_force.begin(), in_force.end(), false);
    if (oldest == in_force.end()) return false;
    journal.erase(journal.begin() + (oldest - in_force.begin()));
  }
  return true;
}

std::vector<std::uint8_t> EncodeJournal(const Journal& journal) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<v1::TrustEvent>> offsets;
  for (const DegradedEvent& event : journal) {
    const auto reason = builder.CreateString(event.reason);
    const v1::Time at = ToTime(event.at);
    offsets.push_back(v1::CreateTrustEvent(builder, &at, event.distrustful, reason,
                                           static_cast<std::uint8_t>(event.kind),
                                           static_cast<std::uint8_t>(event.action)));
  }
  return Finish(builder, v1::CreateTrustJournal(builder, builder.CreateVector(offsets)));
}

std::optional<Journal> DecodeJournal(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v1::TrustJournal>(payload);
  // A few more than are kept where all are in force: a word on the others, and one that ends them.
  if (root == nullptr || root->events() == nullptr ||
      root->events()->size() > 2 * kMaxTrustEvents) {
    return std::nullopt;
  }
  Journal journal;
  for (const auto* event : *root->events()) {
    if (event->at() == nullptr || event->reason() == nullptr || event->kind() == 0 ||
        event->action() == 0) {
      return std::nullopt;
    }
    DegradedEvent& read = journal.emplace_back();
    read.at = FromTime(*event->at());
    read.distrustful = event->distrustful();
    read.reason = event->reason()->str();
    read.kind = static_cast<DegradedKind>(event->kind());
    read.action = static_cast<DegradedAction>(event->action());
  }
  return journal;
}

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
