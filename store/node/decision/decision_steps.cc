#include "store/node/decision/decision_steps.h"

#include <algorithm>
#include <string>
#include <vector>

#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/policy.h"
#include "store/base/sha256.h"
#include "store/node/decision/likely_matches.h"
#include "store/node/records/age.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/keys.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/revocations_table.h"
#include "store/node/records/typed_tables.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::internal {

namespace {

constexpr Decision Pull(CheckResult result, Reason reason) { return {true, result, reason, false}; }
constexpr Decision Allow(CheckResult result, Reason reason) {
  return {false, result, reason, false};
}
constexpr Decision NoneMatches(Reason reason) {
  return {true, CheckResult::kMustAuthenticate, reason, true};
}
constexpr Decision kNoneMatches = NoneMatches(Reason::kNoCredentialMatches);
constexpr Decision Fail(Reason reason) { return Pull(CheckResult::kError, reason); }

// Why what matches does not count.
constexpr Reason ReasonOf(Standing::Verdict verdict) {
  return verdict == Standing::Verdict::kNotByRegistry ? Reason::kProofNotByRegistry
                                                      : Reason::kProofTooOld;
}

// True on an error, too: closed.
bool InQuarantine(const ReaderPool::Lease& snapshot, QuarantineKind kind, std::string_view text) {
  const auto sha256 = Sha256(text);
  if (!sha256) return true;
  Payload ignored;
  return snapshot.Get(Table::kQuarantine, QuarantineKey(kind, *sha256, snapshot.seed()), ignored) !=
         Lookup::kAbsent;
}

// Closed rules: under any spelling of the ref's image.
bool RefInQuarantine(const ReaderPool::Lease& snapshot, const Question& question) {
  if (question.rules == Mode::kKubelet) {
    return InQuarantine(snapshot, QuarantineKind::kImageRef, question.image_ref);
  }
  std::vector<std::string> refs;
  if (RefsOfImage(snapshot, question.image_ref, refs) == Lookup::kDamaged) return true;
  return std::any_of(refs.begin(), refs.end(), [&](const std::string& ref) {
    return InQuarantine(snapshot, QuarantineKind::kImageRef, ref);
  });
}

// Whether the file of an intent for the image can't be read. Closed rules: for any string with the
// same full form, with or without a record. The kubelet looks for an intent only without one.
bool IntentInQuarantine(const ReaderPool::Lease& snapshot, const Question& question) {
  if (question.rules == Mode::kKubelet) {
    return InQuarantine(snapshot, QuarantineKind::kImage, question.image);
  }
  const std::vector<std::string> images = EquivalentImages(question.image);
  return std::any_of(images.begin(), images.end(), [&](const std::string& image) {
    return InQuarantine(snapshot, QuarantineKind::kImage, image);
  });
}

// Mode::kKubelet: an intent for exactly this image string, under any runtime handler.
Lookup FindAnyIntent(const ReaderPool::Lease& snapshot, const Question& question) {
  if (snapshot.state().digest(Table::kIntents).count == 0) {
    return snapshot.CountIsTrue(Table::kIntents) ? Lookup::kAbsent : Lookup::kDamaged;
  }
  const auto matches = [&](Payload payload) {
    const IntentView intent = ViewIntent(payload);
    return !intent.anything && intent.image == question.image;
  };
  return snapshot.FindWithPrefix(Table::kIntents,
                                 IntentKey(question.image, PullId{}, snapshot.seed()),
                                 kImageKeyBytes, matches);
}

// Whether the ref was pulled for another runtime handler (KEP-4216). Then it does not pass for
// preloaded under the handlers that it was not pulled for.
Lookup FindOtherCopy(const ReaderPool::Lease& snapshot, std::string_view image_ref) {
  const auto matches = [&](Payload payload) { return PulledRecordView(payload).RefIs(image_ref); };
  return snapshot.FindWithPrefix(Table::kPulled, FirstPulledKeyOfRef(image_ref, snapshot.seed()),
                                 kRefKeyBytes, matches);
}

// Closed rules: the record of the ref's image under another spelling.
Lookup FindUnderOtherSpelling(const ReaderPool::Lease& snapshot, const Question& question,
                              std::string_view runtime_handler, Payload& record,
                              Lookup& other_copy) {
  std::vector<std::string> refs;
  if (RefsOfImage(snapshot, question.image_ref, refs) == Lookup::kDamaged) return Lookup::kDamaged;
  for (const std::string& ref : refs) {
    if (ref == question.image_ref) continue;
    bool has_others = false;
    const Lookup found =
        snapshot.GetCopy(Table::kPulled, PulledKey(ref, runtime_handler, snapshot.seed()),
                         kRefKeyBytes, record, has_others);
    if (has_others && other_copy == Lookup::kAbsent) other_copy = FindOtherCopy(snapshot, ref);
    if (found == Lookup::kAbsent) continue;
    if (found == Lookup::kFound && !PulledRecordView(record).RefIs(ref)) return Lookup::kDamaged;
    return found;
  }
  return Lookup::kAbsent;
}

// Step 3 without a record. `without_record` is the reason for step 5.
struct Origin {
  std::optional<Decision> decision;  // set: the answer, without steps 4 to 9
  ImageOrigin origin = ImageOrigin::kKubeletPulled;
  Reason without_record = Reason::kNoRecord;
};

Origin OriginWithoutRecord(const ReaderPool::Lease& snapshot, const Question& question,
                           Lookup other_copy) {
  const bool closed = question.rules == Mode::kStrict;
  const Lookup intent =
      closed || other_copy == Lookup::kFound ? Lookup::kAbsent : FindAnyIntent(snapshot, question);
  if (other_copy == Lookup::kDamaged || intent == Lookup::kDamaged) {
    return {Fail(Reason::kRecordDamaged)};
  }
  if (other_copy == Lookup::kFound) {
    return {{}, ImageOrigin::kKubeletPulled, Reason::kPulledForOtherHandler};
  }
  if (intent == Lookup::kFound) return {{}, ImageOrigin::kKubeletPulled, Reason::kPullInFlight};
  if (snapshot.state().distrustful) return {{}, ImageOrigin::kUnknown, Reason::kStoreDistrustful};
  if (closed) {
    // Whether it is preloaded does not matter then.
    const auto name = ImageName(question.image).value_or(question.image);
    const bool verifies = question.policy.RequiresVerification(name, ImageOrigin::kPreloaded);
    return {{}, ImageOrigin::kUnknown, verifies ? Reason::kNoRecord : Reason::kNoEvidence};
  }
  return {{}, ImageOrigin::kPreloaded, Reason::kNoRecord};
}

// The answer if step 4 allows the image.
Decision AllowedBy(Verification mode) {
  Reason reason = Reason::kPolicyPresumedPreloaded;
  if (mode == Verification::kNeverVerify) {
    reason = Reason::kPolicyNeverVerifies;
  } else if (mode == Verification::kNeverVerifyAllowlistedImages) {
    reason = Reason::kPolicyAllowlisted;
  }
  return Allow(CheckResult::kCredentialPolicyAllowed, reason);
}

}  // namespace

