// Decisions, and the kubelet's question around them.

#include <string>
#include <utility>

#include "store/handlers/handler_lookup.h"
#include "store/node_store/impl.h"
#include "waybill/image_name.h"

namespace waybill {

using internal::EntryView;
using internal::HandlerState;
using internal::Opening;
using internal::Question;
using internal::ReaderPool;

namespace {

Opening OpenFor(const ReaderPool::Lease& snapshot, Question& question,
                std::string_view runtime_handler) {
  if (snapshot && !runtime_handler.empty()) {
    switch (internal::LookUpHandler(snapshot, runtime_handler, question.runtime_handler)) {
      case HandlerState::kKnown:
        break;
      case HandlerState::kUnknown:
        return {
            Decision{true, CheckResult::kError, Reason::kRuntimeHandlerUnknown, false}, {}, {}, {}};
      case HandlerState::kDamaged:
        return {Decision{true, CheckResult::kError, Reason::kRecordDamaged, false}, {}, {}, {}};
    }
  }
  return internal::OpenQuestion(snapshot, question);
}

}  // namespace

Decision NodeStore::Impl::DecideUncounted(std::string_view image, std::string_view image_ref,
                                          std::string_view runtime_handler,
                                          CredentialSource& source, ReaderPool::Lease& snapshot,
                                          bool behind) {
  Question question{rules, policy, image, image_ref, {}};
  const auto open = [&] {
    Opening opening = OpenFor(snapshot, question, runtime_handler);
    // LMDB's readers can be fooled for a moment: an oddity counts once a fresh snapshot has it too.
    if (opening.decision && opening.decision->reason == Reason::kRecordDamaged &&
        snapshot.Refresh()) {
      opening = OpenFor(snapshot, question, runtime_handler);
    }
    return opening;
  };
  // A copy in another namespace asks with what a pod before it has rotated: the kubelet has written
  // it by then, so this waits until it is, but only where the answer would be "pull" without it.
  const auto look_behind_write_backs = [&] {
    snapshot.Release();
    write_backs->WaitFor(image_ref);
    snapshot.Reacquire(Read());
    return open();
  };

  Opening opening = open();
  FirstLook here;
  FirstLook* const kept = source.first_look();
  FirstLook& first = kept != nullptr ? *kept : here;
  const bool deferred = source.deferred();
  const bool is_second_call = first && !deferred;
  const bool is_late = is_second_call || deferred || source.may_block();
  if (!is_second_call) {
    if (is_late && behind && !opening.decision) opening = look_behind_write_backs();
    if (opening.decision) return *opening.decision;
    if (is_late) first.record_.assign(opening.record.begin(), opening.record.end());
    if (deferred) {
      return {true, CheckResult::kNotCounted, Reason::kCredentialsNeeded, false};
    }
    if (is_late) snapshot.Release();
  }
  const auto credentials = source.Fetch();
  if (!credentials) return {true, CheckResult::kError, Reason::kCredentialsUnavailable, true};

  const ImagePullSecretView* write_back = nullptr;
  const auto compare = [&](const std::optional<EntryView>& entry) -> Decision {
    if (!entry) return {true, CheckResult::kMustAuthenticate, Reason::kNoCredentialMatches, true};
    return internal::CompareCredentials(*entry, *credentials, &write_back);
  };
  Decision decision;
  if (is_late) {
    if (!is_second_call) {
      snapshot.Reacquire(Read());
      opening = open();
    }
    decision = internal::Stricter(compare(internal::EntryOfCopy(first.record_, question)), opening,
                                  rules, *credentials);
  } else {
    decision = compare(opening.entry);
    if (decision.pull && behind) {
      opening = look_behind_write_backs();
      if (opening.decision) {
        opening.decision->credentials_read = true;
        return *opening.decision;
      }
      decision = compare(opening.entry);
    }
  }
  if (!decision.pull && write_back != nullptr && write_backs) {
    write_backs->Offer(*ImageName(image), image_ref, question.runtime_handler, *write_back);
  }
  return decision;
}

Decision NodeStore::Impl::Decide(std::string_view image, std::string_view image_ref,
                                 std::string_view runtime_handler, CredentialSource& source) {
  // An absent image needs no store, and is not counted.
  if (image_ref.empty()) return {true, CheckResult::kNotCounted, Reason::kImageAbsent, false};
  try {
    // Before the snapshot is taken: what is written between the two is in it.
    const bool behind = rules == Rules::kKubelet && write_backs && write_backs->busy();
    ReaderPool::Lease snapshot = Read();
    const Decision decision =
        DecideUncounted(image, image_ref, runtime_handler, source, snapshot, behind);
    if (decision.result == CheckResult::kNotCounted) return decision;
    const auto counter = static_cast<std::size_t>(decision.result);
    if (!snapshot.Count(counter)) readers.CountWithoutSlot(counter);
    return decision;
  } catch (...) {  // out of memory, or what the source throws
    readers.CountWithoutSlot(static_cast<std::size_t>(CheckResult::kError));
    return {};
  }
}

Decision NodeStore::MustAttemptPull(std::string_view image, std::string_view image_ref,
                                    CredentialSource& credentials,
                                    std::string_view runtime_handler) {
  return impl_->Decide(image, image_ref, runtime_handler, credentials);
}

namespace {

constexpr std::size_t kFalse = 0;
constexpr std::size_t kTrue = 1;
constexpr std::size_t kUnknown = 2;

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

}  // namespace

EnsureOutcome NodeStore::Impl::Ensure(std::string_view image, std::string_view image_ref,
                                      std::string_view runtime_handler, PullPolicy pull_policy,
                                      CredentialSource& source) {
  const auto count = [&](std::size_t present, std::size_t required) {
    ensure_requests[static_cast<std::size_t>(pull_policy)][present][required].fetch_add(
        1, std::memory_order_relaxed);
  };
  EnsureOutcome outcome;
  if (image.size() > kMaxImageBytes || !NormaliseImage(image)) {
    count(kUnknown, kUnknown);
    outcome.action = EnsureAction::kInvalidImageName;
    outcome.message = "Failed to apply default image tag " +
                      Quoted(image.substr(0, kMaxImageBytes)) + ": it is not a valid image name";
    return outcome;
  }
  const std::size_t present = image_ref.empty() ? kFalse : kTrue;
  if (pull_policy == PullPolicy::kAlways) {
    count(present, kTrue);
    return outcome;
  }
  const Decision decision = Decide(image, image_ref, runtime_handler, source);
  outcome.decision = decision;
  if (!decision.pull) {
    count(present, kFalse);
    outcome.action = EnsureAction::kUsePresent;
    outcome.message = "Container image " + Quoted(image) +
                      " already present on machine and can be accessed by the pod";
    return outcome;
  }
  // The kubelet passes the error on, and so tells that the image is there (rule 5).
  if (rules == Rules::kKubelet && decision.reason == Reason::kCredentialsUnavailable) {
    count(present, kUnknown);
    outcome.action = EnsureAction::kCredentialsError;
    outcome.message = "Failed to get the credentials of the pod for image " + Quoted(image);
    return outcome;
  }
  if (decision.reason != Reason::kCredentialsNeeded) count(present, kTrue);
  if (pull_policy == PullPolicy::kNever) {
    outcome.action = EnsureAction::kNeverPull;
    outcome.message =
        "Container image " + Quoted(image) + " is not present with pull policy of Never";
  }
  return outcome;
}

EnsureOutcome NodeStore::EnsureImage(std::string_view image, std::string_view image_ref,
                                     PullPolicy policy, CredentialSource& credentials,
                                     std::string_view runtime_handler) {
  try {
    return impl_->Ensure(image, image_ref, runtime_handler, policy, credentials);
  } catch (...) {
    // Out of memory: what is not known to be allowed is pulled, or refused.
    EnsureOutcome outcome;
    if (policy == PullPolicy::kNever) outcome.action = EnsureAction::kNeverPull;
    return outcome;
  }
}

Result<void> NodeStore::Flush() try {
  if (!impl_->write_backs) return {};
  return impl_->write_backs->Flush();
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
