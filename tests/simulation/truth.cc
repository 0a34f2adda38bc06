#include "tests/simulation/truth.h"

#include <algorithm>

#include "store/base/policy.h"

namespace waybill::simulation {

bool SameSecret(const ImagePullSecret& a, const ImagePullSecret& b) {
  return a.uid == b.uid && a.namespace_name == b.namespace_name && a.name == b.name;
}

namespace {

template <typename T>
CredentialName NameOf(const T& credential) {
  return {credential.namespace_name, credential.name, credential.uid};
}

// Whether a revocation speaks of it, whatever image it opens.
template <typename T>
bool SpeaksOf(const Revocation& what, const T& credential) {
  constexpr bool kIsSecret = requires { credential.credential_hash; };
  if (what.kind == RevocationKind::kNamespace) {
    return what.who.namespace_name == credential.namespace_name;
  }
  if constexpr (kIsSecret) {
    if (what.kind == RevocationKind::kCredential) {
      return what.credential_hash == credential.credential_hash;
    }
  }
  if (what.kind != (kIsSecret ? RevocationKind::kSecret : RevocationKind::kServiceAccount)) {
    return false;
  }
  return what.who.namespace_name == credential.namespace_name && what.who.name == credential.name &&
         (what.who.uid.empty() || what.who.uid == credential.uid);
}

// Unless another one is worth no less.
void AddEvidence(std::vector<Evidence>& all, const Evidence& evidence) {
  const auto outlasts = [](const Evidence& one, const Evidence& other) {
    return one.good_until == 0 || (other.good_until != 0 && one.good_until >= other.good_until);
  };
  const auto is_worth = [&](const Evidence& one, const Evidence& other) {
    return one.began >= other.began && one.proven >= other.proven && one.counted >= other.counted &&
           one.recorded >= other.recorded && outlasts(one, other);
  };
  const bool needless = std::any_of(all.begin(), all.end(),
                                    [&](const Evidence& one) { return is_worth(one, evidence); });
  if (needless) return;
  std::erase_if(all, [&](const Evidence& one) { return is_worth(evidence, one); });
  all.push_back(evidence);
}

template <typename T>
void AddCredential(std::vector<T>& all, const decltype(T::what)& what, const Evidence& evidence) {
  auto at = std::find_if(all.begin(), all.end(), [&](const T& one) { return one.what == what; });
  if (at == all.end()) at = all.insert(all.end(), {what, {}});
  AddEvidence(at->evidence, evidence);
}

}  // namespace

template <typename Leaves>
void Truth::Proofs::Drop(const Leaves& leaves) {
  const auto drop = [&](auto& all) {
    for (auto& one : all) {
      std::erase_if(one.evidence,
                    [&](const Evidence& evidence) { return leaves(&one.what, evidence); });
    }
    std::erase_if(all, [](const auto& one) { return one.evidence.empty(); });
  };
  constexpr const ImagePullSecret* kAllPods = nullptr;
  std::erase_if(anonymous, [&](const Evidence& evidence) { return leaves(kAllPods, evidence); });
  drop(secrets);
  drop(accounts);
}

bool Truth::Counts(const Evidence& evidence, Kind kind) const {
  if (evidence.good_until != 0 && clock_ >= evidence.good_until) return false;
  if (max_age_.count() == 0) return true;
  if (kind == Kind::kTrue) return counted_ - evidence.counted <= max_age_.count() + slack_;
  return clock_ - evidence.proven <= max_age_.count() && evidence.recorded > jumped_;
}

bool Truth::Match(const Proofs& proofs, const Proof& proof, Kind kind) const {
  const auto any = [&](const std::vector<Evidence>& all) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Evidence& one) { return Counts(one, kind); });
  };
  if (any(proofs.anonymous)) return true;
  if (proof.secret) {
    for (const auto& known : proofs.secrets) {
      const bool matches = known.what.credential_hash == proof.secret->credential_hash ||
                           (SameSecret(known.what, *proof.secret) &&
                            !IsHashForgotten(proof.secret->credential_hash, kind));
      if (matches && any(known.evidence)) return true;
    }
  }
  return proof.account &&
         std::any_of(proofs.accounts.begin(), proofs.accounts.end(), [&](const auto& known) {
           return known.what == *proof.account && any(known.evidence);
         });
}