Lookup FindStoredHandler(const ReaderPool::Lease& snapshot, std::string_view name,
                         std::string_view& stored) {
  stored = name;
  if (name.empty()) return Lookup::kFound;
  if (name.size() > kMaxRuntimeHandlerBytes) return Lookup::kAbsent;
  Payload payload;
  const Lookup found =
      snapshot.Get(Table::kRuntimeHandlers, HashKey(name, snapshot.seed()), payload);
  if (found != Lookup::kFound) return found;
  const RuntimeHandlerView handler = ViewRuntimeHandler(payload);
  if (handler.name != name) return Lookup::kDamaged;
  if (handler.is_default) stored = {};
  return Lookup::kFound;
}

std::optional<Decision> AskLedger(const ReaderPool::Lease& snapshot, const Question& question,
                                  std::string_view runtime_handler) {
  if (question.rules == Mode::kKubelet) return std::nullopt;
  Payload entry;
  const Lookup found = FindLedgerEntry(snapshot, question.image_ref, runtime_handler, entry);
  if (found == Lookup::kAbsent) return std::nullopt;
  if (found == Lookup::kDamaged) return Fail(Reason::kRecordDamaged);
  const VerificationPolicy& policy = question.policy;
  const auto verifies = [&](std::string_view name) {
    return policy.RequiresVerification(ImageName(name).value_or(name), ImageOrigin::kPreloaded);
  };
  if (policy.mode() == Verification::kNeverVerifyAllowlistedImages) {
    // The names that it was preloaded by: another pod may ask for it by a name of its own.
    if (!AnyNameOf(entry, [&](std::string_view name) { return !verifies(name); })) {
      return std::nullopt;
    }
    return AllowedBy(policy.mode());
  }
  if (verifies(question.image)) return std::nullopt;
  const bool never = policy.mode() == Verification::kNeverVerify;
  return never ? AllowedBy(policy.mode())
               : Allow(CheckResult::kCredentialPolicyAllowed, Reason::kPolicyKnownPreloaded);
}

