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
#include "store/images/decide.h"
#include "store/images/forget.h"
#include "store/images/judge.h"
#include "store/images/open_pulls.h"
#include "store/images/pull_row.h"
#include "store/images/shown.h"
#include "store/node/facade/impl.h"
#include "store/node/records/typed_tables.h"

namespace waybill {

using internal::ImageRow, internal::Lookup, internal::Payload, internal::ReaderPool,
    internal::Table;

namespace {

using Kind = ExplainedCredential::Kind;

// Of a record, under each image name.
std::vector<ExplainedCredential> CredentialsOf(const internal::Credentials& entries) {
  std::vector<ExplainedCredential> all;
  const auto add = [&](const std::string& image_name, Kind kind, CredentialName who, Proof proof) {
    all.push_back({.image_name = image_name, .kind = kind, .who = std::move(who), .proof = proof});
  };
  for (const auto& [image_name, entry] : entries) {
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
                   const ImageRow& row, Explanation& why) {
  const internal::Clocks now = impl.ClocksIn(snapshot);
  internal::Credentials remembered = row.pulled->entries;
  internal::LeaveWhatIsRemembered(snapshot, remembered);
  internal::Credentials good = row.pulled->entries;
  internal::LeaveWhatCounts(snapshot, impl.policy, impl.AgesIn(snapshot), now, good);
  const auto not_forgotten = CredentialsOf(remembered);
  const auto counting = CredentialsOf(good);
  why.credentials = CredentialsOf(row.pulled->entries);
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
  why.record = internal::RecordOf(row, now, impl.clock());
  for (const auto& [image_name, entry] : row.pulled->entries) why.image_names.push_back(image_name);
  why.record->credential_mapping.clear();
}

// The handlers but `handler` that have a record of the image. False: one can't be read.
bool FindOtherHandlers(const ReaderPool::Lease& snapshot, const std::string& subject,
                       std::string_view handler, std::vector<std::string>& handlers) {
  bool readable = true;
  const auto note = [&](Payload payload) {
    const auto row = internal::DecodeImage(payload);
    readable = readable && row;
    if (row && row->pulled && row->subject == subject && row->runtime_handler != handler) {
      handlers.push_back(row->runtime_handler);
    }
    return false;  // and on to the next
  };
  const Lookup found =
      snapshot.FindWithPrefix(Table::kImages, internal::FirstImageKey(subject, snapshot.seed()),
                              internal::kSubjectKeyBytes, note);
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
    const internal::Question question = impl_->AskAbout(copy);
    if (internal::TextsOf(snapshot, question, why.spellings) == Lookup::kDamaged) {
      why.unreadable = true;
    }
    const std::vector<std::string> refs = why.spellings;
    std::ranges::sort(why.spellings);
    const auto found = internal::FindRow(snapshot, question, handler);
    std::optional<ImageRow> row;
    if (found.lookup == Lookup::kFound) row = internal::DecodeImage(found.row);
    why.unreadable = why.unreadable || (found.lookup != Lookup::kAbsent && !row);
    const std::string subject = !found.subject.empty() ? found.subject
                                : closed               ? internal::SpellingOf(copy.image_ref)
                                                       : std::string(copy.image_ref);
    if (!FindOtherHandlers(snapshot, subject, handler, why.other_handlers)) why.unreadable = true;
    bool has_credentials = false;
    if (row && row->pulled) {
      why.recorded = true;
      why.closed_because = row->pulled->closed_because;
      has_credentials = !row->pulled->entries.empty();
      TellStandings(snapshot, *impl_, *row, why);
    }
    if (closed && row && row->preloaded) {
      (row->absent == 0 ? why.ledger_entry : why.gone_entry) =
          internal::PreloadedOf(*row, impl_->ClocksIn(snapshot), impl_->clock());
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
