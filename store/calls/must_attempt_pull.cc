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
#include "store/calls/impl.h"
#include "store/calls/node_store.h"
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
  // Of a decision that nobody goes by.
  struct Previewing {
    const VerificationPolicy* what_if;  // nullptr: the store's
  };
  // `write_backs_queued`: kubelet rules, and a credential was queued to be written back before.
  Deciding(NodeStore::Impl& impl, const ImageCopy& copy, CredentialSource& source,
           ReaderPool::Lease& snapshot, bool write_backs_queued,
           const Previewing* preview = nullptr)
      : impl_(impl),
        copy_(copy),
        source_(source),
        snapshot_(snapshot),
        write_backs_queued_(write_backs_queued),
        writes_back_(preview == nullptr && impl.write_backs),
        mode_(snapshot ? internal::ModeIn(snapshot) : Mode::kStrict),
        settings_(snapshot ? snapshot.state().settings_hash : 0),
        policy_(impl.PolicyIn(snapshot)),
        question_(impl.AskAbout(copy, preview != nullptr && preview->what_if != nullptr
                                          ? *preview->what_if
                                          : *policy_)),
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

  // nullptr: they were not asked for, or could not be had.
  const PodCredentials* credentials() const { return credentials_ ? &*credentials_ : nullptr; }

 private:
  Result<PodCredentials> Fetch() {
    auto credentials = source_.Fetch();
    if (credentials && impl_.trace) credentials_ = *credentials;
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
    // A decision goes by one mode and one policy.
    if (snapshot_ &&
        (internal::ModeIn(snapshot_) != mode_ || snapshot_.state().settings_hash != settings_)) {
      now.decision = Decision{true, CheckResult::kError, Reason::kStoreUnavailable, false};
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
        internal::ConfirmOrTighten(of_copy, now_, mode_, credentials, standing_);
    if (!decision.pull && write_back.secret != nullptr) {
      OfferWriteBack(write_back, first.record, first.read_at);
    }
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
        return internal::ConfirmOrTighten(decision, now_, mode_, *credentials, standing_);
      }
      decision = internal::CompareCredentials(*now_.entry, *credentials, standing_, write_back);
    }
    if (!decision.pull && write_back.secret != nullptr) OfferWriteBack(write_back, now_.row, read);
    return decision;
  }

  void OfferWriteBack(const internal::SecretToStore& write_back, internal::Payload row,
                      std::uint64_t read) {
    if (!writes_back_) return;
    // Under another spelling than the record's, the store finds it by its own.
    internal::MatchedSecret matched{.image_name = std::string(*ImageName(copy_.image)),
                                    .image_ref = std::string(copy_.image_ref),
                                    .runtime_handler = std::string(now_.runtime_handler),
                                    .secret = Stored(write_back)};
    matched.only_registry = impl_.policy.CountsOnlyRegistry(matched.image_name);
    if (internal::WaitsForWriteBack(mode_)) {
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
  const Mode mode_;               // of the first look, likewise:
  const std::uint64_t settings_;  // State::settings_hash
  const std::shared_ptr<const VerificationPolicy> policy_;
  const Question question_;
  const Standing standing_;
  DecisionOrEntry now_;  // as the snapshot has it
  std::optional<PodCredentials> credentials_;
};

// A container wants an image; without a decision, whatever is known of it.
void TraceUse(internal::TraceWriter& trace, const ImageCopy& copy, const Decision& decision,
              const Deciding* deciding) {
  internal::TraceWriter::Noted noted{
      .copy = copy, .reason = ReasonName(decision.reason), .must_pull = decision.pull};
  if (deciding != nullptr) noted.credentials = deciding->credentials();
  if (const PodCredentials* const of_pod = noted.credentials) {
    if (!of_pod->secrets.empty()) {
      noted.pod_namespace = of_pod->secrets.front().namespace_name;
    } else if (of_pod->service_account) {
      noted.pod_namespace = of_pod->service_account->namespace_name;
    }
  }
  trace.Add(noted);
}

constexpr std::size_t kFalse = 0;
constexpr std::size_t kTrue = 1;
constexpr std::size_t kUnknown = 2;

}  // namespace

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

Decision NodeStore::Impl::Preview(const ImageCopy& copy, CredentialSource& source,
                                  const VerificationPolicy* what_if) noexcept {
  if (copy.image_ref.empty()) return {true, CheckResult::kNotCounted, Reason::kImageAbsent, false};
  if (!MayDecide()) return {};
  try {
    ReaderPool::Lease snapshot = Read();
    const Deciding::Previewing preview{what_if};
    return Deciding(*this, copy, source, snapshot, false, &preview).Decide();
  } catch (...) {
    return {};
  }
}

Decision NodeStore::PreviewDecision(const ImageCopy& copy, CredentialSource& credentials,
                                    const VerificationPolicy* what_if) const {
  return impl_->Preview(copy, credentials, what_if);
}

EnsureOutcome NodeStore::EnsureImage(const ImageCopy& copy, PullPolicy policy,
                                     CredentialSource& credentials, bool is_preview,
                                     const VerificationPolicy* what_if) try {
  const std::string_view image = copy.image;
  const auto count = [&](std::size_t present, std::size_t required) {
    if (is_preview) return;
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
    if (impl_->trace && !is_preview) impl_->trace->Add({.copy = copy, .must_pull = true});
    return outcome;
  }
  const std::string quoted = "\"" + std::string(image) + "\"";  // a sound name needs no escape
  const Decision decision =
      is_preview ? impl_->Preview(copy, credentials, what_if) : impl_->Decide(copy, credentials);
  outcome.decision = decision;
  if (!decision.pull) {
    count(present, kFalse);
    outcome.action = EnsureAction::kUsePresent;
    outcome.message =
        "Container image " + quoted + " already present on machine and can be accessed by the pod";
    return outcome;
  }
  // The kubelet passes the error on, which reveals that the image is there ("Two sets of rules").
  if (decision.reason == Reason::kCredentialsUnavailable && impl_->ModeNow() == Mode::kKubelet) {
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