DecisionOrEntry DecideWithoutCredentials(const ReaderPool::Lease& snapshot,
                                         const Question& question) {
  DecisionOrEntry result;
  const auto answer = [&result](const Decision& decision) {
    result.decision = decision;
    return result;
  };
  const auto pull_unless_in_ledger = [&](Reason reason) {
    const auto opened = AskLedger(snapshot, question, result.runtime_handler);
    return answer(opened ? *opened : Pull(CheckResult::kMustAuthenticate, reason));
  };

  // 1. An image that is not on the node.
  if (question.image_ref.empty()) {
    return answer(Pull(CheckResult::kNotCounted, Reason::kImageAbsent));
  }

  // 2. The record of the image ref. Before it, the checks that close an image with or without one.
  if (question.image.size() > kMaxImageBytes || question.image_ref.size() > kMaxImageRefBytes) {
    return answer(Fail(Reason::kArgumentTooLong));
  }
  if (!snapshot) return answer(Fail(Reason::kStoreUnavailable));
  const Lookup handler =
      FindStoredHandler(snapshot, question.runtime_handler, result.runtime_handler);
  if (handler == Lookup::kAbsent) return answer(Fail(Reason::kRuntimeHandlerUnknown));
  if (handler == Lookup::kDamaged) return answer(Fail(Reason::kRecordDamaged));
  const bool closed = question.rules == Mode::kStrict;
  const bool any_quarantine = snapshot.state().digest(Table::kQuarantine).count != 0;
  if (!any_quarantine && !snapshot.CountIsTrue(Table::kQuarantine)) {
    return answer(Fail(Reason::kRecordDamaged));
  }
  if (any_quarantine &&
      (RefInQuarantine(snapshot, question) || (closed && IntentInQuarantine(snapshot, question)))) {
    return answer(Fail(Reason::kQuarantined));
  }
  bool has_other_copies = false;
  Lookup found = snapshot.GetCopy(
      Table::kPulled, PulledKey(question.image_ref, result.runtime_handler, snapshot.seed()),
      kRefKeyBytes, result.record, has_other_copies);
  if (found == Lookup::kFound && !PulledRecordView(result.record).RefIs(question.image_ref)) {
    found = Lookup::kDamaged;
  }

  // 3. Where the image comes from.
  Lookup other_copy = Lookup::kAbsent;
  if (found == Lookup::kAbsent && has_other_copies) {
    other_copy = FindOtherCopy(snapshot, question.image_ref);
  }
  if (found == Lookup::kAbsent && closed) {
    if (const auto opened = AskLedger(snapshot, question, result.runtime_handler)) {
      return answer(*opened);
    }
    found = FindUnderOtherSpelling(snapshot, question, result.runtime_handler, result.record,
                                   other_copy);
  }
  if (found == Lookup::kDamaged) return answer(Fail(Reason::kRecordDamaged));
  std::optional<PulledRecordView> record;
  Origin origin;
  if (found == Lookup::kFound) {
    record.emplace(result.record);
    if (record->runtime_handler() != result.runtime_handler) {
      return answer(Fail(Reason::kRecordDamaged));
    }
  } else {
    if (any_quarantine && IntentInQuarantine(snapshot, question)) {
      return answer(Fail(Reason::kQuarantined));
    }
    origin = OriginWithoutRecord(snapshot, question, other_copy);
    if (origin.decision) return answer(*origin.decision);
  }

  // 4. Whether the policy verifies such images.
  const auto image_name = ImageName(question.image);
  if (!question.policy.RequiresVerification(image_name.value_or(question.image), origin.origin)) {
    return answer(AllowedBy(question.policy.mode()));
  }

  // 5. The entry of the image name. Without a record, the ledger was asked above.
  if (!record) return answer(Pull(CheckResult::kMustAuthenticate, origin.without_record));
  if (!image_name) {
    const auto opened = AskLedger(snapshot, question, result.runtime_handler);
    return answer(opened ? *opened : Fail(Reason::kImageDoesNotParse));
  }
  result.entry = record->Find(*image_name);
  if (!result.entry) {
    return pull_unless_in_ledger(record->HasEntries() ? Reason::kNoEntryForImageName
                                                      : Reason::kEntryWithoutCredentials);
  }

  // 6. Open to all pods of the node, or to none.
  if (result.entry->node_pods_accessible()) {
    const auto verdict = Standing(snapshot, question).OfNodePods(*result.entry);
    if (verdict != Standing::Verdict::kCounts) return pull_unless_in_ledger(ReasonOf(verdict));
    return answer(Allow(CheckResult::kCredentialRecordFound, Reason::kNodePodsAccessible));
  }
  if (result.entry->secret_count() == 0 && result.entry->service_account_count() == 0) {
    return pull_unless_in_ledger(Reason::kEntryWithoutCredentials);
  }
  return result;
}

