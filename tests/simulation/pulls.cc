// What becomes of a pull: in the registry, in the runtime, and in what the kubelet records of it.

#include <fmt/format.h>

#include <algorithm>

#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/words.h"
#include "tests/simulation/node_life.h"
#include "waybill/values.h"

namespace waybill::simulation {

namespace {

constexpr std::size_t kMostRunning = 1000;

}  // namespace

ImageCopy NodeLife::CopyOf(const Pull& pull) {
  return {.image = pull.question.image, .runtime_handler = pull.question.pod.runtime_handler};
}

void NodeLife::StartPull(const Question& question) {
  if (pulls_.size() >= kMostRunning) return;  // the kubelet's own limits
  const bool recorded = mode_ == Role::kWaybill || mode_ == Role::kKubeletRules;
  if (mode_ == Role::kWaybill && !listed_since_start_) ListNow();
  auto pull = std::make_shared<Pull>();
  pull->number = next_pull_++;
  pull->question = question;
  pull->name = runtime_.Complete(question.image);
  pull->proof = ProofOf(question.pod);
  const bool mirrored =
      scenario_.percent_mirrored > 0 && Percent(draw_, scenario_.percent_mirrored);
  DrawTerms(*pull, mirrored);
  if ((registries_reachable_ || mirrored) && pull->name) {
    const std::optional<ContentIndex> served = world_.Serve(*pull->name);
    if (served) DrawServed(*pull, *served, mirrored);
  }
  if (recorded && !Broken(Breakage::kNoIntents)) {
    pull->id = Must(store_->RecordPullIntent(CopyOf(*pull)), "RecordPullIntent");
    pull->has_intent = true;
  }
  if (mode_ == Role::kStockKubelet || scenario_.kubelet_beside) kubelet_->Begin(question.image);
  pull->began = NextStep();
  pull->leased_from = timeline_.now() + static_cast<Millis>(pull->number * 37 % 300);
  // Kubelet rules keep no open pulls.
  pull->forgotten = mode_ != Role::kWaybill;
  pulls_[pull->number] = pull;
  LogPull(*pull,
          fmt::format("begins: {}, tenant {}{}{}", question.image, question.pod.tenant,
                      pull->content ? "" : ", in vain", recorded ? "" : ", without waybill"));
  if (pull->content) runtime_.Label(*pull->content);
  const Millis duration = Around(draw_, 20 * kSecond) + 200;
  PlanEnd(pull, duration);
  if (scenario_.percent_strangers == 0 || !pull->content || pull->anonymous) return;
  if (!Percent(draw_, scenario_.percent_strangers)) return;
  Question strange = question;
  strange.pod = {World::kHostile, Credential::kSecret};
  strange.policy = PullPolicy::kAlways;
  strange.is_hasty = draw_.OneIn(4);
  timeline_.After(Between(draw_, 0, duration), [this, strange] { Ask(strange); });
}

void NodeLife::DrawServed(Pull& pull, ContentIndex served, bool mirrored) {
  const Repository& repository = *world_.Find(pull.name->repository);
  const bool may_pull = mirrored || world_.MayPull(pull.question.pod, repository);
  pull.by_node =
      !may_pull && scenario_.percent_by_node > 0 && Percent(draw_, scenario_.percent_by_node);
  if (!may_pull && !pull.by_node) return;
  pull.content = served;
  pull.anonymous = pull.by_node || repository.is_public;
}

void NodeLife::DrawTerms(Pull& pull, bool mirrored) {
  if (scenario_.percent_mirrored > 0) {
    pull.terms.checker = mirrored ? VerifiedBy::kMirror : VerifiedBy::kRegistry;
  }
  if (scenario_.percent_ending > 0 && Percent(draw_, scenario_.percent_ending)) {
    pull.terms.good_until =
        Timestamp{clock_.Now().seconds + Between(draw_, kMinute, 2 * kHour) / kSecond, 0};
  }
}

void NodeLife::PlanEnd(const PullPointer& pull, Millis duration) {
  if (pull->question.is_hasty || Percent(draw_, scenario_.percent_cut)) {
    timeline_.After(Between(draw_, 0, duration), [this, pull] { Cut(pull); });
    return;
  }
  if (scenario_.outages > 0 && !registries_reachable_ && draw_.OneIn(4)) {
    // It hangs until the kubelet gives up.
    timeline_.After(Around(draw_, kMinute), [this, pull] { Cut(pull); });
    return;
  }
  if (!pull->content) {
    timeline_.After(Around(draw_, kSecond), [this, pull] {
      Fail(pull, true);
      Done(pull);
    });
    return;
  }
  if (Percent(draw_, scenario_.percent_misreported)) {
    const bool arrives_first = draw_.OneIn(2);
    timeline_.After(duration, [this, pull, arrives_first] {
      if (arrives_first) Arrive(pull);
      Fail(pull, arrives_first);
      if (!arrives_first && draw_.OneIn(2)) {
        ArriveLater(pull, kGrace);
      } else {
        Done(pull);
      }
    });
    return;
  }
  if (scenario_.percent_lost > 0 && Percent(draw_, scenario_.percent_lost)) {
    timeline_.After(duration, [this, pull] {
      Fail(pull, true);
      timeline_.After(Between(draw_, 0, kMinute), [this, pull] {
        Arrive(pull);
        Done(pull);
      });
    });
    return;
  }
  timeline_.After(duration, [this, pull] {
    if (!pull->attached && draw_.OneIn(2)) {
      ArriveLater(pull, kWindow);
      return;
    }
    Arrive(pull);
    if (pull->attached && scenario_.kills > 0 && draw_.OneIn(200)) Kill(Around(draw_, kMinute));
    if (pull->attached) Succeed(pull);
    Done(pull);
  });
}

void NodeLife::Done(const PullPointer& pull) {
  pull->stopped = true;
  pulls_.erase(pull->number);
  if (pull->content) CollectContent(*pull->content);
}

void NodeLife::Arrive(const PullPointer& pull) {
  if (pull->stopped || !pull->content) return;
  const bool late = pull->expected_until <= Uptime();
  if (!scenario_.lists_late || pull->attached) {
    Appear(pull, late);
    return;
  }
  not_shown_[pull->number] = pull;
  const Millis delay = static_cast<Millis>(pull->number * 977 % 3500);
  timeline_.After(delay, [this, pull, late] {
    if (not_shown_.erase(pull->number) != 0) Appear(pull, late);
  });
}

void NodeLife::Appear(const PullPointer& pull, bool late) {
  const ContentIndex content = *pull->content;
  const bool was_there = runtime_.Has(content);
  runtime_.Pulled(content, *pull->name);
  runtime_.Used(content, timeline_.now());
  truth_.BroughtByPull(content, was_there, late, pull->lost, NextStep());
  Log(content, fmt::format("{} arrives by pull {}{}{}", NameOf(content), pull->number,
                           pull->attached ? "" : ", unrecorded",
                           late ? ", later than the store had to expect" : ""));
}

// Sooner or later, but mostly while the store has to expect it.
void NodeLife::ArriveLater(const PullPointer& pull, Millis expected_for) {
  Millis delay = Between(draw_, 0, draw_.OneIn(2) ? kMinute : expected_for * 9 / 10);
  if (scenario_.beyond_limits && draw_.OneIn(8)) {
    delay = expected_for + Between(draw_, 0, 2 * expected_for);
  }
  timeline_.After(delay, [this, pull] {
    Arrive(pull);
    Done(pull);
  });
}

void NodeLife::Ended(const PullPointer& pull, Millis expected_for) {
  pull->attached = false;
  if (!pull->forgotten) pull->expected_until = Uptime() + expected_for;
}

ImagePullCredentials NodeLife::AcceptedCredentials(const Pull& pull) const {
  ImagePullCredentials credentials;
  const Proof& proof = pull.proof;
  credentials.node_pods_accessible = pull.anonymous || Broken(Breakage::kAnonymousSuccess);
  if (credentials.node_pods_accessible) return credentials;
  if (proof.secret) credentials.kubernetes_secrets.push_back(*proof.secret);
  if (proof.account) credentials.kubernetes_service_accounts.push_back(*proof.account);
  return credentials;
}

void NodeLife::Succeed(const PullPointer& pull) {
  Ended(pull, 0);
  if (mode_ == Role::kWithoutWaybill) return;
  const ContentIndex content = *pull->content;
  if (mode_ == Role::kStockKubelet || scenario_.kubelet_beside) {
    // One beside is spared that it takes two spellings for two images.
    const std::string ref =
        scenario_.kubelet_beside ? runtime_.Id(content) : runtime_.PullRef(content, *pull->name);
    kubelet_->Succeed(pull->question.image, ref, AcceptedCredentials(*pull), clock_.Now());
  }
  if (memory_) {
    memory_->Succeed(pull->question.image, runtime_.Id(content), AcceptedCredentials(*pull),
                     clock_.Now());
  }
  if (Broken(Breakage::kBeginsAtItsEnd)) {
    ReportFailure(pull, PullOutcome::kUnknown);
    pull->id = Must(store_->RecordPullIntent(CopyOf(*pull)), "RecordPullIntent");
  }
  // Of what a kubelet writes alone waybill takes only what is new.
  std::optional<Step> known_began;
  if (mode_ != Role::kStockKubelet) {
    known_began = KnownBeginning(*pull);
    RecordSuccess(*pull, content);
  }
  const CopyName name{std::string(*ImageName(pull->question.image)),
                      std::string(pull->question.pod.runtime_handler)};
  Proof proof = pull->anonymous ? Proof{.anonymous = true} : pull->proof;
  // The store surely knows that a pod needs a credential.
  if (pull->by_node && truth_.IsPrivate(content, name)) proof = {};
  // It proved nothing.
  if (pull->terms.checker == VerifiedBy::kMirror) proof = {};
  truth_.Proven(content, name, proof, pull->began, known_began, NextStep(),
                pull->terms.good_until ? pull->terms.good_until->seconds : 0);
  EndWaits(pull->question.pod.tenant, content, pull->question.image);
  LogPull(*pull, "is recorded as " + runtime_.PullRef(content, *pull->name));
}

// As far as the store can tell, if nothing names the pulls: the first of all that it may be.
Step NodeLife::KnownBeginning(const Pull& pull) const {
  if (!pull.has_intent || mode_ != Role::kWaybill) return 0;
  Step began = pull.began;
  if (names_pulls_) return began;
  for (const auto& [number, other] : pulls_) {
    const bool may_be_it = other->question.image == pull.question.image &&
                           other->question.pod.runtime_handler == pull.question.pod.runtime_handler;
    if (may_be_it && other->has_intent) began = std::min(began, other->began);
  }
  return began;
}

void NodeLife::RecordSuccess(const Pull& pull, ContentIndex content) {
  const std::string ref = runtime_.PullRef(content, *pull.name);
  PullResult result;
  result.terms = pull.terms;
  if (Broken(Breakage::kMirrorsUntold)) result.terms.checker = VerifiedBy::kRegistry;
  result.terms.node_had_no_credentials = Broken(Breakage::kNodeHadNone);
  if (Broken(Breakage::kEndsUntold)) result.terms.good_until.reset();
  if (names_pulls_) result.pull = pull.id;
  if (passes_entries_ && runtime_.Has(content)) result.image = runtime_.Entry(content);
  if (Broken(Breakage::kSuccessOfAnotherPull)) {
    for (const auto& [number, other] : pulls_) {
      if (other->has_intent && number != pull.number) result.pull = other->id;
    }
  }
  ImageCopy copy = CopyOf(pull);
  copy.image_ref = ref;
  std::optional<ImagePullCredentials> accepted = AcceptedCredentials(pull);
  if (Broken(Breakage::kMixedPullsProveNothing) && pull.mixed) accepted.reset();
  Must(store_->RecordImagePulled(copy, accepted, result), "RecordImagePulled");
}

void NodeLife::CutOff(const PullPointer& pull) {
  if (!pull->attached) return;
  LogPull(*pull, "is cut off");
  ReportFailure(pull, PullOutcome::kUnknown);
  Ended(pull, kWindow);
  AskAgain(pull->question);
}

// The pod is deleted, the time is over, or the connection is lost.
void NodeLife::Cut(const PullPointer& pull) {
  CutOff(pull);
  if (pull->content && Percent(draw_, scenario_.percent_late)) {
    ArriveLater(pull, kWindow);
  } else {
    Done(pull);
  }
}

// The runtime reports an error. An adapter that can asks it whether the image is there.
void NodeLife::Fail(const PullPointer& pull, bool can_ask) {
  if (!pull->attached) return;
  const bool nothing = can_ask && !runtime_.Resolve(pull->question.image);
  LogPull(*pull, nothing ? "fails, nothing was transferred" : "fails");
  pull->lost = nothing;
  ReportFailure(pull, nothing ? PullOutcome::kNothing : PullOutcome::kFailed);
  Ended(pull, nothing ? 0 : kGrace);
  AskAgain(pull->question);
}

void NodeLife::ReportFailure(const PullPointer& pull, PullOutcome failure) {
  if (mode_ == Role::kStockKubelet || scenario_.kubelet_beside) {
    kubelet_->Fail(pull->question.image);
  }
  if (!pull->has_intent || mode_ == Role::kWithoutWaybill) return;
  if (Broken(Breakage::kAllNothingTransferred)) failure = PullOutcome::kNothing;
  if (Broken(Breakage::kCutIsFailed)) failure = PullOutcome::kFailed;
  if (Broken(Breakage::kSuccessOfCutPulls) && failure == PullOutcome::kUnknown) {
    const std::optional<ContentIndex> there = runtime_.Resolve(pull->question.image);
    if (there && pull->name) {
      RecordSuccess(*pull, *there);
      return;
    }
  }
  for (const auto& [number, other] : pulls_) {
    const bool is_beside = other != pull && other->question.image == pull->question.image;
    other->mixed = other->mixed || is_beside;
  }
  Must(store_->RecordImagePullFailed(CopyOf(*pull), failure, names_pulls_ ? pull->id : PullId()),
       "RecordImagePullFailed");
}

}  // namespace waybill::simulation