// After that time the store need not know of it any more.
bool Truth::IsOver(const Forgetting& forgetting) const {
  return clock_ - forgetting.clock > revocations_kept_.count() && kubelet_began_ > forgetting.at;
}

bool Truth::IsHashForgotten(std::string_view hash, Kind kind) const {
  return std::any_of(forgettings_.begin(), forgettings_.end(), [&](const Forgetting& one) {
    const bool is_over = kind == Kind::kTrue && IsOver(one);
    return !is_over && !one.content && !one.existing &&
           one.what.kind == RevocationKind::kCredential && one.what.credential_hash == hash;
  });
}

const Truth::Image* Truth::Find(ContentIndex content) const {
  const auto found = images_.find(content);
  return found == images_.end() ? nullptr : &found->second;
}

std::vector<ContentIndex> Truth::AllOfIndex(ContentIndex content) const {
  const auto all = of_one_index_.find(content);
  return all == of_one_index_.end() ? std::vector{content} : all->second;
}

void Truth::BroughtByHand(ContentIndex content, bool was_there, Step now) {
  Image& image = images_[content];
  image.by_hand = now;
  if (!was_there) {
    // What a record says that no list has ended, the image stays.
    image.stayed = image.recorded == 0 && !image.judged;
    image.knowable = true;
  }
}

void Truth::BroughtByPull(ContentIndex content, bool was_there, bool late, bool lost, Step now) {
  Image& image = images_[content];
  if (image.pulled == 0) {
    image.first_pull_late = late;
    image.first_pull_lost = lost;
  }
  image.pulled = now;
  if (!was_there) image.stayed = false;
}

void Truth::Proven(ContentIndex content, const CopyName& name, const Proof& proof, Step began,
                   std::optional<Step> known_began, Step now, std::int64_t good_until) {
  images_[content].recorded = now;
  const auto prove = [&](ContentIndex of, const Evidence& evidence, Kind kind) {
    Image& image = images_[of];
    Proofs& proofs = (kind == Kind::kTrue ? image.proofs : image.known_proofs)[name];
    constexpr const ImagePullSecret* kAllPods = nullptr;
    if (proof.anonymous && !IsRevoked(kAllPods, evidence, of, name, kind)) {
      AddEvidence(proofs.anonymous, evidence);
    }
    // It may have been made with what the truth did not have.
    if (kind == Kind::kKnown && evidence.began < last_truth_) return;
    if (proof.secret && !IsRevoked(&*proof.secret, evidence, of, name, kind)) {
      // A record keeps only the newest hash of a Secret. Two records may have one each.
      if (kind == Kind::kKnown) {
        std::erase_if(proofs.secrets, [&](const auto& known) {
          return SameSecret(known.what, *proof.secret) && known.what != *proof.secret;
        });
      }
      AddCredential(proofs.secrets, *proof.secret, evidence);
    }
    if (proof.account && !IsRevoked(&*proof.account, evidence, of, name, kind)) {
      AddCredential(proofs.accounts, *proof.account, evidence);
    }
    const bool any = !proofs.secrets.empty() || !proofs.accounts.empty();
    if (kind == Kind::kKnown && any) image.private_names.insert(name);
  };
  for (const ContentIndex one : AllOfIndex(content)) {
    prove(one, {began, clock_, counted_, now, good_until}, Kind::kTrue);
  }
  if (!known_began) return;
  prove(content, {*known_began, clock_, counted_, now, good_until}, Kind::kKnown);
}