Standing::Standing(const ReaderPool::Lease& snapshot, const Question& question)
    : snapshot_(snapshot), question_(question) {
  const VerificationPolicy& policy = question.policy;
  if (!policy.chooses_proofs()) return;
  const auto name = ImageName(question.image);
  only_registry_ = policy.CountsOnlyRegistry(name.value_or(question.image));
}

Standing::Verdict Standing::Of(const StoredProof& proof, std::chrono::seconds most) const {
  if (only_registry_ && proof.checker != VerifiedBy::kRegistry) return Verdict::kNotByRegistry;
  if (most.count() == 0 && proof.good_until == 0) return Verdict::kCounts;
  const Clocks now = snapshot_.state().clocks.At(question_.boot_clock(), question_.clock());
  return IsPastAge(proof, most, now) ? Verdict::kTooOld : Verdict::kCounts;
}

Standing::Verdict Standing::OfNodePods(const EntryView& entry) const {
  if (!snapshot_) return Verdict::kForgotten;
  return Of(entry.node_pods_proof(), ages().node_pods);
}

Standing::Verdict Standing::OfSecret(const EntryView& entry, std::size_t secret) const {
  if (!snapshot_) return Verdict::kForgotten;
  if (AsksRevocations() && IsForgotten(snapshot_, entry.secret(secret))) {
    return Verdict::kForgotten;
  }
  return Of(entry.secret_proof(secret), ages().credentials);
}

Standing::Verdict Standing::OfServiceAccount(const EntryView& entry, std::size_t account) const {
  if (!snapshot_) return Verdict::kForgotten;
  if (AsksRevocations() && IsForgotten(snapshot_, entry.service_account(account))) {
    return Verdict::kForgotten;
  }
  return Of(entry.service_account_proof(account), AgeOfServiceAccounts(ages()));
}

bool Standing::IsHashForgotten(std::string_view hash) const {
  return !snapshot_ || internal::IsHashForgotten(snapshot_, hash);
}

