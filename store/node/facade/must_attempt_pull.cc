// Decisions, and the kubelet's question around them.

#include <string>
#include <utility>

#include "store/base/quote.h"
#include "store/node/facade/impl.h"
#include "waybill/image_name.h"

namespace waybill {

using internal::DecisionOrEntry;
using internal::Question;
using internal::ReaderPool;
using internal::Standing;

namespace {

ImagePullSecret Stored(const internal::SecretToStore& to_store) {
  const ImagePullSecretView& secret = *to_store.secret;
  const internal::StoredProof& proof = to_store.proof;
  ImagePullSecret stored{std::string(secret.uid), std::string(secret.namespace_name),
                         std::string(secret.name), std::string(secret.credential_hash)};
  if (proof.proven != 0) stored.proof.proven = Timestamp{proof.proven, 0};
  stored.proof.pull_began = proof.pull_began;
  return stored;
}

}  // namespace

// Steps 1 to 6 are decided on one snapshot; then the credentials are fetched, and compared in steps
// 7 to 9 (store/node/decision/decision_steps.h). Fetching may take long, or end in another call:
// then the snapshot is released, a copy of the record is compared, and the store is read again
// afterwards.
Decision NodeStore::Impl::DecideUncounted(const ImageCopy& copy, CredentialSource& source,
                                          ReaderPool::Lease& snapshot, bool write_backs_queued) {
  const Question question{rules, policy, copy.image, copy.image_ref, copy.runtime_handler,
                          ages,  clock};
  const Standing standing(snapshot, question);
  const auto decide_without_credentials = [&] {
    DecisionOrEntry now = internal::DecideWithoutCredentials(snapshot, question);
    // LMDB's readers can be misled for a moment: damage counts only if a fresh snapshot has it,
    // too.
    if (now.decision && now.decision->reason == Reason::kRecordDamaged && snapshot.Refresh()) {
      now = internal::DecideWithoutCredentials(snapshot, question);
    }
    return now;
  };
  const auto decide_on_new_snapshot = [&] {
    snapshot.Release();
    snapshot.Reacquire(Read());
    return decide_without_credentials();
  };
  // A copy of a secret in another namespace may match what an earlier pod rotated. A kubelet has
  // written that by now, so this waits for it, but only if the answer would be "pull" otherwise.
  const auto decide_behind_write_backs = [&] {
    snapshot.Release();
    write_backs->WaitFor(copy.image_ref);
    return decide_on_new_snapshot();
  };

  // Steps 1 to 6.
  DecisionOrEntry now = decide_without_credentials();
  std::uint64_t read_at = snapshot ? snapshot.state().commit_sequence : 0;
  FirstLook of_this_call;
  FirstLook* const of_both_calls = source.first_look();
  FirstLook& first = of_both_calls != nullptr ? *of_both_calls : of_this_call;
  const bool deferred = source.deferred();
  const bool is_second_call = first && !deferred;
  const bool compares_copy = is_second_call || deferred || source.may_block();
  if (!is_second_call) {
    if (now.decision) return *now.decision;
    if (compares_copy) {
      // Asked now: a later look must not open what the first one did not.
      if (const auto opened = internal::AskLedger(snapshot, question, now.runtime_handler)) {
        return *opened;
      }
      first.record.assign(now.record.begin(), now.record.end());
      first.image_ref = copy.image_ref;
      first.read_at = read_at;
    }
    if (compares_copy && write_backs_queued) {
      now = decide_behind_write_backs();
      // If the record went meanwhile, its copy is compared: it must not become preloaded.
      if (!now.decision) first.record.assign(now.record.begin(), now.record.end());
    }
    if (deferred) return {true, CheckResult::kNotCounted, Reason::kCredentialsNeeded, false};
    if (compares_copy) snapshot.Release();
  }

  if (compares_copy) read_at = first.read_at;

  // The pod's credentials.
  const auto credentials = source.Fetch();
  if (!credentials) return {true, CheckResult::kError, Reason::kCredentialsUnavailable, true};

  // Steps 7 to 9.
  internal::SecretToStore write_back;
  Decision decision;
  if (compares_copy) {
    if (!is_second_call) now = decide_on_new_snapshot();
    decision = internal::ConfirmOrTighten(
        internal::CompareWithCopy(first.record, first.image_ref, question, now.runtime_handler,
                                  *credentials, standing, write_back),
        now, rules, *credentials, standing);
  } else {
    decision = internal::CompareCredentials(*now.entry, *credentials, standing, write_back);
    if (decision.pull && write_backs_queued) {
      now = decide_behind_write_backs();
      // If the record went meanwhile, the image must not become preloaded.
      if (now.decision)
        return internal::ConfirmOrTighten(decision, now, rules, *credentials, standing);
      decision = internal::CompareCredentials(*now.entry, *credentials, standing, write_back);
    }
    if (decision.pull) {
      if (const auto opened = internal::AskLedger(snapshot, question, now.runtime_handler)) {
        decision = *opened;
        decision.credentials_read = true;
      }
    }
  }
  if (!decision.pull && write_back.secret != nullptr && write_backs) {
    // Under another spelling than the record's, the store finds it by its own.
    internal::MatchedSecret matched{.image_name = std::string(*ImageName(copy.image)),
                                    .image_ref = std::string(copy.image_ref),
                                    .runtime_handler = std::string(now.runtime_handler),
                                    .secret = Stored(write_back)};
    if (rules == Rules::kKubelet) {
      const internal::Payload read = compares_copy ? internal::Payload(first.record) : now.record;
      matched.read = internal::DecodePulledRecordValue(read);
      if (matched.read) matched.read->credential_mapping.clear();
    }
    write_backs->Offer(std::move(matched), read_at);
  }
  return decision;
}

Decision NodeStore::Impl::Decide(const ImageCopy& copy, CredentialSource& source) {
  // An absent image needs no store, and is not counted.
  if (copy.image_ref.empty()) return {true, CheckResult::kNotCounted, Reason::kImageAbsent, false};
  // What may be older than its witness opens nothing.
  if (!asks_witness_) return {};
  try {
    // Read before the snapshot is taken, which then has what is written in between.
    const bool write_backs_queued = rules == Rules::kKubelet && write_backs && write_backs->busy();
    ReaderPool::Lease snapshot = Read();
    const Decision decision = DecideUncounted(copy, source, snapshot, write_backs_queued);
    if (decision.result == CheckResult::kNotCounted) return decision;
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

namespace {

constexpr std::size_t kFalse = 0;
constexpr std::size_t kTrue = 1;
constexpr std::size_t kUnknown = 2;

}  // namespace

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
  if (impl_->rules == Rules::kKubelet && decision.reason == Reason::kCredentialsUnavailable) {
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