void Truth::WrittenBack(ContentIndex content, const CopyName& name, const ImagePullSecret& secret,
                        bool by_hash, bool is_sure, Step now) {
  const auto worth = [&](Kind kind) {
    std::vector<Evidence> all;
    const Image* const image = Find(content);
    if (image == nullptr) return all;
    const auto& proofs = kind == Kind::kTrue ? image->proofs : image->known_proofs;
    const auto found = proofs.find(name);
    if (found == proofs.end()) return all;
    for (const auto& known : found->second.secrets) {
      const bool matches = by_hash ? known.what.credential_hash == secret.credential_hash
                                   : SameSecret(known.what, secret);
      if (!matches) continue;
      for (const Evidence& one : known.evidence) {
        if (Counts(one, Kind::kTrue)) all.push_back(one);
      }
    }
    return all;
  };
  const bool is_new = !HasVery(content, name, secret);
  const std::vector<Evidence> known_evidence = worth(Kind::kKnown);
  for (const Evidence& one : worth(Kind::kTrue)) {
    for (const ContentIndex of : AllOfIndex(content)) {
      if (IsRevoked(&secret, one, of, name, Kind::kTrue, true)) continue;
      AddCredential(images_[of].proofs[name].secrets, secret, one);
    }
  }
  Image& image = images_[content];
  image.recorded = now;
  if (!is_new) return;
  // It takes the place of the Secret's earlier hash.
  Proofs& known = image.known_proofs[name];
  if (!is_sure || !known_evidence.empty()) {
    std::erase_if(known.secrets, [&](const auto& one) { return SameSecret(one.what, secret); });
  }
  if (!is_sure) return;
  for (const Evidence& one : known_evidence) {
    if (IsRevoked(&secret, one, content, name, Kind::kKnown)) continue;
    AddCredential(known.secrets, secret, one);
  }
}

template <typename T>
bool Truth::Covers(const Forgetting& forgetting, const T* credential, const Evidence& evidence,
                   ContentIndex content, const CopyName& name, Kind kind) const {
  if (evidence.began > forgetting.at) return false;
  if (forgetting.content) {
    if (name.runtime_handler != forgetting.what.runtime_handler) return false;
    if (content == *forgetting.content) return true;
    // Under its index's digest the store may have taken the one for the other.
    if (kind != Kind::kKnown) return false;
    const std::vector<ContentIndex> all = AllOfIndex(content);
    return std::find(all.begin(), all.end(), *forgetting.content) != all.end();
  }
  if (credential == nullptr) return false;
  if (!forgetting.existing) return SpeaksOf(forgetting.what, *credential);
  constexpr bool kIsSecret = requires { credential->credential_hash; };
  const auto& all =
      kIsSecret ? forgetting.existing->secrets : forgetting.existing->service_accounts;
  return std::none_of(all.begin(), all.end(), [&](const CredentialName& one) {
    CredentialName its = NameOf(*credential);
    if (one.uid.empty()) its.uid.clear();
    return one == its;
  });
}

template <typename T>
bool Truth::IsRevoked(const T* credential, const Evidence& evidence, ContentIndex content,
                      const CopyName& name, Kind kind, bool by_match) const {
  return std::any_of(forgettings_.begin(), forgettings_.end(), [&](const Forgetting& one) {
    // A truth takes what the store has, and what pulls that run may bring.
    if (by_match && one.existing && kind == Kind::kTrue) return false;
    const bool is_over = kind == Kind::kTrue && IsOver(one);
    return !is_over && Covers(one, credential, evidence, content, name, kind);
  });
}

void Truth::Apply(const Forgetting& forgetting, bool keeps) {
  std::vector<Forgetting> gone;
  for (auto& [content, image] : images_) {
    for (const Kind kind : {Kind::kTrue, Kind::kKnown}) {
      for (auto& [name, proofs] : kind == Kind::kTrue ? image.proofs : image.known_proofs) {
        proofs.Drop(
            [&, &of = content, &under = name](const auto* credential, const Evidence& evidence) {
              const bool covered = Covers(forgetting, credential, evidence, of, under, kind);
              if (covered && kind == Kind::kKnown && forgetting.existing) {
                constexpr bool kIsSecret = requires { credential->credential_hash; };
                gone.push_back({.what = {.kind = kIsSecret ? RevocationKind::kSecret
                                                           : RevocationKind::kServiceAccount,
                                         .who = NameOf(*credential)},
                                .at = forgetting.at,
                                .clock = forgetting.clock});
              }
              return covered;
            });
      }
    }
  }
  if (keeps) forgettings_.push_back(forgetting);
  forgettings_.insert(forgettings_.end(), gone.begin(), gone.end());
}

void Truth::Revoked(const Revocation& what, bool keeps, Step now) {
  // Whoever has forgotten a hash may see it for the first time afterwards.
  const bool always = what.kind == RevocationKind::kCredential;
  Apply({.what = what, .at = now, .clock = clock_}, keeps || always);
}

void Truth::RevokedImage(ContentIndex content, const std::string& handler, bool keeps, Step now) {
  Forgetting forgetting{.what = {}, .content = content, .at = now, .clock = clock_};
  forgetting.what.runtime_handler = handler;
  Apply(forgetting, keeps);
}

