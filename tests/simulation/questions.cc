// Pods ask, and each answer is held against the truth.

#include <fmt/format.h>

#include <array>

#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/words.h"
#include "tests/simulation/node_life.h"
#include "waybill/values.h"

namespace waybill::simulation {

namespace {

// Then its pod is deleted: after some three hours.
constexpr int kMostTries = 40;

// Credentials at hand, owned.
class PodSource final : public CredentialSource {
 public:
  explicit PodSource(Proof proof) : proof_(std::move(proof)) {
    if (proof_.secret) secrets_[0] = ImagePullSecretView(*proof_.secret);
    credentials_.secrets = std::span(secrets_.data(), proof_.secret ? 1 : 0);
    if (proof_.account) {
      credentials_.service_account = ImagePullServiceAccountView(*proof_.account);
    }
  }
  PodSource(const PodSource&) = delete;
  PodSource& operator=(const PodSource&) = delete;
  Result<PodCredentials> Fetch() override { return credentials_; }
  bool may_block() const override { return false; }

 private:
  Proof proof_;
  std::array<ImagePullSecretView, 1> secrets_;
  PodCredentials credentials_;
};

std::string HeldOut(const Proof& proof) {
  if (proof.secret) return proof.secret->uid + " with " + proof.secret->credential_hash;
  return proof.account ? proof.account->uid : "no credentials";
}

CopyName NameForRecords(std::string_view image, const Pod& pod) {
  return {std::string(ImageName(image).value_or(image)), std::string(pod.runtime_handler)};
}

}  // namespace

Proof NodeLife::ProofOf(const Pod& pod) const {
  if (!world_.HasCredential(pod)) return {};
  const Tenant& tenant = world_.tenants()[pod.tenant];
  switch (pod.credential) {
    case Credential::kNone:
      return {};
    case Credential::kSecret: {
      Proof proof{.secret = tenant.secret};
      if (!pod.hash.empty()) proof.secret->credential_hash = pod.hash;
      return proof;
    }
    case Credential::kAccount:
      return {.account = tenant.account};
    case Credential::kFormerSecret:
      return {.secret = tenant.former_secret};
    case Credential::kFormerAccount:
      return {.account = tenant.former_account};
  }
  return {};
}

Pod NodeLife::SomePod(std::size_t tenant) {
  const std::size_t kind = draw_.Below(10);
  // Some pods are older than what their Secrets are now.
  const bool is_former = scenario_.deletions > 0 && draw_.OneIn(8);
  Pod pod{tenant,
          kind < 6   ? is_former ? Credential::kFormerSecret : Credential::kSecret
          : kind < 8 ? is_former ? Credential::kFormerAccount : Credential::kAccount
                     : Credential::kNone,
          scenario_.runtime_handlers && draw_.OneIn(8) ? "kata" : ""};
  const std::vector<EarlierHash>& earlier = world_.tenants()[tenant].earlier_hashes;
  if (pod.credential == Credential::kSecret && !earlier.empty() && draw_.OneIn(3)) {
    pod.hash = draw_.From(earlier).hash;
  }
  return pod;
}

std::string NodeLife::SomeString(const Repository& repository) {
  const Tag& tag = draw_.From(repository.tags);
  const bool of_earlier = !tag.earlier.empty() && draw_.OneIn(4);
  const ContentIndex index =
      of_earlier ? tag.earlier[tag.earlier.size() - 1 -
                               draw_.Below(std::min<std::size_t>(3, tag.earlier.size()))]
                 : tag.content;
  const Content& content = world_.content(index);
  const std::string& digest =
      !content.index.empty() && draw_.OneIn(2) ? content.index : content.manifest;
  std::string name = repository.name;
  if (short_names_ && !repository.other_names.empty() && draw_.OneIn(2)) {
    name = draw_.From(repository.other_names);
  }
  const std::size_t form = draw_.Below(short_names_ ? 100 : 98);
  if (form < 80) return tag.name == "latest" && draw_.OneIn(2) ? name : name + ":" + tag.name;
  if (form < 91) return name + "@" + digest;
  if (form < 98) return name + ":" + tag.name + "@" + digest;
  return SomeId(repository);
}

// Of an image, as a runtime understands it.
std::string NodeLife::SomeId(const Repository& repository) {
  const std::string& hex = world_.content(draw_.From(repository.tags).content).hex;
  switch (draw_.Below(3)) {
    case 0:
      return "sha256:" + hex;
    case 1:
      return hex;
    default:
      return hex.substr(0, 12);
  }
}

NodeLife::Question NodeLife::SomeQuestion() {
  Question question;
  question.pod = SomePod(draw_.Below(World::kTenants - 1));
  std::deque<Repository>& repositories = world_.repositories();
  Repository* repository = &repositories[draw_.Below(repositories.size())];
  // Mostly what it may pull.
  for (int tries = 0; tries < 20 && !world_.MayPull(question.pod, *repository); ++tries) {
    if (draw_.OneIn(40)) break;
    repository = &repositories[draw_.Below(repositories.size())];
  }
  question.image = SomeString(*repository);
  if (scenario_.percent_foretold > 0 && Percent(draw_, scenario_.percent_foretold)) {
    question.image = fmt::format("site.example/tools/x{}:1", files_imported_ + draw_.Below(3));
  }
  const std::size_t policy = draw_.Below(100);
  question.policy = policy < 86   ? PullPolicy::kIfNotPresent
                    : policy < 96 ? PullPolicy::kAlways
                                  : PullPolicy::kNever;
  return question;
}

void NodeLife::AskSomething() { Ask(SomeQuestion()); }

EnsureOutcome NodeLife::Ensure(const Question& question, std::optional<ContentIndex> present) {
  const std::string ref = present ? runtime_.Id(*present) : std::string();
  PodSource source(ProofOf(question.pod));
  ++figures_.decisions;
  EnsureOutcome outcome = store_->EnsureImage(
      {.image = question.image, .image_ref = ref, .runtime_handler = question.pod.runtime_handler},
      question.policy, source);
  if (outcome.action == EnsureAction::kUsePresent && mode_ == Role::kWaybill) {
    if (!present) Fail("an absent image is used: " + question.image, std::nullopt);
    CheckOpen(question.pod, question.image, ref, *present,
              outcome.decision.value_or(Decision{.pull = false}));
  }
  // Kubelet rules open more, and are not judged; but what they write back counts later.
  if (mode_ == Role::kKubeletRules && present && outcome.decision && !outcome.decision->pull) {
    const bool by_hash = outcome.decision->reason == Reason::kSecretHashMatches;
    if (by_hash || outcome.decision->reason == Reason::kSecretCoordinatesMatch) {
      const Proof proof = ProofOf(question.pod);
      truth_.WrittenBack(*present, NameForRecords(question.image, question.pod), *proof.secret,
                         by_hash, false, NextStep());
    }
  }
  if (present) AskKubeletBeside(question.pod, question.image, *present);
  return outcome;
}

// The kubelet is not judged, but what it writes back counts later.
void NodeLife::AskKubelet(const Question& question, std::optional<ContentIndex> present) {
  if (question.policy == PullPolicy::kNever && !present) return;
  if (present && question.policy != PullPolicy::kAlways) {
    const Proof proof = ProofOf(question.pod);
    const StockKubelet::Answer answer =
        kubelet_->Decide(question.image, runtime_.Id(*present), proof, clock_.Now());
    const bool by_hash = answer.by == StockKubelet::Match::kHash;
    if (by_hash || answer.by == StockKubelet::Match::kCoordinates) {
      truth_.WrittenBack(*present, NameForRecords(question.image, question.pod), *proof.secret,
                         by_hash, false, NextStep());
    }
    if (!answer.pull) {
      runtime_.Used(*present, timeline_.now());
      return;
    }
    if (question.policy == PullPolicy::kNever) return;
  }
  StartPull(question);
}

void NodeLife::AskKubeletBeside(const Pod& pod, const std::string& image, ContentIndex content) {
  if (!scenario_.kubelet_beside || mode_ != Role::kWaybill) return;
  const Proof proof = ProofOf(pod);
  const StockKubelet::Answer answer =
      kubelet_->Decide(image, runtime_.Id(content), proof, clock_.Now());
  if (answer.pull || truth_.MayHave(content, NameForRecords(image, pod), proof)) return;
  ++figures_.opened_by_kubelet;
}

void NodeLife::AskAgain(Question question) {
  if (!scenario_.pods_wait || question.is_hasty || question.policy == PullPolicy::kAlways) return;
  if (++question.tries > kMostTries) {
    EndWaits(question.pod.tenant, std::nullopt, question.image);
    return;
  }
  if (question.tries == 1 && Percent(draw_, scenario_.percent_answered)) ImportFor(question);
  const Millis back_off = std::min(10 * kSecond << std::min(question.tries, 5), 5 * kMinute);
  timeline_.After(back_off, [this, question] { Ask(question); });
}

void NodeLife::EndWaits(std::size_t tenant, std::optional<ContentIndex> content,
                        std::string_view image) {
  std::erase_if(waits_, [&](const auto& one) {
    const auto& [who, wait] = one;
    if (who.first != tenant || (who.second != content && wait.image != image)) return false;
    figures_.waits.push_back(timeline_.now() - wait.since);
    return true;
  });
}

void NodeLife::Ask(const Question& question) {
  if (mode_ == Role::kDown) {
    AskAgain(question);
    return;
  }
  const std::optional<ContentIndex> present = runtime_.Resolve(question.image);
  if (mode_ == Role::kStockKubelet) {
    AskKubelet(question, present);
    return;
  }
  if (mode_ == Role::kWithoutWaybill) {
    if (!present || question.policy == PullPolicy::kAlways) StartPull(question);
    return;
  }
  EnsureOutcome outcome = Ensure(question, present);
  const auto missed = [&] {
    return outcome.decision && outcome.decision->reason == Reason::kNoEvidence;
  };
  if (mode_ == Role::kWaybill && present && missed() &&
      timeline_.now() - last_list_on_a_miss_ >= kSecond) {
    last_list_on_a_miss_ = timeline_.now();
    ListNow();
    outcome = Ensure(question, present);
  }
  if (mode_ == Role::kWaybill && present && outcome.decision) {
    CheckClosed(question, *present, outcome.action == EnsureAction::kUsePresent, *outcome.decision);
  }
  if (outcome.action == EnsureAction::kUsePresent && present) {
    runtime_.Used(*present, timeline_.now());
  }
  if (outcome.action == EnsureAction::kPull) {
    StartPull(question);
  } else if (outcome.action != EnsureAction::kUsePresent) {
    AskAgain(question);
  }
}

// Another pod asks about an image on the node, by any spelling that the runtime might use.
void NodeLife::AskOutOfTurn() {
  if (mode_ != Role::kWaybill || runtime_.size() == 0) return;
  const ListedImage& entry = draw_.From(runtime_.List());
  AskAbout(entry, SomePod(draw_.Below(World::kTenants)));
}

void NodeLife::AskAbout(const ListedImage& entry, const Pod& pod) {
  const std::vector<ListedImage>& list = runtime_.List();
  const ContentIndex content = *runtime_.Resolve(entry.id);
  const std::string& hex = world_.content(content).hex;
  std::vector<std::string> refs = {hex, "sha256:" + hex};
  for (const std::string& digest : entry.repo_digests) {
    // A digest of two images is a spelling of neither.
    bool shared = false;
    const std::string bare = digest.substr(digest.find('@') + 1);
    for (const ListedImage& other : list) {
      if (other.id == entry.id) continue;
      for (const std::string& its : other.repo_digests) shared = shared || its.ends_with(bare);
    }
    if (!shared) refs.push_back(digest);
  }
  std::vector<std::string> images = {hex, "sha256:" + hex, hex.substr(0, 12)};
  images.insert(images.end(), entry.repo_tags.begin(), entry.repo_tags.end());
  images.insert(images.end(), entry.repo_digests.begin(), entry.repo_digests.end());
  const std::string& image = draw_.From(images);
  const std::string& ref = draw_.From(refs);
  PodSource source(ProofOf(pod));
  ++figures_.decisions;
  const Decision decision = store_->MustAttemptPull(
      {.image = image, .image_ref = ref, .runtime_handler = pod.runtime_handler}, source);
  if (!decision.pull) CheckOpen(pod, image, ref, content, decision);
  AskKubeletBeside(pod, image, content);
}

void NodeLife::CheckOpen(const Pod& pod, const std::string& image, std::string_view ref,
                         ContentIndex content, const Decision& decision) {
  ++figures_.opened;
  const Proof proof = ProofOf(pod);
  const CopyName name = NameForRecords(image, pod);
  const bool by_hash = decision.reason == Reason::kSecretHashMatches;
  const bool by_secret = by_hash || decision.reason == Reason::kSecretCoordinatesMatch;
  const bool by_proof = by_secret || decision.reason == Reason::kServiceAccountMatches ||
                        decision.reason == Reason::kNodePodsAccessible;
  if (truth_.MayHave(content, name, proof, by_proof ? Means::kByProof : Means::kAnyway)) {
    // A rotated credential is written back, and counts from now on as what it matched.
    if (!by_secret) return;
    const bool is_new = !truth_.HasVery(content, name, *proof.secret);
    const bool races = is_new && scenario_.deletions > 0 && draw_.OneIn(4);
    truth_.WrittenBack(content, name, *proof.secret, by_hash, !races, NextStep());
    if (races) ForgetMeanwhile(*proof.secret);
    if (is_new) Must(store_->Flush(), "Flush");
    return;
  }
  // They explain what is in the ledger.
  switch (by_proof ? Limit::kNone : truth_.WhyOpen(content)) {
    case Limit::kLate:
      ++figures_.late;
      return;
    case Limit::kPartialList:
      ++figures_.partial_lists;
      return;
    case Limit::kRetagged:
      ++figures_.retagged;
      return;
    case Limit::kLost:
      ++figures_.lost;
      return;
    case Limit::kPresumed:
      ++figures_.presumed;
      return;
    case Limit::kNone:
      break;
  }
  const std::string_view why = truth_.WhyClosed(content, name, proof);
  const std::string what = fmt::format(
      "{} is open for a pod of tenant {} ({}{}) that asks {} with the ref {}: {}, although {}",
      NameOf(content), pod.tenant, pod.runtime_handler.empty() ? "" : "kata, ", HeldOut(proof),
      image, ref, ReasonName(decision.reason), why);
  if (!scenario_.counts_openings) Fail(what, content);
  if (++figures_.wrong_openings[std::string(why)] > 1) return;
  figures_.examples.push_back(what + "\n  truth: " + truth_.Describe(content) +
                              History(content, 60));
}

void NodeLife::CheckClosed(const Question& question, ContentIndex content, bool opened,
                           const Decision& decision) {
  const Proof proof = ProofOf(question.pod);
  const CopyName name = NameForRecords(question.image, question.pod);
  if (opened) {
    EndWaits(question.pod.tenant, content, question.image);
  } else if (truth_.MayHave(content, name, proof)) {
    waits_.try_emplace({question.pod.tenant, content}, Wait{timeline_.now(), question.image});
  }
  if (truth_.MustKnow(content, name, proof)) {
    ++figures_.rightful;
    if (opened) {
      refused_since_.erase(content);
      return;
    }
    ++figures_.wrong_closings;
    const Millis since = refused_since_.try_emplace(content, timeline_.now()).first->second;
    figures_.refused_longest = std::max(figures_.refused_longest, timeline_.now() - since);
    Log(content, fmt::format("closed wrongly for tenant {} that asks {}: {}", question.pod.tenant,
                             question.image, ReasonName(decision.reason)));
    if (figures_.examples.size() < Figures::kExamples) {
      figures_.examples.push_back("closed wrongly:" + History(content, 25));
    }
  }
}

}  // namespace waybill::simulation
