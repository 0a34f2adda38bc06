#include "store/pull/decide.h"

#include "store/base/image_spellings.h"
#include "store/base/sha256.h"
#include "store/database/small_records.h"
#include "waybill/image_name.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

constexpr Decision Pull(CheckResult result, Reason reason) { return {true, result, reason, false}; }
constexpr Decision Allow(CheckResult result, Reason reason) {
  return {false, result, reason, false};
}
constexpr Decision Fail(Reason reason) { return Pull(CheckResult::kError, reason); }

// An error on the way is an entry: closed.
bool InQuarantine(const ReaderPool::Lease& snapshot, QuarantineKind kind, std::string_view text) {
  const auto sha256 = Sha256(text);
  if (!sha256) return true;
  Payload ignored;
  return snapshot.Get(Table::kQuarantine, QuarantineKey(kind, *sha256, snapshot.seed()), ignored) !=
         Lookup::kAbsent;
}

// An intent for the very string, of any runtime handler; under rule 3 for any string of the same
// repository.
Lookup FindAnyIntent(const ReaderPool::Lease& snapshot, const Question& question) {
  if (snapshot.state().digest(Table::kIntents).count == 0) {
    return snapshot.CountIsTrue(Table::kIntents) ? Lookup::kAbsent : Lookup::kDamaged;
  }
  const auto is_it = [](Payload payload, const void* context) {
    const auto& asked = *static_cast<const Question*>(context);
    const std::string_view image = ViewIntent(payload).image;
    return asked.rules == Rules::kClosed
               ? RepositoryPartsOf(image) == RepositoryPartsOf(asked.image)
               : image == asked.image;
  };
  return snapshot.FindWithPrefix(Table::kIntents,
                                 FirstIntentKeyOfRepository(question.image, snapshot.seed()),
                                 kRepositoryKeyBytes, is_it, &question);
}

// Whether the kubelet pulled the ref for another runtime handler (KEP-4216): a pod must not be told
// that an image is preloaded because it names the handler that nobody pulled it for.
Lookup FindOtherCopy(const ReaderPool::Lease& snapshot, const Question& question) {
  // Where only the default handler was used, its own record was the only one.
  if (question.runtime_handler.empty() && snapshot.state().nondefault_handler_records == 0) {
    return Lookup::kAbsent;
  }
  const auto is_it = [](Payload payload, const void* context) {
    return PulledRecordView(payload).RefIs(static_cast<const Question*>(context)->image_ref);
  };
  return snapshot.FindWithPrefix(Table::kPulled,
                                 FirstPulledKeyOfRef(question.image_ref, snapshot.seed()),
                                 kRefKeyBytes, is_it, &question);
}

}  // namespace