void Truth::Reconciled(const ExistingCredentials& existing, Step token) {
  Apply({.what = {}, .existing = existing, .at = token, .clock = clock_}, true);
  last_truth_ = token;
}

void Truth::Removed(ContentIndex content) {
  Image& image = images_[content];
  image.stayed = false;
  // The next arrival is the first that a list can see.
  if (!image.judged) {
    image.pulled = 0;
    image.retagged_unjudged = false;
  }
}

void Truth::SeenGone(const std::set<ContentIndex>& listed, Step token) {
  for (auto at = images_.begin(); at != images_.end();) {
    Image& image = at->second;
    if (listed.contains(at->first) || image.away || image.back > token) {
      if (!listed.contains(at->first)) Forget(image);
      ++at;
      continue;
    }
    if (image.by_hand < token) {
      image.by_hand = 0;
      image.stayed = false;
    }
    const std::vector<ContentIndex> all = AllOfIndex(at->first);
    const bool record_may_stay =
        std::any_of(all.begin(), all.end(), [&](ContentIndex one) { return listed.contains(one); });
    if (image.recorded < token && !record_may_stay) {
      image.recorded = 0;
      // What was proven for it goes on counting when it comes back. It need not.
      image.known_proofs.clear();
      image.private_names.clear();
    }
    if (image.pulled < token) {
      image.pulled = 0;
      image.first_pull_late = false;
      image.first_pull_lost = false;
      image.presumed = false;
      image.judged = false;
      image.left_out = false;
      image.retagged_unjudged = false;
    }
    const bool nothing_left = !image.closed && image.by_hand == 0 && image.recorded == 0 &&
                              image.pulled == 0 && image.proofs.empty();
    at = nothing_left ? images_.erase(at) : std::next(at);
  }
}

void Truth::NewOfIndex(ContentIndex of, ContentIndex content) {
  std::vector<ContentIndex> all = AllOfIndex(of);
  for (const ContentIndex other : all) {
    for (const auto& [name, proofs] : images_[other].proofs) {
      Proofs& own = images_[content].proofs[name];
      for (const Evidence& one : proofs.anonymous) AddEvidence(own.anonymous, one);
      for (const auto& [secret, evidence] : proofs.secrets) {
        for (const Evidence& one : evidence) AddCredential(own.secrets, secret, one);
      }
      for (const auto& [account, evidence] : proofs.accounts) {
        for (const Evidence& one : evidence) AddCredential(own.accounts, account, one);
      }
    }
  }
  all.push_back(content);
  for (const ContentIndex one : all) of_one_index_[one] = all;
}

void Truth::CalledPreloaded(ContentIndex content, Step now) {
  Image& image = images_[content];
  image.by_hand = now;
  image.stayed = !image.away;
  image.knowable = !image.away;
  image.closed = false;
}

void Truth::CalledNotPreloaded(ContentIndex content, bool for_good) {
  Image& image = images_[content];
  image.by_hand = 0;
  image.stayed = false;
  image.closed = for_good;
}

void Truth::WentAway(ContentIndex content) {
  Image& image = images_[content];
  Forget(image);
  image.stayed = false;
  image.away = true;
}

void Truth::Retagged(ContentIndex content) {
  Image& image = images_[content];
  if (!image.judged && image.recorded == 0) image.retagged_unjudged = true;
}

void Truth::Forget(Image& image) {
  image.knowable = false;
  image.known_proofs.clear();
  image.private_names.clear();
}

void Truth::Forgotten() {
  for (auto& [content, image] : images_) Forget(image);
}

void Truth::ForgottenUnjudged() {
  for (auto& [content, image] : images_) {
    if (!image.judged && image.recorded == 0) Forget(image);
  }
}

void Truth::RanUnseen() {
  for (auto& [content, image] : images_) {
    if (!image.judged && image.recorded == 0) image.first_pull_late = true;
  }
}

bool Truth::MayHave(ContentIndex content, const CopyName& name, const Proof& proof,
                    Means means) const {
  // Lists without handlers are the default's.
  if (means == Means::kAnyway && CameByHand(content) && name.runtime_handler.empty()) {
    return true;
  }
  const Image* const image = Find(content);
  if (image == nullptr) return false;
  const auto proofs = image->proofs.find(name);
  return proofs != image->proofs.end() && Match(proofs->second, proof, Kind::kTrue);
}

