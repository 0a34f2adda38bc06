// The steps of a history that record something.

#include <algorithm>
#include <string_view>
#include <utility>

#include "tests/model/drawn_values.h"
#include "tests/model/history.h"

namespace waybill::testing {

namespace {

constexpr std::size_t kTokensKept = 8;

std::string Quote(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string Join(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& item : list) text += " " + item.substr(0, 9);
  return text;
}

bool Refused(const Result<void>& result, ErrorCode code) {
  return !result && result.error().code == code;
}

std::set<std::string> RefsOf(const Model& model) {
  std::set<std::string> refs;
  for (const auto& [ref, record] : model.records()) refs.insert(ref);
  return refs;
}

}  // namespace

void History::IntentStep() {
  const KnownImage& image = DrawImage(draw_);
  Note("intent " + Quote(image.image));
  for (Side& side : sides_) {
    side.model.Intent(image);
    ExpectDone(side.store->RecordPullIntent(image.image), side);
  }
}

void History::PulledStep() {
  const KnownImage& image = DrawImage(draw_);
  const std::string& ref = draw_.From(Refs());
  const auto credentials = DrawCredentials(draw_);
  Note("pulled " + Quote(image.image) + " " + Quote(ref) + " " +
       (credentials ? DescribeCredentials(*credentials) : "unknown"));
  for (Side& side : sides_) {
    const auto result = side.store->RecordImagePulled(image.image, ref, credentials);
    if (side.model.Pulled(image, ref, credentials)) {
      ExpectDone(result, side);
    } else {
      Expect(Refused(result, ErrorCode::kInvalidArgument), side, "it should have been refused");
    }
  }
}

void History::FailedStep() {
  const KnownImage& image = DrawImage(draw_);
  const auto failure = draw_.OneIn(3) ? PullFailure::kUnknown : PullFailure::kFailed;
  Note("failed " + Quote(image.image) + (failure == PullFailure::kUnknown ? " or not" : ""));
  for (Side& side : sides_) {
    side.model.Failed(image, failure);
    ExpectDone(side.store->RecordImagePullFailed(image.image, failure), side);
  }
}

void History::DrawTokenStep() {
  Note("draw a token");
  for (Side& side : sides_) {
    const auto token = side.store->BeginPrune();
    if (!token) Expect(false, side, token.error().ToString());
    side.tokens.push_back({*token, side.model.token()});
    if (side.tokens.size() > kTokensKept) side.tokens.pop_front();
  }
}

void History::PruneByTokenStep() {
  if (sides_[0].tokens.empty()) DrawTokenStep();
  const std::vector<std::string> refs = DrawRefs(draw_);
  const std::size_t which = draw_.Below(sides_[0].tokens.size());
  Note("prune by token " + std::to_string(which) + " of " +
       std::to_string(sides_[0].tokens.size()) + ", listed:" + Join(refs));
  const auto before = RefsOf(sides_[0].model);
  for (Side& side : sides_) {
    const TokenPair& token = side.tokens[which];
    const PruneReport expected = side.model.Prune(refs, token.model);
    ComparePruned(side, side.store->Prune({refs.begin(), refs.end()}, token.store), expected);
  }
  NoteParted(before);
}

void History::PruneByTimeStep() {
  const std::vector<std::string> refs = DrawRefs(draw_);
  Timestamp until = clock_.Now();
  until.seconds -= static_cast<std::int64_t>(draw_.Below(20));
  if (draw_.OneIn(2)) until.nanoseconds = static_cast<std::int32_t>(draw_.Below(3)) * 400'000'000;
  Note("prune before " + std::to_string(until.seconds) + "." + std::to_string(until.nanoseconds) +
       ", listed:" + Join(refs));
  const auto before = RefsOf(sides_[0].model);
  for (Side& side : sides_) {
    const PruneReport expected = side.model.PruneBefore(refs, until);
    ComparePruned(side, side.store->PruneBefore({refs.begin(), refs.end()}, until), expected);
  }
  NoteParted(before);
}

void History::PutRecordStep() {
  const ImagePulledRecord record = DrawRecord(draw_, clock_.Now());
  Note("put " + DescribeRecord(record));
  for (Side& side : sides_) {
    side.model.Put(record);
    ExpectDone(side.store->PutRecord(record), side);
  }
  parted_.erase(record.image_ref);
}

void History::GetRecordStep() {
  const std::string& ref = draw_.From(Refs());
  Note("get " + Quote(ref));
  for (Side& side : sides_) {
    auto record = side.store->GetRecord(ref);
    const auto expected = side.model.records().find(ref);
    if (expected == side.model.records().end()) {
      Expect(!record && record.error().code == ErrorCode::kNotFound, side, "there is a record");
      continue;
    }
    if (!record) Expect(false, side, record.error().ToString());
    record->stamp = expected->second.stamp;
    Expect(*record == expected->second, side,
           DescribeRecord(*record) + "\n  instead of " + DescribeRecord(expected->second));
  }
}

void History::DeleteRecordStep() {
  const std::string& ref = draw_.From(Refs());
  Note("delete " + Quote(ref));
  for (Side& side : sides_) {
    side.model.Delete(ref);
    ExpectDone(side.store->DeleteRecord(ref), side);
  }
  parted_.erase(ref);
}

void History::PutIntentStep() {
  const KnownImage& image = DrawImage(draw_);
  Note("put intent " + Quote(image.image));
  for (Side& side : sides_) {
    side.model.PutIntent(image);
    ExpectDone(side.store->PutIntent(image.image), side);
  }
}

void History::DeleteIntentStep() {
  const KnownImage& image = DrawImage(draw_);
  Note("delete intent " + Quote(image.image));
  for (Side& side : sides_) {
    side.model.DeleteIntent(image);
    ExpectDone(side.store->DeleteIntent(image.image), side);
    const auto there = side.store->HasIntent(image.image);
    Expect(there.has_value() && *there == side.model.HasIntent(image), side,
           "the intent is there, or is not");
  }
}

void History::FlushStep() {
  Note("flush");
  for (Side& side : sides_) ExpectDone(side.store->Flush(), side);
}

void History::ClockStep() {
  Timestamp now = clock_.Now();
  now.seconds += static_cast<std::int64_t>(draw_.Below(5));
  now.nanoseconds = static_cast<std::int32_t>(draw_.Below(1'000'000'000));
  if (draw_.OneIn(20)) now.seconds -= static_cast<std::int64_t>(draw_.Below(50));
  Note("clock " + std::to_string(now.seconds) + "." + std::to_string(now.nanoseconds));
  SetTime(now);
}

// What is refused changes nothing.
void History::RefusedStep() {
  Note("calls that are refused");
  const std::string& image = DrawImage(draw_).image;
  const std::string too_long(kMaxImageBytes + 1, 'a');
  const std::string& ref = draw_.From(Refs());
  for (Side& side : sides_) {
    NodeStore& store = *side.store;
    Expect(Refused(store.RecordPullIntent(too_long), ErrorCode::kLimitExceeded), side, "intent");
    Expect(Refused(store.RecordImagePullFailed(too_long), ErrorCode::kLimitExceeded), side,
           "failed");
    Expect(Refused(store.RecordImagePulled(image, "", std::nullopt), ErrorCode::kInvalidArgument),
           side, "pulled without a ref");
    Expect(
        Refused(store.RecordImagePulled(image, too_long, std::nullopt), ErrorCode::kLimitExceeded),
        side, "pulled with a long ref");
    Expect(Refused(store.PutRecord({}), ErrorCode::kInvalidArgument), side, "put without a ref");
    ImagePulledRecord record{ref, std::nullopt, {}, 0};
    record.credential_mapping["nginx"].kubernetes_secrets.push_back({too_long, "a", "b", "c"});
    Expect(Refused(store.PutRecord(record), ErrorCode::kLimitExceeded), side, "put a long UID");
    const auto token = store.BeginPrune();
    Expect(token.has_value(), side, "no token");
    const auto pruned = store.Prune({}, {token->value + 1});
    Expect(!pruned && pruned.error().code == ErrorCode::kInvalidArgument, side,
           "a token from the future");
  }
}

}  // namespace waybill::testing