Opening OpenQuestion(const ReaderPool::Lease& snapshot, const Question& question) {
  Opening opening;
  const auto answer = [&opening](const Decision& decision) {
    opening.decision = decision;
    return opening;
  };
  if (question.image_ref.empty()) {
    return answer(Pull(CheckResult::kNotCounted, Reason::kImageAbsent));
  }
  if (question.image.size() > kMaxImageBytes || question.image_ref.size() > kMaxImageRefBytes) {
    return answer(Fail(Reason::kArgumentTooLong));
  }
  if (!snapshot) return answer(Fail(Reason::kStoreUnavailable));

  const State& state = snapshot.state();
  const bool quarantine = state.digest(Table::kQuarantine).count != 0;
  if (!quarantine && !snapshot.CountIsTrue(Table::kQuarantine)) {
    return answer(Fail(Reason::kRecordDamaged));
  }
  if (quarantine && InQuarantine(snapshot, QuarantineKind::kImageRef, question.image_ref)) {
    return answer(Fail(Reason::kQuarantined));
  }
  // The kubelet asks for an intent only where there is no record.
  const auto unreadable_intent = [&] {
    return quarantine && InQuarantine(snapshot, QuarantineKind::kImage, question.image);
  };
  if (question.rules == Rules::kClosed && unreadable_intent()) {
    return answer(Fail(Reason::kQuarantined));
  }

  Payload payload;
  const Lookup found = snapshot.Get(
      Table::kPulled, PulledKey(question.image_ref, question.runtime_handler, snapshot.seed()),
      payload);
  if (found == Lookup::kDamaged) return answer(Fail(Reason::kRecordDamaged));
  std::optional<PulledRecordView> record;
  Reason without_record = Reason::kNoRecord;
  ImageOrigin origin = ImageOrigin::kKubeletPulled;
  if (found == Lookup::kFound) {
    record.emplace(payload);
    if (!record->RefIs(question.image_ref) ||
        record->runtime_handler() != question.runtime_handler) {
      return answer(Fail(Reason::kRecordDamaged));
    }
  } else {
    if (unreadable_intent()) return answer(Fail(Reason::kQuarantined));
    const Lookup other_copy = FindOtherCopy(snapshot, question);
    const Lookup intent =
        other_copy == Lookup::kFound ? Lookup::kAbsent : FindAnyIntent(snapshot, question);
    if (other_copy == Lookup::kDamaged || intent == Lookup::kDamaged) {
      return answer(Fail(Reason::kRecordDamaged));
    }
    if (quarantine && question.rules == Rules::kClosed) {
      for (const std::string& image : EquivalentImages(question.image)) {
        if (InQuarantine(snapshot, QuarantineKind::kImage, image)) {
          return answer(Fail(Reason::kQuarantined));
        }
      }
    }
    if (other_copy == Lookup::kFound) {
      without_record = Reason::kPulledForOtherHandler;
    } else if (intent == Lookup::kFound) {
      without_record = Reason::kPullInFlight;
    } else if (state.distrustful) {
      without_record = Reason::kStoreDistrustful;
      origin = ImageOrigin::kUnknown;
    } else {
      origin = ImageOrigin::kPresumedPreloaded;
    }
  }

  const auto image_name = ImageName(question.image);
  if (!question.policy.RequiresVerification(image_name.value_or(question.image), origin)) {
    Reason reason = Reason::kPolicyPresumedPreloaded;
    if (question.policy.mode() == VerificationMode::kNeverVerify) {
      reason = Reason::kPolicyNeverVerifies;
    } else if (question.policy.mode() == VerificationMode::kNeverVerifyAllowlistedImages) {
      reason = Reason::kPolicyAllowlisted;
    }
    return answer(Allow(CheckResult::kCredentialPolicyAllowed, reason));
  }

  if (!record) return answer(Pull(CheckResult::kMustAuthenticate, without_record));
  if (!image_name) return answer(Fail(Reason::kImageDoesNotParse));
  opening.image_name = *image_name;
  opening.record = payload;
  opening.entry = record->Find(*image_name);
  if (!opening.entry) {
    return answer(Pull(CheckResult::kMustAuthenticate, record->HasEntries()
                                                           ? Reason::kNoEntryForImageName
                                                           : Reason::kEntryWithoutCredentials));
  }
  if (opening.entry->node_pods_accessible()) {
    return answer(Allow(CheckResult::kCredentialRecordFound, Reason::kNodePodsAccessible));
  }
  if (opening.entry->secret_count() == 0 && opening.entry->service_account_count() == 0) {
    return answer(Pull(CheckResult::kMustAuthenticate, Reason::kEntryWithoutCredentials));
  }
  return opening;
}

Decision CompareCredentials(const EntryView& entry, const PodCredentials& credentials,
                            const ImagePullSecretView** write_back) {
  const std::size_t stored = entry.secret_count();
  const bool may_write_back = stored < kMaxSecretsForWriteBack;
  for (const ImagePullSecretView& secret : credentials.secrets) {
    const ProbeSecret probe(secret);
    for (std::size_t i = 0; i < stored; ++i) {
      const SecretMatch match = entry.Match(i, probe);
      if (match.hash) {
        if (!match.coordinates && may_write_back) *write_back = &secret;
        return {false, CheckResult::kCredentialRecordFound, Reason::kSecretHashMatches, true};
      }
      // At the limit a changed Secret can't be remembered, and does not count (kubelet behaviour).
      if (match.coordinates && may_write_back) {
        *write_back = &secret;
        return {false, CheckResult::kCredentialRecordFound, Reason::kSecretCoordinatesMatch, true};
      }
    }
  }
  if (credentials.service_account && entry.HasServiceAccount(*credentials.service_account)) {
    return {false, CheckResult::kCredentialRecordFound, Reason::kServiceAccountMatches, true};
  }
  return {true, CheckResult::kMustAuthenticate, Reason::kNoCredentialMatches, true};
}

std::optional<EntryView> EntryOfCopy(Payload record, const Question& question) {
  const PulledRecordView view(record);
  const auto image_name = ImageName(question.image);
  if (!image_name || !view.RefIs(question.image_ref) ||
      view.runtime_handler() != question.runtime_handler) {
    return std::nullopt;
  }
  return view.Find(*image_name);
}

Decision Stricter(const Decision& first, const Opening& later, Rules rules,
                  const PodCredentials& credentials) {
  if (later.decision) {
    Decision now = *later.decision;
    now.credentials_read = true;
    if (now.result == CheckResult::kError) return now;
    const bool record_closes = now.reason == Reason::kNoEntryForImageName ||
                               now.reason == Reason::kEntryWithoutCredentials ||
                               now.reason == Reason::kPulledForOtherHandler;
    return !first.pull && rules == Rules::kClosed && record_closes ? now : first;
  }
  if (first.pull || rules == Rules::kKubelet) return first;
  const ImagePullSecretView* ignored = nullptr;
  const Decision now = CompareCredentials(*later.entry, credentials, &ignored);
  return now.pull ? now : first;
}

}  // namespace waybill::internal
