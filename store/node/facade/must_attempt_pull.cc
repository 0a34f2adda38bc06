// Decisions, and the kubelet's question around them.

#include <time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/base/quote.h"
#include "store/node/facade/impl.h"
#include "store/node/facade/node_store.h"
#include "waybill/values.h"

namespace waybill {

using internal::DecisionOrEntry, internal::Question, internal::ReaderPool, internal::Standing;

namespace {

ImagePullSecret Stored(const internal::SecretToStore& to_store) {
  const ImagePullSecretView& secret = *to_store.secret;
  ImagePullSecret stored{std::string(secret.uid), std::string(secret.namespace_name),
                         std::string(secret.name), std::string(secret.credential_hash)};
  stored.proof = internal::ToProof(to_store.proof);
  return stored;
}

// Steps 1 to 6 are decided on one snapshot; then the credentials are fetched, and compared in steps
// 7 to 9 (store/images/decide.h). Fetching may take long, or end in another call:
// then the snapshot is released, a copy of the record is compared, and the store is read again
// afterwards.
class Deciding {
 public:
  // `write_backs_queued`: kubelet rules, and a credential was queued to be written back before.
  Deciding(NodeStore::Impl& impl, const ImageCopy& copy, CredentialSource& source,
           ReaderPool::Lease& snapshot, bool write_backs_queued, bool writes_back = true)
      : impl_(impl),
        copy_(copy),
        source_(source),
        snapshot_(snapshot),
        write_backs_queued_(write_backs_queued),
        writes_back_(writes_back),
        question_{impl.rules, impl.policy, copy.image,      copy.image_ref, copy.runtime_handler,
                  impl.ages,  impl.clock,  impl.boot_clock, impl.aliases},
        standing_(snapshot, question_),
        now_(LookAtStore()) {}

  Decision Decide() {
    FirstLook* const of_both_calls = source_.first_look();
    if (of_both_calls != nullptr && *of_both_calls && !source_.deferred()) {
      const auto credentials = Fetch();
      return credentials ? CompareCopy(*of_both_calls, *credentials) : kNoCredentials;
    }
    if (now_.decision) return *now_.decision;
    if (!source_.deferred() && !source_.may_block()) return CompareOnSnapshot();
    FirstLook of_this_call;
    return LookFirst(of_both_calls != nullptr ? *of_both_calls : of_this_call);
  }

  // Of the pod, as far as its credentials show it; "": they do not. Lives as long as they do.
  std::string_view namespace_name() const { return namespace_name_; }
  // nullptr: they were not asked for, or could not be had.
  const PodCredentials* credentials() const { return credentials_ ? &*credentials_ : nullptr; }

 private:
  Result<PodCredentials> Fetch() {
    auto credentials = source_.Fetch();
    if (!credentials) return credentials;
    if (!credentials->secrets.empty()) {
      namespace_name_ = credentials->secrets.front().namespace_name;
    } else if (credentials->service_account) {
      namespace_name_ = credentials->service_account->namespace_name;
    }
    credentials_ = *credentials;
    return credentials;
  }

  static constexpr Decision kNoCredentials{true, CheckResult::kError,
                                           Reason::kCredentialsUnavailable, true};

  // Steps 1 to 6.
  DecisionOrEntry LookAtStore() {
    DecisionOrEntry now = internal::DecideWithoutCredentials(snapshot_, question_);
    // LMDB's readers can be misled for a moment: damage counts only if a fresh snapshot has it,
    // too.
    if (now.decision && now.decision->reason == Reason::kRecordDamaged && snapshot_.Refresh()) {
      now = internal::DecideWithoutCredentials(snapshot_, question_);
    }
    return now;
  }
  void LookAgain() {
    snapshot_.Release();
    snapshot_.Reacquire(impl_.Read());
    now_ = LookAtStore();
  }
  // A copy of a secret in another namespace may match what an earlier pod rotated. A kubelet has
  // written that by now, so this waits for it, but only if the answer would be "pull" otherwise.
  void LookBehindWriteBacks() {
    snapshot_.Release();
    impl_.write_backs->WaitFor(copy_.image_ref);
    LookAgain();
  }
  std::uint64_t read_at() const { return snapshot_ ? snapshot_.state().commit_sequence : 0; }

  // Fetching may take long: `first` gets the copy that is compared afterwards.
  Decision LookFirst(FirstLook& first) {
    first.record.assign(now_.row.begin(), now_.row.end());
    first.image_ref = copy_.image_ref;
    first.read_at = read_at();
    if (write_backs_queued_) {
      LookBehindWriteBacks();
      // If the record went meanwhile, its copy is compared: it must not become preloaded.
      if (!now_.decision) first.record.assign(now_.row.begin(), now_.row.end());
    }
    if (source_.deferred()) {
      return {true, CheckResult::kNotCounted, Reason::kCredentialsNeeded, false};
    }
    snapshot_.Release();
    const auto credentials = Fetch();
    if (!credentials) return kNoCredentials;
    LookAgain();
    return CompareCopy(first, *credentials);
  }