namespace {

// Whether a verdict counts. If not, `why` says so, unless what matches was forgotten.
bool Counts(Standing::Verdict verdict, Reason& why) {
  if (verdict == Standing::Verdict::kCounts) return true;
  if (verdict != Standing::Verdict::kForgotten) why = ReasonOf(verdict);
  return false;
}

// What step 7 compares a pod's secrets with.
struct StoredSecrets {
  const EntryView& entry;
  const Standing& standing;
  std::size_t count = entry.secret_count();
  bool may_write_back = count < kMaxSecretsForWriteBack;
};

// Whether the stored secret `i` opens the image to a pod that has `secret`. `why` says by what, or
// why it does not.
[[gnu::always_inline]] inline bool Opens(const StoredSecrets& stored, std::size_t i,
                                         const ImagePullSecretView& secret,
                                         const ProbeSecret& probe, SecretToStore& write_back,
                                         Reason& why) {
  const auto& [entry, standing, count, may_write_back] = stored;
  const SecretMatch match = entry.Match(i, probe);
  if (match.hash) {
    if (!Counts(standing.OfSecret(entry, i), why)) return false;
    if (!match.coordinates && may_write_back) write_back = {&secret, entry.secret_proof(i)};
    why = Reason::kSecretHashMatches;
    return true;
  }
  // At the limit a changed Secret can't be stored, so it does not match (kubelet behaviour).
  if (!match.coordinates || !may_write_back || standing.IsHashForgotten(secret.credential_hash) ||
      !Counts(standing.OfSecret(entry, i), why)) {
    return false;
  }
  write_back = {&secret, entry.secret_proof(i)};
  why = Reason::kSecretCoordinatesMatch;
  return true;
}

// Whether one of many secrets does. Keeps what it needs out of the stack of other decisions.
[[gnu::noinline]] bool AnyOpens(const StoredSecrets& stored,
                                std::span<const ImagePullSecretView> secrets,
                                SecretToStore& write_back, Reason& why) {
  if (!stored.standing.has_snapshot()) return false;
  LikelyMatches likely(stored.entry, secrets, stored.may_write_back, stored.standing.seed());
  for (std::size_t at = 0; at < secrets.size(); ++at) {
    std::size_t i = likely.Next(at, 0);
    if (i == stored.count) continue;
    const ProbeSecret probe(secrets[at]);
    for (; i < stored.count; i = likely.Next(at, i + 1)) {
      if (Opens(stored, i, secrets[at], probe, write_back, why)) return true;
    }
  }
  return false;
}

}  // namespace

Decision CompareCredentials(const EntryView& entry, const PodCredentials& credentials,
                            const Standing& standing, SecretToStore& write_back) {
  constexpr auto opened = [](Reason why) {
    return Decision{false, CheckResult::kCredentialRecordFound, why, true};
  };
  Reason why = Reason::kNoCredentialMatches;
  // 7. A secret that the image was pulled with. Most pods have one or two, and one of the first
  // matches: they are compared with all.
  const StoredSecrets stored{entry, standing};
  const std::size_t few = std::min<std::size_t>(credentials.secrets.size(), 2);
  for (const ImagePullSecretView& secret : credentials.secrets.first(few)) {
    const ProbeSecret probe(secret);
    for (std::size_t i = 0; i < stored.count; ++i) {
      if (Opens(stored, i, secret, probe, write_back, why)) return opened(why);
    }
  }
  if (few < credentials.secrets.size() &&
      AnyOpens(stored, credentials.secrets.subspan(few), write_back, why)) {
    return opened(why);
  }
  // 8. A service account that the image was pulled with.
  if (credentials.service_account) {
    const ProbeUid uid(credentials.service_account->uid);
    for (std::size_t i = 0; i < entry.service_account_count(); ++i) {
      if (entry.MatchServiceAccount(i, uid, *credentials.service_account) &&
          Counts(standing.OfServiceAccount(entry, i), why)) {
        return opened(Reason::kServiceAccountMatches);
      }
    }
  }
  // 9. No credential matches.
  return NoneMatches(why);
}

Decision CompareWithCopy(Payload record, std::string_view asked, const Question& question,
                         std::string_view runtime_handler, const PodCredentials& credentials,
                         const Standing& standing, SecretToStore& write_back) {
  const PulledRecordView view(record);
  const auto image_name = ImageName(question.image);
  if (!image_name || asked != question.image_ref || view.runtime_handler() != runtime_handler) {
    return kNoneMatches;
  }
  const auto entry = view.Find(*image_name);
  return entry ? CompareCredentials(*entry, credentials, standing.OfCopy(), write_back)
               : kNoneMatches;
}

Decision ConfirmOrTighten(const Decision& first, const DecisionOrEntry& later, Mode rules,
                          const PodCredentials& credentials, const Standing& standing) {
  if (later.decision) {
    Decision now = *later.decision;
    now.credentials_read = true;
    if (now.result == CheckResult::kError) return now;
    return !first.pull && now.pull && rules == Mode::kStrict ? now : first;
  }
  if (first.pull || rules == Mode::kKubelet) return first;
  SecretToStore ignored;
  const Decision now = CompareCredentials(*later.entry, credentials, standing, ignored);
  return now.pull ? now : first;
}

}  // namespace waybill::internal
