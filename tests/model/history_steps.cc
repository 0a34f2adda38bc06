// The steps of a history that record something.

#include <array>
#include <string_view>

#include "store/base/platform.h"
#include "tests/model/describe.h"
#include "tests/model/drawn_values.h"
#include "tests/model/history.h"

namespace waybill::testing {

namespace {

constexpr std::size_t kPullsKept = 12;
constexpr std::size_t kRecordsKept = 12;

bool Refused(const auto& result, ErrorCode code) { return !result && result.error().code == code; }

}  // namespace

std::optional<std::size_t> History::DrawBegun() {
  if (begun_.empty() || draw_.OneIn(3)) return std::nullopt;
  return draw_.Below(begun_.size());
}

void History::IntentStep() {
  const KnownImage& image = DrawImage(draw_);
  const std::string handler = DrawHandler();
  Note("intent " + Quote(image.image) + For(handler));
  begun_.push_back({image, handler});
  if (begun_.size() > kPullsKept) begun_.pop_front();
  for (Side& side : sides_) {
    const std::string name = Named(side, handler);
    const auto result =
        side.store->RecordPullIntent({.image = image.image, .runtime_handler = name});
    const PullId id = result.value_or(PullId());
    const bool taken = side.model.Intent(image, name, id);
    ExpectTaken(result ? Result<void>() : result.error(), taken, side);
    Expect((id.value != 0) == taken, side, "a pull without an ID");
    side.pulls.push_back(id);
    if (side.pulls.size() > kPullsKept) side.pulls.pop_front();
    for (const ModelBackup& backup : side.backups) backup.model->LearnPullIds(side.model);
    if (taken) continue;
    for (const RuntimeHandler& known : side.model.handlers()) {
      Expect(result.error().message.find(known.name) != std::string::npos, side,
             "does not list " + known.name + ": " + result.error().message);
    }
  }
}

void History::PulledStep() {
  const auto begun = DrawBegun();
  const KnownImage& image = begun ? begun_[*begun].image : DrawImage(draw_);
  const std::string& ref = draw_.From(Refs());
  const auto credentials = DrawCredentials(draw_);
  const std::string handler = begun ? begun_[*begun].handler : DrawHandler();
  const auto manifest = DrawManifest();
  std::optional<ListedImage> entry;
  if (draw_.OneIn(2)) entry = ImageOfRef(ref);
  const ProofTerms terms = DrawTerms(draw_, clock_.Now());
  Note(
      std::string(begun ? "pulled by ID " : "pulled ") + (entry ? "with its entry " : "") +
      Quote(image.image) + " " + Quote(ref) + For(handler) + " " +
      (credentials ? DescribeCredentials(*credentials) : "unknown") +
      (manifest ? " manifest " + manifest->digest + " " + FormatPlatform(manifest->platform) : "") +
      " checked by " + std::string(WordOf(terms.checker)) +
      (terms.node_had_no_credentials ? ", the node had none" : "") +
      (terms.good_until ? " until " + std::to_string(terms.good_until->seconds) : ""));
  if (!Agree([&](const Model& model) { return model.MayEnd(image, handler); })) return;
  for (Side& side : sides_) {
    const std::string name = Named(side, handler);
    const PullResult how{.pull = begun ? side.pulls[*begun] : PullId(),
                         .manifest = manifest,
                         .image = entry,
                         .terms = terms};
    const auto result = side.store->RecordImagePulled(
        {.image = image.image, .image_ref = ref, .runtime_handler = name}, credentials, how);
    ExpectTaken(result, side.model.Pulled(image, ref, credentials, name, how), side);
  }
}

void History::FailedStep() {
  const auto begun = DrawBegun();
  const KnownImage& image = begun ? begun_[*begun].image : DrawImage(draw_);
  const std::size_t how = draw_.Below(3);
  const PullOutcome failure =
      std::array{PullOutcome::kFailed, PullOutcome::kUnknown, PullOutcome::kNothing}[how];
  const std::string handler = begun ? begun_[*begun].handler : DrawHandler();
  constexpr const char* kHow[] = {"", " or not", ", nothing transferred"};
  Note(std::string(begun ? "failed by ID " : "failed ") + Quote(image.image) + For(handler) +
       kHow[how]);
  if (!Agree([&](const Model& model) { return model.MayEnd(image, handler); })) return;
  for (Side& side : sides_) {
    const std::string name = Named(side, handler);
    const PullId id = begun ? side.pulls[*begun] : PullId();
    const auto result = side.store->RecordImagePullFailed(
        {.image = image.image, .runtime_handler = name}, failure, id);
    ExpectTaken(result, side.model.Failed(image, failure, name, id), side);
  }
}

void History::PutRecordStep() {
  ImagePulledRecord record = DrawRecord(draw_, clock_.Now());
  record.runtime_handler = DrawHandler();
  if (!read_.empty() && draw_.OneIn(2)) record = read_[draw_.Below(read_.size())];
  if (const auto manifest = DrawManifest()) {
    record.manifest_digest = manifest->digest;
    record.platform = manifest->platform;
    record.guest_platform = manifest->platform;  // not the caller's to say
  }
  const ProofTerms terms = DrawTerms(draw_, clock_.Now());
  Note("put " + DescribeRecord(record) +
       (terms.node_had_no_credentials ? ", the node had none" : ""));
  const auto may_put = [&](const Model& model) {
    return model.Stored(record.runtime_handler) ||
           model.Find(record.image_ref, record.runtime_handler) != nullptr;
  };
  if (!Agree(may_put)) return;
  for (Side& side : sides_) {
    ImagePulledRecord put = record;
    put.runtime_handler = Named(side, record.runtime_handler);
    ExpectTaken(side.store->PutRecord(put, terms), side.model.Put(put, terms), side);
  }
}

void History::GetRecordStep() {
  const std::string& ref = draw_.From(Refs());
  const std::string handler = DrawHandler();
  Note("get " + Quote(ref) + For(handler));
  for (Side& side : sides_) {
    const std::string name = Named(side, handler);
    const ImagePulledRecord* const expected = side.model.Find(ref, name);
    auto record = side.store->GetRecord({.image_ref = ref, .runtime_handler = name});
    if (expected == nullptr) {
      Expect(!record && record.error().code == ErrorCode::kNotFound, side, "there is a record");
      continue;
    }
    if (!record) Expect(false, side, record.error().ToString());
    record->stamp = expected->stamp;
    record->closed_because = expected->closed_because;
    if (record->absent_since) record->absent_since = expected->absent_since;
    const ImagePulledRecord counting = side.model.Counting(*expected);
    Expect(*record == counting, side,
           DescribeRecord(*record) + "\n  instead of " + DescribeRecord(counting));
    if (&side != &sides_[0]) continue;
    read_.push_back(*record);
    if (read_.size() > kRecordsKept) read_.pop_front();
  }
}

void History::DeleteRecordStep() {
  const std::string& ref = draw_.From(Refs());
  const std::string handler = DrawHandler();
  Note("delete " + Quote(ref) + For(handler));
  for (Side& side : sides_) {
    const std::string name = Named(side, handler);
    side.model.Delete(ref, name);
    ExpectDone(side.store->DeleteRecord({.image_ref = ref, .runtime_handler = name}), side);
  }
}

void History::PutIntentStep() {
  const KnownImage& image = DrawImage(draw_);
  const std::string handler = DrawHandler();
  Note("put intent " + Quote(image.image) + For(handler));
  for (Side& side : sides_) {
    const std::string name = Named(side, handler);
    ExpectTaken(side.store->PutIntent({.image = image.image, .runtime_handler = name}),
                side.model.PutIntent(image, name), side);
  }
}

void History::DeleteIntentStep() {
  const KnownImage& image = DrawImage(draw_);
  const std::string handler = DrawHandler();
  Note("delete intent " + Quote(image.image) + For(handler));
  for (Side& side : sides_) {
    const std::string name = Named(side, handler);
    side.model.DeleteIntent(image, name);
    ExpectDone(side.store->DeleteIntent({.image = image.image, .runtime_handler = name}), side);
    const auto there = side.store->HasIntent({.image = image.image, .runtime_handler = name});
    Expect(there.has_value() && *there == side.model.HasIntent(image, name), side,
           "the intent is there, or is not");
  }
}

// What is refused changes nothing.
void History::RefusedStep() {
  Note("calls that are refused");
  const std::string& image = DrawImage(draw_).image;
  const std::string too_long(kMaxImageBytes + 1, 'a');
  const std::string& ref = draw_.From(Refs());
  for (Side& side : sides_) {
    NodeStore& store = *side.store;
    Expect(Refused(store.RecordPullIntent({.image = too_long}), ErrorCode::kLimitExceeded), side,
           "intent");
    Expect(Refused(store.RecordPullIntent({.image = image, .runtime_handler = too_long}),
                   ErrorCode::kLimitExceeded),
           side, "intent for a long handler");
    Expect(Refused(store.RecordImagePullFailed({.image = too_long}), ErrorCode::kLimitExceeded),
           side, "failed");
    Expect(Refused(store.RecordImagePulled({.image = image}, std::nullopt),
                   ErrorCode::kInvalidArgument),
           side, "pulled without a ref");
    Expect(Refused(store.RecordImagePulled({.image = image, .image_ref = too_long}, std::nullopt),
                   ErrorCode::kLimitExceeded),
           side, "pulled with a long ref");
    Expect(Refused(store.PutRecord({}), ErrorCode::kInvalidArgument), side, "put without a ref");
    ImagePulledRecord record;
    record.image_ref = ref;
    record.credential_mapping["nginx"].kubernetes_secrets.push_back({too_long, "a", "b", "c"});
    Expect(Refused(store.PutRecord(record), ErrorCode::kLimitExceeded), side, "put a long UID");
    const auto token = store.BeginList();
    Expect(token.has_value(), side, "no token");
    side.model.Drew(token->commit);
    ListToken future = *token;
    ++future.commit;
    const auto pruned = store.Prune({}, future);
    Expect(!pruned && pruned.error().code == ErrorCode::kInvalidArgument, side,
           "a token from the future");
  }
}

}  // namespace waybill::testing
