#include "store/engine/trust/trust_journal.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "schema/v4/header_generated.h"
#include "store/base/names.h"
#include "store/engine/database/flatbuffer.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace v1 = schema::v1;
namespace v4 = schema::v4;

namespace {

constexpr std::uint32_t kFirstWithKinds = 4;
constexpr std::uint32_t kFirstWithNotes = 5;

// How the sentences of versions 1 to 3 begin. Those versions compare the first two.
struct Sentence {
  DegradedKind kind;
  std::string_view begins;
};
constexpr std::array<Sentence, 11> kSentences = {{
    {DegradedKind::kImportUnfinished, "the import of "},
    {DegradedKind::kGap, "images may have been pulled that nobody recorded: "},
    {DegradedKind::kGap, "the gap is filled: "},
    {DegradedKind::kStoreRebuilt, "the database failed its check"},
    {DegradedKind::kStoreRestored, "the store was put back from "},
    {DegradedKind::kStoreLost, "data.mdb is gone from "},
    {DegradedKind::kStoreLost, "the store that the witness tells of is gone"},
    {DegradedKind::kStoreLost, "of the store in "},
    {DegradedKind::kStoreStale, "the witness "},
    {DegradedKind::kStoreStale, "the store is older than its witness "},
    {DegradedKind::kStoreStale, "nobody can read which witness the store has"},
}};

DegradedKind KindInWords(std::string_view reason, bool distrustful) {
  for (const Sentence& sentence : kSentences) {
    if (!reason.starts_with(sentence.begins)) continue;
    // An operator's words may begin like the store's.
    if (!distrustful && !reason.starts_with("the gap is filled: ")) break;
    return sentence.kind;
  }
  return distrustful ? DegradedKind::kOther : DegradedKind::kOperator;
}

// Older versions compare two kinds of reasons by their first words: reasons of these kinds begin
// with them, and no other reason does.
std::string InOldWords(const DegradedEvent& event) {
  for (const Sentence& sentence : {kSentences[0], kSentences[1]}) {
    const bool begins = event.reason.starts_with(sentence.begins);
    if (event.kind == sentence.kind && !begins) return std::string(sentence.begins) + event.reason;
    if (event.kind != sentence.kind && begins) return "distrust: " + event.reason;
  }
  return event.reason;
}

bool IsTakenBackBy(const DegradedEvent& event, const DegradedEvent& later) {
  return later.action == DegradedAction::kTakenBack && later.kind == event.kind &&
         later.reason == event.reason;
}

// As a version before 4 would have kept it.
Journal InOldTerms(const Journal& journal) {
  const std::vector<bool> in_force = InForce(journal);
  Journal old;
  for (std::size_t i = 0; i < journal.size(); ++i) {
    const DegradedEvent& event = journal[i];
    if (event.action == DegradedAction::kTakenBack || event.action == DegradedAction::kNote)
      continue;
    DegradedEvent kept = event;
    kept.distrustful = event.action != DegradedAction::kTrust;
    if (kept.distrustful && !in_force[i]) {
      // Keeps what an operator cleared. A reason that was taken back would be in force again.
      const auto end = std::find_if(
          journal.begin() + static_cast<std::ptrdiff_t>(i), journal.end(), [&](const auto& later) {
            return later.action == DegradedAction::kTrust || IsTakenBackBy(event, later);
          });
      if (end == journal.end() || end->action == DegradedAction::kTakenBack) continue;
    }
    if (kept.distrustful) kept.reason = InOldWords(event);
    old.push_back(std::move(kept));
  }
  return old;
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

std::string LastReasonOf(const Journal& journal) {
  const std::vector<bool> in_force = InForce(journal);
  for (std::size_t i = journal.size(); i > 0; --i) {
    if (in_force[i - 1]) return journal[i - 1].reason;
  }
  return {};
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

std::vector<std::uint8_t> EncodeJournal(const Journal& journal, std::uint32_t schema_version) {
  const bool has_kinds = schema_version >= kFirstWithKinds;
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<v4::TrustEvent>> offsets;
  for (const DegradedEvent& event : has_kinds ? journal : InOldTerms(journal)) {
    // To version 4 an unknown action is a reason for distrust.
    if (event.action == DegradedAction::kNote && schema_version < kFirstWithNotes) continue;
    const auto reason = builder.CreateString(event.reason);
    const v1::Time at = ToTime(event.at);
    const auto kind = has_kinds ? static_cast<std::uint8_t>(event.kind) : std::uint8_t{0};
    const auto action = has_kinds ? static_cast<std::uint8_t>(event.action) : std::uint8_t{0};
    offsets.push_back(v4::CreateTrustEvent(builder, &at, event.distrustful, reason, kind, action));
  }
  return Finish(builder, v4::CreateTrustJournal(builder, builder.CreateVector(offsets)));
}

std::optional<Journal> DecodeJournal(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v4::TrustJournal>(payload);
  // A few more than are kept where all are in force: a word on the others, and one that ends them.
  if (root == nullptr || root->events() == nullptr ||
      root->events()->size() > 2 * kMaxTrustEvents) {
    return std::nullopt;
  }
  Journal journal;
  for (const auto* event : *root->events()) {
    if (event->at() == nullptr || event->reason() == nullptr) return std::nullopt;
    DegradedEvent& read = journal.emplace_back();
    read.at = FromTime(*event->at());
    read.distrustful = event->distrustful();
    read.reason = event->reason()->str();
    read.kind = static_cast<DegradedKind>(event->kind());
    read.action = static_cast<DegradedAction>(event->action());
    if (event->action() != 0) continue;
    read.kind = KindInWords(read.reason, read.distrustful);
    read.action = read.distrustful ? DegradedAction::kDistrust : DegradedAction::kTrust;
  }
  return journal;
}

}  // namespace waybill::internal