bool Truth::MustKnow(ContentIndex content, const CopyName& name, const Proof& proof) const {
  const Image* const image = Find(content);
  if (image == nullptr) return false;
  if (image->stayed && image->knowable && !image->closed && name.runtime_handler.empty())
    return true;
  const auto proofs = image->known_proofs.find(name);
  return proofs != image->known_proofs.end() && Match(proofs->second, proof, Kind::kKnown);
}

bool Truth::HasVery(ContentIndex content, const CopyName& name,
                    const ImagePullSecret& secret) const {
  const Image* const image = Find(content);
  if (image == nullptr) return false;
  const auto proofs = image->known_proofs.find(name);
  if (proofs == image->known_proofs.end()) return false;
  const auto& secrets = proofs->second.secrets;
  return std::any_of(secrets.begin(), secrets.end(),
                     [&](const auto& one) { return one.what == secret; });
}

bool Truth::IsPrivate(ContentIndex content, const CopyName& name) const {
  const Image* const image = Find(content);
  return image != nullptr && image->private_names.contains(name);
}

bool Truth::CameByHand(ContentIndex content) const {
  const Image* const image = Find(content);
  return image != nullptr && image->by_hand != 0 && !image->closed;
}

bool Truth::IsClosed(ContentIndex content) const {
  const Image* const image = Find(content);
  return image != nullptr && image->closed;
}

bool Truth::IsRecorded(ContentIndex content) const {
  const Image* const image = Find(content);
  return image != nullptr && image->recorded != 0;
}

bool Truth::IsUnrecorded(ContentIndex content) const {
  const Image* const image = Find(content);
  return image != nullptr && image->by_hand == 0 && image->recorded == 0;
}

Limit Truth::WhyOpen(ContentIndex content) const {
  const Image* const image = Find(content);
  if (image != nullptr && image->presumed) return Limit::kPresumed;
  if (image == nullptr || image->pulled == 0) return Limit::kNone;
  if (image->left_out) return Limit::kPartialList;
  if (image->retagged_unjudged) return Limit::kRetagged;
  if (image->first_pull_lost) return Limit::kLost;
  return image->first_pull_late ? Limit::kLate : Limit::kNone;
}

std::string_view Truth::WhyClosed(ContentIndex content, const CopyName& name,
                                  const Proof& proof) const {
  if (IsClosed(content)) return "an operator closed it";
  Truth ageless = *this;
  ageless.max_age_ = std::chrono::seconds(0);
  if (ageless.MayHave(content, name, proof, Means::kByProof)) return "it was proven too long ago";
  const auto speaks = [&](const Forgetting& one) {
    return one.content == content || (proof.secret && SpeaksOf(one.what, *proof.secret)) ||
           (proof.account && SpeaksOf(one.what, *proof.account));
  };
  if (std::any_of(forgettings_.begin(), forgettings_.end(), speaks)) return "it was forgotten";
  return IsRecorded(content) ? "others pulled it" : "nobody is known to have pulled it";
}

std::string Truth::Describe(ContentIndex content) const {
  const Image* const image = Find(content);
  if (image == nullptr) return "nothing ever brought it";
  std::string text = image->by_hand != 0 ? "brought by hand" : "brought by pulls only";
  if (image->closed) text += ", closed by an operator";
  if (image->recorded == 0) text += ", no pull of it recorded";
  for (const auto& [name, proofs] : image->proofs) {
    text += "; under " + name.name + (name.runtime_handler.empty() ? ":" : " for kata:");
    const auto tell = [&](const std::string& who, const std::vector<Evidence>& evidence) {
      text += " " + who;
      for (const Evidence& one : evidence) {
        text += " (step " + std::to_string(one.began) + ", " + std::to_string(clock_ - one.proven) +
                " s ago)";
      }
    };
    if (!proofs.anonymous.empty()) tell("anybody", proofs.anonymous);
    for (const auto& one : proofs.secrets) {
      tell(one.what.namespace_name + "/" + one.what.uid + "/" + one.what.credential_hash,
           one.evidence);
    }
    for (const auto& one : proofs.accounts) {
      tell(one.what.namespace_name + "/" + one.what.name + "/" + one.what.uid, one.evidence);
    }
  }
  return text;
}

}  // namespace waybill::simulation