  // Steps 7 to 9, here and below.
  Decision CompareCopy(const FirstLook& first, const PodCredentials& credentials) {
    internal::SecretToStore write_back;
    const Decision of_copy =
        internal::CompareWithCopy(first.record, first.image_ref, question_, now_.runtime_handler,
                                  credentials, standing_, write_back);
    const Decision decision =
        internal::ConfirmOrTighten(of_copy, now_, impl_.rules, credentials, standing_);
    if (!decision.pull) OfferWriteBack(write_back, first.record, first.read_at);
    return decision;
  }

  Decision CompareOnSnapshot() {
    const std::uint64_t read = read_at();
    const auto credentials = Fetch();
    if (!credentials) return kNoCredentials;
    internal::SecretToStore write_back;
    Decision decision =
        internal::CompareCredentials(*now_.entry, *credentials, standing_, write_back);
    if (decision.pull && write_backs_queued_) {
      LookBehindWriteBacks();
      // If the record went meanwhile, the image must not become preloaded.
      if (now_.decision) {
        return internal::ConfirmOrTighten(decision, now_, impl_.rules, *credentials, standing_);
      }
      decision = internal::CompareCredentials(*now_.entry, *credentials, standing_, write_back);
    }
    if (!decision.pull) OfferWriteBack(write_back, now_.row, read);
    return decision;
  }

  void OfferWriteBack(const internal::SecretToStore& write_back, internal::Payload row,
                      std::uint64_t read) {
    if (write_back.secret == nullptr || !impl_.write_backs || !writes_back_) return;
    // Under another spelling than the record's, the store finds it by its own.
    internal::MatchedSecret matched{.image_name = std::string(*ImageName(copy_.image)),
                                    .image_ref = std::string(copy_.image_ref),
                                    .runtime_handler = std::string(now_.runtime_handler),
                                    .secret = Stored(write_back)};
    matched.only_registry = impl_.policy.CountsOnlyRegistry(matched.image_name);
    if (internal::WaitsForWriteBack(impl_.rules)) {
      matched.read = internal::DecodeImage(row);
      if (matched.read) matched.read->pulled->entries.clear();
    }
    impl_.write_backs->Offer(std::move(matched), read);
  }

  NodeStore::Impl& impl_;
  const ImageCopy& copy_;
  CredentialSource& source_;
  ReaderPool::Lease& snapshot_;
  const bool write_backs_queued_;
  const bool writes_back_;
  const Question question_;
  const Standing standing_;
  DecisionOrEntry now_;  // as the snapshot has it
  std::string_view namespace_name_;
  std::optional<PodCredentials> credentials_;
};

// A container wants an image; without a decision, whatever is known of it.
void TraceUse(internal::TraceWriter& trace, const ImageCopy& copy, const Decision& decision,
              const Deciding* deciding) {
  internal::TraceWriter::Noted noted{
      .copy = copy, .reason = ReasonName(decision.reason), .must_pull = decision.pull};
  if (deciding != nullptr) {
    noted.pod_namespace = deciding->namespace_name();
    noted.credentials = deciding->credentials();
  }
  trace.Add(noted);
}

constexpr std::size_t kFalse = 0;
constexpr std::size_t kTrue = 1;
constexpr std::size_t kUnknown = 2;

}  // namespace

bool NodeStore::Impl::OwnerIsNoStricter() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const std::int64_t tick = now.tv_sec * 1'000'000'000 + now.tv_nsec;
  const std::int64_t known = owner_is_no_stricter_.load();
  if (known / 2 == tick) return known % 2 != 0;
  bool is_no_stricter = false;
  try {
    const auto owner = internal::LookAtOwner(directory);
    std::optional<std::string> announced;
    if (!owner || owner->is_owned) announced = owner ? owner->settings : "";
    Settings mine = SettingsNow();
    // An exception within what only the registry may prove is not among the settings.
    const auto is_any = [](const auto& rule) { return rule.second == Proofs::kAny; };
    if (std::ranges::any_of(policy.proofs(), is_any)) mine.policy.registry_only.clear();
    const bool decides = announced && !announced->starts_with(internal::kDecidesNothing);
    is_no_stricter = !announced || internal::IsNoLaxer(mine, *announced);
    if (is_no_stricter && decides && ages) {
      const ReaderPool::Lease snapshot = Read();
      is_no_stricter = snapshot && internal::IsNoLaxer(*ages, snapshot.state().ages);
    }
  } catch (...) {  // out of memory
  }
  owner_is_no_stricter_ = 2 * tick + (is_no_stricter ? 1 : 0);
  return is_no_stricter;
}

