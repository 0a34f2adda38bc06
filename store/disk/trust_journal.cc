#include "store/disk/trust_journal.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <string>

#include "schema/v1/header_generated.h"
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

}  // namespace waybill::internal
