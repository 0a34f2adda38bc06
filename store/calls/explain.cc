// Why an image is open or closed, and what would change that.

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/calls/impl.h"
#include "store/images/decide.h"
#include "store/images/images.h"
#include "store/images/judge.h"
#include "store/images/open_pulls.h"
#include "store/images/pull_row.h"

namespace waybill {

using internal::ImageRow, internal::Payload, internal::ReaderPool, internal::Table;

namespace {

using internal::Standing;
using Kind = ExplainedCredential::Kind;

// Each credential of the row, under each image name, as a decision by that name weighs it.
void TellStandings(const ReaderPool::Lease& snapshot, const internal::Question& question,
                   Payload payload, const ImageRow& row, Explanation& why) {
  const internal::ImageView view(payload);
  for (const auto& [image_name, stored] : row.pulled->entries) {
    why.image_names.push_back(image_name);
    const auto entry = view.Find(image_name);
    if (!entry) continue;
    internal::Question by_name = question;
    by_name.image = image_name;
    const Standing standing(snapshot, by_name);
    const auto add = [&](Kind kind, CredentialName who, const Proof& proof,
                         CredentialStanding verdict) {
      why.credentials.push_back({.image_name = image_name,
                                 .kind = kind,
                                 .who = std::move(who),
                                 .proof = proof,
                                 .standing = verdict});
    };
    if (entry->node_pods_accessible()) {
      add(Kind::kNodePods, {}, stored.node_pods_proof, standing.OfNodePods(*entry));
    }
    for (std::size_t i = 0; i < entry->secret_count(); ++i) {
      const ImagePullSecret one = entry->secret(i);
      add(Kind::kSecret, {one.namespace_name, one.name, one.uid}, one.proof,
          standing.OfSecret(*entry, i));
    }
    for (std::size_t i = 0; i < entry->service_account_count(); ++i) {
      const ImagePullServiceAccount one = entry->service_account(i);
      add(Kind::kServiceAccount, {one.namespace_name, one.name, one.uid}, one.proof,
          standing.OfServiceAccount(*entry, i));
    }
  }
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

Result<Explanation> NodeStore::Explain(const ImageCopy& copy, const std::vector<std::string>& names,
                                       const VerificationPolicy* what_if) const {
  return Guarded([&]() -> Result<Explanation> {
    TRY(CheckImageRef(copy.image_ref));
    const ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, "the store");
    const auto policy = impl_->PolicyIn(snapshot);
    const internal::Question question =
        impl_->AskAbout(copy, what_if != nullptr ? *what_if : *policy);
    internal::Trail trail;
    const auto met = internal::DecideWithoutCredentials(snapshot, question, &trail);
    const Reason reason = met.decision ? met.decision->reason : Reason::kCredentialsNeeded;
    if (reason == Reason::kRuntimeHandlerUnknown) {
      return Error{ErrorCode::kInvalidArgument,
                   "unknown runtime handler " + internal::QuoteForMessage(copy.runtime_handler)};
    }
    const Mode mode = internal::ModeIn(snapshot);
    Explanation why;
    why.steps = std::move(trail.steps);
    why.distrustful = snapshot.state().distrustful;
    why.spellings = std::move(trail.texts);
    std::ranges::sort(why.spellings);
    why.other_handlers = std::move(trail.handlers);
    std::erase(why.other_handlers, met.runtime_handler);
    why.quarantine = std::move(trail.quarantine);
    why.in_quarantine = !why.quarantine.empty() || reason == Reason::kQuarantined;
    std::optional<ImageRow> row;
    if (!met.row.empty()) row = internal::DecodeImage(met.row);
    why.unreadable = trail.unreadable || (!met.row.empty() && !row) ||
                     (reason == Reason::kRecordDamaged && !row);
    bool has_credentials = false;
    if (row && row->pulled) {
      why.recorded = true;
      why.closed_because = row->pulled->closed_because;
      has_credentials = !row->pulled->entries.empty();
      TellStandings(snapshot, question, met.row, *row, why);
      why.record = internal::RecordOf(*row, impl_->ClocksIn(snapshot), impl_->clock());
      why.record->credential_mapping.clear();
    }
    if (internal::LearnsAliases(mode) && row && row->preloaded) {
      (row->absent == 0 ? why.ledger_entry : why.gone_entry) =
          internal::PreloadedOf(*row, impl_->ClocksIn(snapshot), impl_->clock());
    }
    auto pulls = TRY(ListIn(*impl_, snapshot, Table::kIntents, "the open pulls",
                            internal::DecodeUnresolvedPull));
    if (internal::LearnsAliases(mode)) {
      why.pulls = internal::PullsOfAny(
          pulls, names.empty() ? std::vector<std::string>{std::string(copy.image)} : names,
          impl_->evidence.short_names);
    } else {
      std::copy_if(
          pulls.rbegin(), pulls.rend(), std::back_inserter(why.pulls),
          [&](const UnresolvedPull& pull) { return !pull.anything && pull.image == copy.image; });
    }
    internal::Conclude(mode, has_credentials, why);
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