Decision NodeStore::Impl::Decide(const ImageCopy& copy, CredentialSource& source) {
  // An absent image needs no store, and is not counted.
  if (copy.image_ref.empty()) {
    constexpr Decision kAbsent{true, CheckResult::kNotCounted, Reason::kImageAbsent, false};
    if (trace) TraceUse(*trace, copy, kAbsent, nullptr);
    return kAbsent;
  }
  if (!MayDecide()) return {};
  try {
    // Read before the snapshot is taken, which then has what is written in between.
    const bool write_backs_queued =
        internal::WaitsForWriteBack(rules) && write_backs && write_backs->busy();
    ReaderPool::Lease snapshot = Read();
    Deciding deciding(*this, copy, source, snapshot, write_backs_queued);
    const Decision decision = deciding.Decide();
    if (decision.result == CheckResult::kNotCounted) return decision;
    if (trace) TraceUse(*trace, copy, decision, &deciding);
    const std::size_t counter = internal::CounterOf(decision.result, decision.reason);
    if (!snapshot.Count(counter)) readers.CountWithoutSlot(counter);
    return decision;
  } catch (...) {  // out of memory, or what the source throws
    const Decision failed;
    readers.CountWithoutSlot(internal::CounterOf(failed.result, failed.reason));
    return failed;
  }
}

Decision NodeStore::MustAttemptPull(const ImageCopy& copy, CredentialSource& credentials) {
  return impl_->Decide(copy, credentials);
}

Decision NodeStore::PreviewDecision(const ImageCopy& copy, CredentialSource& credentials) const {
  if (copy.image_ref.empty()) return {true, CheckResult::kNotCounted, Reason::kImageAbsent, false};
  if (!impl_->MayDecide()) return {};
  try {
    ReaderPool::Lease snapshot = impl_->Read();
    Deciding deciding(*impl_, copy, credentials, snapshot, false, false);
    return deciding.Decide();
  } catch (...) {
    return {};
  }
}

EnsureOutcome NodeStore::EnsureImage(const ImageCopy& copy, PullPolicy policy,
                                     CredentialSource& credentials) try {
  const std::string_view image = copy.image;
  const auto count = [&](std::size_t present, std::size_t required) {
    impl_->ensure_requests[static_cast<std::size_t>(policy)][present][required].fetch_add(
        1, std::memory_order_relaxed);
  };
  EnsureOutcome outcome;
  if (image.size() > kMaxImageBytes || !NormaliseImage(image)) {
    count(kUnknown, kUnknown);
    outcome.action = EnsureAction::kInvalidImageName;
    outcome.message = "Failed to apply default image tag " + internal::QuoteForMessage(image) +
                      ": it is not a valid image name";
    return outcome;
  }
  const std::size_t present = copy.image_ref.empty() ? kFalse : kTrue;
  if (policy == PullPolicy::kAlways) {
    count(present, kTrue);
    if (impl_->trace) impl_->trace->Add({.copy = copy, .must_pull = true});
    return outcome;
  }
  const std::string quoted = "\"" + std::string(image) + "\"";  // a sound name needs no escape
  const Decision decision = impl_->Decide(copy, credentials);
  outcome.decision = decision;
  if (!decision.pull) {
    count(present, kFalse);
    outcome.action = EnsureAction::kUsePresent;
    outcome.message =
        "Container image " + quoted + " already present on machine and can be accessed by the pod";
    return outcome;
  }
  // The kubelet passes the error on, which reveals that the image is there ("Two sets of rules").
  if (impl_->rules == Mode::kKubelet && decision.reason == Reason::kCredentialsUnavailable) {
    count(present, kUnknown);
    outcome.action = EnsureAction::kCredentialsError;
    outcome.message = "Failed to get the credentials of the pod for image " + quoted;
    return outcome;
  }
  if (decision.reason != Reason::kCredentialsNeeded) count(present, kTrue);
  if (policy == PullPolicy::kNever) {
    outcome.action = EnsureAction::kNeverPull;
    outcome.message = "Container image " + quoted + " is not present with pull policy of Never";
  }
  return outcome;
} catch (...) {
  // Out of memory: what is not known to be allowed is pulled, or refused.
  EnsureOutcome outcome;
  if (policy == PullPolicy::kNever) outcome.action = EnsureAction::kNeverPull;
  return outcome;
}

Result<void> NodeStore::Flush() try {
  if (!impl_->write_backs) return {};
  return impl_->write_backs->Flush();
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
