// Why an image is open or closed, and what would change that.

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "store/base/hex.h"
#include "store/base/image_spellings.h"
#include "store/base/names.h"
#include "store/base/quote.h"
#include "store/base/sha256.h"
#include "store/base/try.h"
#include "store/node/evidence/judge.h"
#include "store/node/facade/impl.h"
#include "store/node/pulls/open_pulls.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/keys.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"
#include "store/node/revocation/forget.h"

namespace waybill {

using internal::Lookup, internal::Payload, internal::ReaderPool, internal::Table;

namespace {

using Kind = ExplainedCredential::Kind;

// Of a record, under each image name.
std::vector<ExplainedCredential> CredentialsOf(const ImagePulledRecord& record) {
  std::vector<ExplainedCredential> all;
  const auto add = [&](const std::string& image_name, Kind kind, CredentialName who, Proof proof) {
    all.push_back({.image_name = image_name, .kind = kind, .who = std::move(who), .proof = proof});
  };
  for (const auto& [image_name, entry] : record.credential_mapping) {
    if (entry.node_pods_accessible) {
      add(image_name, Kind::kNodePods, {}, entry.node_pods_proof);
    }
    for (const ImagePullSecret& one : entry.kubernetes_secrets) {
      add(image_name, Kind::kSecret, {one.namespace_name, one.name, one.uid}, one.proof);
    }
    for (const ImagePullServiceAccount& one : entry.kubernetes_service_accounts) {
      add(image_name, Kind::kServiceAccount, {one.namespace_name, one.name, one.uid}, one.proof);
    }
  }
  return all;
}

bool Has(const std::vector<ExplainedCredential>& all, const ExplainedCredential& one) {
  return std::any_of(all.begin(), all.end(), [&](const ExplainedCredential& other) {
    return other.image_name == one.image_name && other.kind == one.kind && other.who == one.who;
  });
}

// What is left without what was forgotten, and then without what does not count, tells why the rest
// does not count.
void TellStandings(const ReaderPool::Lease& snapshot, const NodeStore::Impl& impl,
                   const ImagePulledRecord& stored, Explanation& why) {
  ImagePulledRecord remembered = stored;
  internal::LeaveWhatIsRemembered(snapshot, remembered);
  ImagePulledRecord good = stored;
  internal::LeaveWhatCounts(snapshot, impl.policy, impl.AgesIn(snapshot), impl.ClocksIn(snapshot),
                            good);
  const auto not_forgotten = CredentialsOf(remembered);
  const auto counting = CredentialsOf(good);
  why.credentials = CredentialsOf(stored);
  for (ExplainedCredential& one : why.credentials) {
    if (Has(counting, one)) {
      one.standing = CredentialStanding::kCounts;
    } else if (!Has(not_forgotten, one)) {
      one.standing = CredentialStanding::kForgotten;
    } else if (!impl.policy.ProofCounts(one.image_name, one.proof.checker)) {
      one.standing = CredentialStanding::kNotByRegistry;
    } else {
      one.standing = CredentialStanding::kTooOld;
    }
  }
  why.record = stored;
  for (const auto& [image_name, entry] : stored.credential_mapping) {
    why.image_names.push_back(image_name);
  }
  why.record->credential_mapping.clear();
}

// The handlers but `handler` that have a record of a ref. False: one can't be read.
bool FindOtherHandlers(const ReaderPool::Lease& snapshot, const std::string& ref,
                       std::string_view handler, std::vector<std::string>& handlers) {
  bool readable = true;
  const auto note = [&](Payload payload) {
    const auto record = internal::DecodePulledRecordValue(payload);
    readable = readable && record.has_value();
    if (record && record->image_ref == ref && record->runtime_handler != handler) {
      handlers.push_back(record->runtime_handler);
    }
    return false;  // and on to the next
  };
  const Lookup found =
      snapshot.FindWithPrefix(Table::kPulled, internal::FirstPulledKeyOfRef(ref, snapshot.seed()),
                              internal::kRefKeyBytes, note);
  return readable && found != Lookup::kDamaged;
}

// The text of a record that has image names, but nothing under them that counts.
void TellWhatStoppedCounting(Explanation& why) {
  const auto is_any = [&](CredentialStanding standing) {
    return std::any_of(why.credentials.begin(), why.credentials.end(),
                       [&](const ExplainedCredential& one) { return one.standing == standing; });
  };
  if (is_any(CredentialStanding::kCounts)) return;
  if (is_any(CredentialStanding::kTooOld)) {
    why.text = "a pull is on record, but what it proved is past its age, or has ended by itself";
  } else if (is_any(CredentialStanding::kNotByRegistry)) {
    why.text = "a pull is on record, but the registry itself is not known to have checked it";
    why.hint =
        "a pull that the registry itself answers proves it; a policy that counts any proof counts "
        "a mirror's, too";
  } else if (is_any(CredentialStanding::kForgotten)) {
    why.text = "a pull is on record, but what it proved was forgotten";
  } else {
    why.text = "a pull is on record, but what it proved was forgotten, or is not known";
  }
}

}  // namespace

std::string OtherAnswer(Reason reason, const Explanation& why) {
  switch (reason) {
    case Reason::kImageAbsent:
      return "the runtime has the image";
    case Reason::kPolicyNeverVerifies:
      return "the policy verifies images, as AlwaysVerify does";
    case Reason::kPolicyPresumedPreloaded:
      return "a pull of it is recorded, or the policy is AlwaysVerify";
    case Reason::kPolicyKnownPreloaded:
      return "an operator takes it out of the ledger, or the policy is AlwaysVerify";
    case Reason::kPolicyAllowlisted:
      return "no pattern of the allowlist matches its name";
    case Reason::kNodePodsAccessible:
      return "what its pulls proved is forgotten, or grows past its age";
    case Reason::kSecretHashMatches:
    case Reason::kSecretCoordinatesMatch:
    case Reason::kServiceAccountMatches:
      return "the matching credential is forgotten, or grows past its age";
    case Reason::kPullInFlight:
      return "the pull that began ends, and what it took is recorded";
    case Reason::kImageDoesNotParse:
    case Reason::kArgumentTooLong:
      return "the pod names the image so that it can be read";
    case Reason::kRuntimeHandlerUnknown:
      return "the list of the node's runtime handlers is loaded again";
    case Reason::kRecordDamaged:
      return "a pull replaces the record, or an owner opens the store and recovers it";
    case Reason::kCredentialsUnavailable:
    case Reason::kCredentialsNeeded:
      return "the pod's credentials can be had";
    case Reason::kStoreUnavailable:
      return "the store can be read again";
    case Reason::kProofTooOld:
      return "a pull proves the credential again";
    case Reason::kProofNotByRegistry:
      return "a pull proves the credential that the registry itself answers";
    case Reason::kNoRecord:
    case Reason::kStoreDistrustful:
    case Reason::kPulledForOtherHandler:
    case Reason::kNoEntryForImageName:
    case Reason::kEntryWithoutCredentials:
    case Reason::kNoCredentialMatches:
    case Reason::kQuarantined:
    case Reason::kNoEvidence:
      break;
  }
  return why.hint.empty() ? std::string(internal::kAPullProves) : why.hint;
}

Result<Explanation> NodeStore::Explain(const ImageCopy& copy,
                                       const std::vector<std::string>& names) const {
  return Guarded([&]() -> Result<Explanation> {
    TRY(CheckImageRef(copy.image_ref));
    const bool closed = impl_->rules == Mode::kStrict;
    const ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, "the store");
    std::string_view handler;
    if (internal::FindStoredHandler(snapshot, copy.runtime_handler, handler) != Lookup::kFound) {
      return Error{ErrorCode::kInvalidArgument,
                   "unknown runtime handler " + internal::QuoteForMessage(copy.runtime_handler)};
    }
    Explanation why;
    why.distrustful = snapshot.state().distrustful;
    std::vector<std::string> refs{std::string(copy.image_ref)};
    if (closed) {
      Payload entry;
      const Lookup in_ledger = internal::FindLedgerEntry(snapshot, copy.image_ref, handler, entry);
      if (in_ledger == Lookup::kDamaged) return impl_->Unreadable("the ledger");
      if (in_ledger == Lookup::kFound) why.ledger_entry = internal::DecodeLedgerEntry(entry);
      const Lookup gone = internal::FindGoneEntry(snapshot, copy.image_ref, handler, entry);
      if (gone == Lookup::kDamaged) return impl_->Unreadable("the ledger");
      if (gone == Lookup::kFound) why.gone_entry = internal::DecodeLedgerEntry(entry);
      if (internal::RefsOfImage(snapshot, copy.image_ref, refs) == Lookup::kDamaged) {
        return impl_->Unreadable("the spellings");
      }
    }
    why.spellings = refs;
    std::sort(why.spellings.begin(), why.spellings.end());
    why.spellings.erase(std::unique(why.spellings.begin(), why.spellings.end()),
                        why.spellings.end());
    bool has_credentials = false;
    for (const std::string& ref : why.spellings) {
      why.unreadable =
          !FindOtherHandlers(snapshot, ref, handler, why.other_handlers) || why.unreadable;
    }
    for (const std::string& ref : refs) {
      Payload payload;
      bool has_others = false;
      const Lookup found =
          snapshot.GetCopy(Table::kPulled, internal::PulledKey(ref, handler, snapshot.seed()),
                           internal::kRefKeyBytes, payload, has_others);
      if (found == Lookup::kAbsent) continue;
      const auto record =
          found == Lookup::kFound ? internal::DecodePulledRecordValue(payload) : std::nullopt;
      if (!record || record->image_ref != ref) {
        why.unreadable = true;
        continue;
      }
      why.recorded = true;
      why.closed_because = record->closed_because;
      has_credentials = !record->credential_mapping.empty();
      TellStandings(snapshot, *impl_, *record, why);
      break;
    }
    auto quarantine = TRY(ListIn(*impl_, snapshot, Table::kQuarantine, "the quarantine entries",
                                 internal::DecodeQuarantineValue));
    for (QuarantinedFile& one : quarantine) {
      std::vector<std::string> texts = refs;
      if (one.kind == QuarantineKind::kImage) {
        texts = closed ? internal::EquivalentImages(copy.image)
                       : std::vector<std::string>{std::string(copy.image)};
      }
      const bool about_it = std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
        const auto sha256 = internal::Sha256(text);
        return sha256 && internal::HexEncode(*sha256) == one.sha256;
      });
      if (about_it) why.quarantine.push_back(std::move(one));
    }
    why.in_quarantine = !why.quarantine.empty();
    auto pulls = TRY(ListIn(*impl_, snapshot, Table::kIntents, "the open pulls",
                            internal::DecodeUnresolvedPull));
    if (closed) {
      why.pulls = internal::PullsOfAny(
          pulls, names.empty() ? std::vector<std::string>{std::string(copy.image)} : names,
          impl_->evidence.short_names);
    } else {
      std::copy_if(
          pulls.rbegin(), pulls.rend(), std::back_inserter(why.pulls),
          [&](const UnresolvedPull& pull) { return !pull.anything && pull.image == copy.image; });
    }
    internal::Conclude(impl_->rules, has_credentials, why);
    if (why.recorded && has_credentials && !why.in_quarantine && !why.ledger_entry) {
      TellWhatStoppedCounting(why);
    }
    if (why.unreadable && !why.recorded) {
      why.text = "the record of this image can't be read";
      why.hint = "a pull replaces it; an owner that opens the store recovers it";
    }
    return why;
  });
}

}  // namespace waybill
