#include "tests/simulation/truth.h"

#include <algorithm>

namespace waybill::simulation {

namespace {

bool SameSecret(const ImagePullSecret& a, const ImagePullSecret& b) {
  return a.uid == b.uid && a.namespace_name == b.namespace_name && a.name == b.name;
}

}  // namespace

bool Truth::Proofs::Match(const Proof& proof) const {
  if (anonymous) return true;
  if (proof.secret) {
    for (const ImagePullSecret& known : secrets) {
      if (SameSecret(known, *proof.secret)) return true;
      if (known.credential_hash == proof.secret->credential_hash) return true;
    }
  }
  return proof.account &&
         std::find(accounts.begin(), accounts.end(), *proof.account) != accounts.end();
}

const Truth::Image* Truth::Find(ContentIndex content) const {
  const auto found = images_.find(content);
  return found == images_.end() ? nullptr : &found->second;
}

template <typename Predicate>
bool Truth::AnyOfIndex(ContentIndex content, Predicate holds) const {
  const auto others = of_one_index_.find(content);
  if (others == of_one_index_.end()) return holds(content);
  return std::any_of(others->second.begin(), others->second.end(), holds);
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

void Truth::BroughtByPull(ContentIndex content, bool was_there, bool late, Step now) {
  Image& image = images_[content];
  if (image.pulled == 0) image.first_pull_late = late;
  image.pulled = now;
  if (!was_there) image.stayed = false;
}

void Truth::Proven(ContentIndex content, const CopyName& name, const Proof& proof, Step now) {
  Image& image = images_[content];
  image.recorded = now;
  for (auto* all : {&image.proofs, &image.known_proofs}) {
    Proofs& proofs = (*all)[name];
    if (proof.anonymous) proofs.anonymous = true;
    if (proof.secret && std::find(proofs.secrets.begin(), proofs.secrets.end(), *proof.secret) ==
                            proofs.secrets.end()) {
      // A record keeps only the newest hash of a Secret. Two records may have one each.
      if (all == &image.known_proofs) {
        std::erase_if(proofs.secrets, [&](const ImagePullSecret& known) {
          return SameSecret(known, *proof.secret);
        });
      }
      proofs.secrets.push_back(*proof.secret);
    }
    if (proof.account && std::find(proofs.accounts.begin(), proofs.accounts.end(),
                                   *proof.account) == proofs.accounts.end()) {
      proofs.accounts.push_back(*proof.account);
    }
  }
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
    if (listed.contains(at->first)) {
      ++at;
      continue;
    }
    if (image.by_hand < token) {
      image.by_hand = 0;
      image.stayed = false;
    }
    const bool record_may_stay =
        AnyOfIndex(at->first, [&](ContentIndex one) { return listed.contains(one); });
    if (image.recorded < token && !record_may_stay) {
      image.recorded = 0;
      image.proofs.clear();
      image.known_proofs.clear();
    }
    if (image.pulled < token) {
      image.pulled = 0;
      image.first_pull_late = false;
      image.judged = false;
      image.left_out = false;
      image.retagged_unjudged = false;
    }
    const bool nothing_left = image.by_hand == 0 && image.recorded == 0 && image.pulled == 0;
    at = nothing_left ? images_.erase(at) : std::next(at);
  }
}

void Truth::OfOneIndex(ContentIndex a, ContentIndex b) {
  std::vector<ContentIndex> all = of_one_index_[a];
  if (all.empty()) all.push_back(a);
  all.push_back(b);
  for (const ContentIndex one : all) of_one_index_[one] = all;
}

void Truth::CalledPreloaded(ContentIndex content, Step now) {
  Image& image = images_[content];
  image.by_hand = now;
  image.stayed = true;
  image.knowable = true;
}

void Truth::CalledNotPreloaded(ContentIndex content) {
  Image& image = images_[content];
  image.by_hand = 0;
  image.stayed = false;
}

void Truth::Retagged(ContentIndex content) {
  Image& image = images_[content];
  if (!image.judged && image.recorded == 0) image.retagged_unjudged = true;
}

void Truth::Forget(Image& image) {
  image.knowable = false;
  image.known_proofs.clear();
}

void Truth::Forgotten() {
  for (auto& [content, image] : images_) Forget(image);
}

void Truth::ForgottenUnjudged() {
  for (auto& [content, image] : images_) {
    if (!image.judged && image.recorded == 0) Forget(image);
  }
}

bool Truth::MayHave(ContentIndex content, const CopyName& name, const Proof& proof) const {
  const Image* const image = Find(content);
  // Lists without handlers are the default's.
  if (image != nullptr && image->by_hand != 0 && name.runtime_handler.empty()) return true;
  return AnyOfIndex(content, [&](ContentIndex one) {
    const Image* const its = Find(one);
    if (its == nullptr) return false;
    const auto proofs = its->proofs.find(name);
    return proofs != its->proofs.end() && proofs->second.Match(proof);
  });
}

bool Truth::MustKnow(ContentIndex content, const CopyName& name, const Proof& proof) const {
  const Image* const image = Find(content);
  if (image == nullptr) return false;
  if (image->stayed && image->knowable && name.runtime_handler.empty()) return true;
  const auto proofs = image->known_proofs.find(name);
  return proofs != image->known_proofs.end() && proofs->second.Match(proof);
}

bool Truth::HasVery(ContentIndex content, const CopyName& name,
                    const ImagePullSecret& secret) const {
  const Image* const image = Find(content);
  if (image == nullptr) return false;
  const auto proofs = image->known_proofs.find(name);
  if (proofs == image->known_proofs.end()) return false;
  const std::vector<ImagePullSecret>& secrets = proofs->second.secrets;
  return std::find(secrets.begin(), secrets.end(), secret) != secrets.end();
}

bool Truth::CameByHand(ContentIndex content) const {
  const Image* const image = Find(content);
  return image != nullptr && image->by_hand != 0;
}

bool Truth::IsUnrecorded(ContentIndex content) const {
  const Image* const image = Find(content);
  return image != nullptr && image->by_hand == 0 && image->recorded == 0;
}

Limit Truth::WhyOpen(ContentIndex content) const {
  const Image* const image = Find(content);
  if (image == nullptr || image->pulled == 0) return Limit::kNone;
  if (image->left_out) return Limit::kPartialList;
  if (image->retagged_unjudged) return Limit::kRetagged;
  return image->first_pull_late ? Limit::kLate : Limit::kNone;
}

std::string Truth::Describe(ContentIndex content) const {
  const Image* const image = Find(content);
  if (image == nullptr) return "nothing ever brought it";
  std::string text = image->by_hand != 0 ? "brought by hand" : "brought by pulls only";
  if (image->recorded == 0) text += ", no pull of it recorded";
  for (const auto& [name, proofs] : image->proofs) {
    text += "; under " + name.name + (name.runtime_handler.empty() ? ":" : " for kata:");
    if (proofs.anonymous) text += " anybody";
    for (const ImagePullSecret& secret : proofs.secrets) text += " " + secret.namespace_name;
    for (const ImagePullServiceAccount& account : proofs.accounts) {
      text += " " + account.namespace_name + "/" + account.name;
    }
  }
  return text;
}

}  // namespace waybill::simulation
