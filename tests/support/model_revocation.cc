// What the model makes of forgetting and of ages (waybill/values.h). It forgets in every record
// at once.

#include <algorithm>
#include <set>
#include <utility>

#include "store/base/policy.h"
#include "tests/support/model.h"
#include "tests/support/model_proofs.h"

namespace waybill::testing {

namespace {

constexpr std::chrono::seconds kForEver{0};
constexpr std::int64_t kHour = 3600;
constexpr std::int64_t kDay = 86400;
constexpr std::int64_t kSecond = 1'000'000'000;

template <typename T>
constexpr bool kIsSecret = requires(const T& one) {
  one.credential_hash;
};

template <typename T>
CredentialName NameOf(const T& credential) {
  return {credential.namespace_name, credential.name, credential.uid};
}

bool IsNamed(const CredentialName& who, const CredentialName& one) {
  return who.namespace_name == one.namespace_name && who.name == one.name &&
         (who.uid.empty() || who.uid == one.uid);
}

// Whether the revocation speaks of the credential, whatever image it opens.
template <typename T>
bool SpeaksOf(const Revocation& what, const T& credential) {
  if (what.kind == RevocationKind::kNamespace) {
    return what.who.namespace_name == credential.namespace_name;
  }
  if constexpr (kIsSecret<T>) {
    if (what.kind == RevocationKind::kCredential) {
      return what.credential_hash == credential.credential_hash;
    }
    return what.kind == RevocationKind::kSecret && IsNamed(what.who, NameOf(credential));
  } else {
    return what.kind == RevocationKind::kServiceAccount && IsNamed(what.who, NameOf(credential));
  }
}

bool SameIdentity(const Revocation& a, const Revocation& b) {
  return a.kind == b.kind && a.who == b.who && a.image_ref == b.image_ref &&
         a.runtime_handler == b.runtime_handler && a.credential_hash == b.credential_hash;
}

// Drops credentials, and with its last one the entry. Whether there were any.
template <typename Gone, typename NodeGone>
bool Drop(ImagePulledRecord& record, const Gone& gone, const NodeGone& node_gone) {
  bool any = false;
  for (auto at = record.credential_mapping.begin(); at != record.credential_mapping.end();) {
    ImagePullCredentials& entry = at->second;
    bool lost = std::erase_if(entry.kubernetes_secrets, gone) > 0;
    lost = std::erase_if(entry.kubernetes_service_accounts, gone) > 0 || lost;
    if (entry.node_pods_accessible && node_gone(entry.node_pods_proof)) {
      entry.node_pods_accessible = false;
      lost = true;
    }
    any = any || lost;
    at = lost && entry.empty() ? record.credential_mapping.erase(at) : std::next(at);
  }
  return any;
}

// What ends by itself. Whether there was any.
bool DropEnding(ImagePulledRecord& record) {
  return Drop(
      record, [](const auto& one) { return one.proof.good_until.has_value(); },
      [](const Proof& proof) { return proof.good_until.has_value(); });
}

}  // namespace

// --- Ages

Model::Times Model::TimesNow() const {
  Times now = times_;
  std::int64_t since = 0;
  if (boot_.boot_id != BootTime().boot_id) {
    const bool same = times_.boot.boot_id == boot_.boot_id;
    if (same) since = std::max<std::int64_t>(boot_.nanoseconds - times_.boot.nanoseconds, 0);
    if (!same && times_.boot.boot_id != BootTime().boot_id) {
      since = boot_.nanoseconds;
      now.boot_began = times_.ran + std::min<std::int64_t>(since, 1);
    }
    if (!same || since > 0) now.boot = boot_;
  }
  now.ran += since;
  now.wall = now_.seconds * kSecond + now_.nanoseconds;
  const bool is_first = times_.wall == 0;
  now.ages = is_first ? now.wall : times_.ages + std::max(since, now.wall - times_.wall);
  now.ends = std::max(now.wall, times_.ends + since);
  if (now.ends >= now.wall + (kDay + 1) * kSecond) now.ends = now.wall;
  return now;
}

std::uint64_t Model::RanSeconds() const {
  return static_cast<std::uint64_t>(TimesNow().ran / kSecond + 1);
}

bool Model::MustKeepTime() const {
  const std::int64_t since = TimesNow().ages - times_.ages;
  const bool ages = max_age_ != kForEver;
  if (ages && since >= std::min<std::int64_t>(max_age_.count(), kHour) * kSecond) return true;
  return since >= kHour * kSecond && AnyEnds();
}

bool Model::IsPastAge(const Proof& proof) const {
  const Times now = TimesNow();
  if (proof.good_until && now.ends / kSecond >= proof.good_until->seconds) return true;
  if (max_age_ == kForEver) return false;
  const std::int64_t age = now.ages / kSecond - (proof.proven ? proof.proven->seconds : 0);
  return !proof.proven || age < 0 || age > max_age_.count();
}

// The very name, else the longest prefix, else the rest.
bool Model::IsCheckedEnough(const std::string& name, const Proof& proof) const {
  const ProofRule* chosen = nullptr;
  for (const ProofRule& rule : policy_.proofs) {
    const std::string& pattern = rule.pattern;
    if (pattern == name) {
      chosen = &rule;
      break;
    }
    const bool is_prefix = pattern.ends_with("/*");
    if (!pattern.empty() && !is_prefix) continue;
    if (is_prefix && !name.starts_with(pattern.substr(0, pattern.size() - 1))) continue;
    if (chosen == nullptr || pattern.size() > chosen->pattern.size()) chosen = &rule;
  }
  return chosen == nullptr || chosen->proofs == Proofs::kAny ||
         proof.checker == VerifiedBy::kRegistry;
}

bool Model::AnyEnds() const {
  return std::any_of(records_.begin(), records_.end(), [](const auto& one) {
    ImagePulledRecord record = one.second;
    return DropEnding(record);
  });
}

ImagePulledRecord Model::Counting(ImagePulledRecord record) const {
  // Under each name by its own rule.
  ImagePulledRecord counting = record;
  counting.credential_mapping.clear();
  if (!counting.absent_since) counting.absent_ran = 0;
  for (const auto& [name, entry] : record.credential_mapping) {
    ImagePulledRecord alone;
    alone.credential_mapping[name] = entry;
    Drop(
        alone,
        [&]<typename T>(const T& one) {
          return !IsCheckedEnough(name, one.proof) || IsPastAge(one.proof);
        },
        [&](const Proof& proof) { return !IsCheckedEnough(name, proof) || IsPastAge(proof); });
    counting.credential_mapping.merge(alone.credential_mapping);
  }
  return counting;
}

// --- Proofs

// Without an ID it may be any that runs, or else any of unknown end. 0: not on record.
std::uint64_t Model::PullBegan(const KnownImage& image, const std::string& stored,
                               PullId id) const {
  for (const PullState state : {PullState::kRunning, PullState::kUnknown}) {
    std::optional<std::uint64_t> oldest;
    for (const ModelPull& one : pulls_) {
      const UnresolvedPull& pull = one.pull;
      if (pull.anything || pull.nothing_at != 0) continue;
      if (pull.image != image.image || pull.runtime_handler != stored) continue;
      if (id.value != 0 ? pull.id != id : pull.state != state) continue;
      oldest = std::min(oldest.value_or(pull.stamp), pull.stamp);
    }
    if (oldest) return *oldest;
  }
  return 0;
}

std::uint64_t Model::PullOfNameBegan(const std::string& name, const std::string& stored) const {
  std::uint64_t oldest = 0;
  for (const ModelPull& one : pulls_) {
    if (one.pull.state != PullState::kRunning || one.pull.runtime_handler != stored) continue;
    if (one.image.name != name) continue;
    oldest = oldest == 0 ? one.pull.stamp : std::min(oldest, one.pull.stamp);
  }
  return oldest;
}

ImagePullCredentials Model::Proven(ImagePullCredentials credentials, std::uint64_t began,
                                   const ProofTerms& terms) const {
  const Proof proof{Timestamp{TimesNow().ages / kSecond, 0}, began, terms.checker,
                    terms.good_until};
  credentials.node_pods_proof = proof;
  credentials.node_pods_proof.checker = VerifiedBy::kNobody;
  for (auto& secret : credentials.kubernetes_secrets) secret.proof = proof;
  for (auto& account : credentials.kubernetes_service_accounts) account.proof = proof;
  // It may have been made with what the truth did not have.
  if (last_truth_ != 0 && began <= last_truth_) {
    credentials.kubernetes_secrets.clear();
    credentials.kubernetes_service_accounts.clear();
  }
  return credentials;
}

// Of a record that is put whole.
void Model::GiveProofs(const ImagePulledRecord& before, ImagePulledRecord& put,
                       const ProofTerms& terms) const {
  const auto better = [&](const Proof& a, const Proof& b) { return Better(a, b); };
  const auto given = put.credential_mapping;
  for (const auto& [name, credentials] : given) {
    ImagePullCredentials& entry = put.credential_mapping[name];
    ImagePullCredentials stored;
    if (before.credential_mapping.contains(name)) stored = before.credential_mapping.at(name);
    const std::uint64_t began = PullOfNameBegan(name, put.runtime_handler);
    Proof fresh;
    if (began != 0) {
      const Times now = TimesNow();
      const std::optional<Timestamp>& written = put.last_updated;
      const std::int64_t at =
          written ? written->seconds * kSecond + written->nanoseconds : now.wall;
      const std::int64_t ago = std::max<std::int64_t>(now.wall - at, 0);
      fresh = {Timestamp{(now.ages - ago) / kSecond, 0}, began, terms.checker, terms.good_until};
    }
    // A pull without credentials takes the place of none that a pod needed.
    if (entry.node_pods_accessible && MayBeTheNodes(before, name, terms)) {
      put.credential_mapping.erase(name);
      const bool other_manifest = !put.manifest_digest.empty() && !before.manifest_digest.empty() &&
                                  put.manifest_digest != before.manifest_digest;
      const bool stays = before.credential_mapping.contains(name) && !before.absent_since &&
                         !other_manifest && put.guest_platform == before.guest_platform;
      if (stays) put.credential_mapping[name] = stored;
      continue;
    }
    const bool may_be_gone = last_truth_ != 0 && began <= last_truth_;

    const auto secret_counts = [&](const ImagePullSecret& one) {
      return IsCheckedEnough(name, one.proof) && !IsPastAge(one.proof);
    };
    std::erase_if(entry.kubernetes_secrets, [&](ImagePullSecret& secret) {
      const auto& all = stored.kubernetes_secrets;
      const auto same = std::find_if(all.begin(), all.end(), [&](const ImagePullSecret& one) {
        return one == secret && secret_counts(one);
      });
      const bool by_coordinates = !IsHashForgotten(secret.credential_hash);
      const auto inherited =
          same != all.end() ? std::optional(same->proof)
                            : FindProofOfMatch(all, secret, secret_counts, better, by_coordinates);
      secret.proof = inherited.value_or(fresh);
      return !inherited && may_be_gone;
    });
    // What was forgotten does not take the place of what was not.
    for (ImagePullSecret& secret : entry.kubernetes_secrets) {
      if (!IsForgotten(secret, put)) continue;
      for (const ImagePullSecret& one : stored.kubernetes_secrets) {
        if (!secret_counts(one) || !SameCoordinates(one, secret)) continue;
        secret = one;
        break;
      }
    }
    std::erase_if(entry.kubernetes_service_accounts, [&](ImagePullServiceAccount& account) {
      const auto& all = stored.kubernetes_service_accounts;
      const auto same = std::find_if(all.begin(), all.end(), [&](const auto& one) {
        return one == account && IsCheckedEnough(name, one.proof) && !IsPastAge(one.proof);
      });
      account.proof = same != all.end() ? same->proof : fresh;
      return same == all.end() && may_be_gone;
    });
    const bool still_open = stored.node_pods_accessible &&
                            IsCheckedEnough(name, stored.node_pods_proof) &&
                            !IsPastAge(stored.node_pods_proof);
    entry.node_pods_proof = still_open ? stored.node_pods_proof : fresh;
    entry.node_pods_proof.checker = VerifiedBy::kNobody;
  }
}

// --- Forgetting

void Model::PutRevocation(const Revocation& revocation) {
  for (Revocation& one : revocations_) {
    if (!SameIdentity(one, revocation)) continue;
    one.commit = std::max(one.commit, revocation.commit);
    one.since = std::max(one.since, revocation.since);
    one.ran = std::max(one.ran, revocation.ran);
    return;
  }
  revocations_.push_back(revocation);
}

// One for each digest of the image.
std::set<std::string> Model::SpellingsOf(const std::string& ref) const {
  std::set<std::string> spellings;
  for (const std::string& one : RefsOf(ref)) spellings.insert(SpellingOf(one));
  return spellings;
}

bool Model::IsImageForgotten(const Proof& proof, const ImagePulledRecord& of) const {
  const auto spellings = SpellingsOf(of.image_ref);
  return std::any_of(revocations_.begin(), revocations_.end(), [&](const Revocation& one) {
    return one.kind == RevocationKind::kImage && one.commit >= proof.pull_began &&
           one.runtime_handler == of.runtime_handler && spellings.contains(one.image_ref);
  });
}

template <typename T>
bool Model::IsForgotten(const T& credential, const ImagePulledRecord& of) const {
  return IsImageForgotten(credential.proof, of) ||
         std::any_of(revocations_.begin(), revocations_.end(), [&](const Revocation& one) {
           return one.commit >= credential.proof.pull_began && SpeaksOf(one, credential);
         });
}

bool Model::IsHashForgotten(const std::string& hash) const {
  return std::any_of(revocations_.begin(), revocations_.end(), [&](const Revocation& one) {
    return one.kind == RevocationKind::kCredential && one.credential_hash == hash;
  });
}

bool Model::DropForgotten(ImagePulledRecord& record) const {
  if (revocations_.empty()) return false;
  const ImagePulledRecord was = record;
  const bool any = Drop(
      record, [&](const auto& one) { return IsForgotten(one, record); },
      [&](const Proof& proof) { return IsImageForgotten(proof, record); });
  StaysPrivate(was, record);
  return any;
}

bool Model::DropForgottenOf(const CopyKey& copy, ImagePullCredentials& added) const {
  ImagePulledRecord alone{.image_ref = copy.first, .runtime_handler = copy.second};
  alone.credential_mapping[""] = added;
  DropForgotten(alone);
  const bool any = !alone.credential_mapping.empty();
  added = alone.credential_mapping[""];
  return any;
}

// What leaves, and how many Secrets with the same hash stay. `image`: with its revocation.
template <typename Leaves>
RevokeReport Model::Count(const Leaves& leaves, const Revocation* image) const {
  RevokeReport report;
  std::set<std::string> hashes;
  for (const auto& [copy, record] : records_) {
    bool loses = false;
    for (const auto& [name, entry] : record.credential_mapping) {
      for (const auto& secret : entry.kubernetes_secrets) {
        if (!leaves(secret, record)) continue;
        loses = true;
        ++report.secrets;
        if (!secret.credential_hash.empty()) hashes.insert(secret.credential_hash);
      }
      for (const auto& account : entry.kubernetes_service_accounts) {
        if (!leaves(account, record)) continue;
        loses = true;
        ++report.service_accounts;
      }
      if (image != nullptr && entry.node_pods_accessible && leaves(entry, record)) {
        loses = true;
        ++report.node_pods;
      }
    }
    report.records += loses ? 1U : 0U;
  }
  if (image != nullptr) return report;
  for (const auto& [copy, record] : records_) {
    for (const auto& [name, entry] : record.credential_mapping) {
      for (const auto& secret : entry.kubernetes_secrets) {
        if (hashes.contains(secret.credential_hash) && !leaves(secret, record)) {
          ++report.equal_hashes;
        }
      }
    }
  }
  return report;
}

RevokeReport Model::Forget(Revocation what) {
  const bool is_image = what.kind == RevocationKind::kImage;
  // Also of a handler that is gone: its records stay.
  if (is_image) {
    what.runtime_handler = Stored(what.runtime_handler).value_or(what.runtime_handler);
  }
  what.commit = writes_ + 1;
  what.since = now_;
  what.ran = static_cast<std::uint64_t>(TimesNow().ran);
  const auto spellings = is_image ? SpellingsOf(what.image_ref) : std::set<std::string>{""};
  const auto is_its = [&](const ImagePulledRecord& record) {
    return record.runtime_handler == what.runtime_handler &&
           spellings.contains(SpellingOf(ImageOf(record.image_ref)));
  };
  const auto leaves = [&]<typename T>(const T& one, const ImagePulledRecord& of) {
    if (is_image) return is_its(of);
    if constexpr (requires { one.proof; }) return SpeaksOf(what, one);
    return false;
  };
  RevokeReport report = Count(leaves, is_image ? &what : nullptr);
  report.stored = true;
  for (const std::string& spelling : spellings) {
    what.image_ref = spelling;
    PutRevocation(what);
  }
  for (auto& [copy, record] : records_) {
    const bool loses = Drop(
        record, [&](const auto& one) { return leaves(one, record); },
        [&](const Proof&) { return is_image && is_its(record); });
    if (loses) record.stamp = writes_ + 1;
  }
  changed_ = true;
  Written();
  return report;
}

bool Model::MentionsCredentials() const {
  return std::any_of(records_.begin(), records_.end(), [](const auto& one) {
    const auto& mapping = one.second.credential_mapping;
    return std::any_of(mapping.begin(), mapping.end(), [](const auto& entry) {
      return !entry.second.kubernetes_secrets.empty() ||
             !entry.second.kubernetes_service_accounts.empty();
    });
  });
}

std::optional<RevokeMissingReport> Model::Reconcile(const ExistingCredentials& truth,
                                                    std::uint64_t token) {
  if (token < last_truth_) return std::nullopt;
  const auto exists = [&]<typename T>(const T& one) {
    const auto& all = kIsSecret<T> ? truth.secrets : truth.service_accounts;
    return std::any_of(all.begin(), all.end(), [&](const CredentialName& who) {
      return IsNamed(who, NameOf(one)) ||
             (one.uid.empty() && who.name == one.name && who.namespace_name == one.namespace_name);
    });
  };
  const auto leaves = [&]<typename T>(const T& one, const ImagePulledRecord&) {
    if constexpr (requires { one.proof; }) return !exists(one) && one.proof.pull_began <= token;
    return false;
  };
  RevokeMissingReport report;
  report.forgotten = Count(leaves, nullptr);
  std::set<std::pair<RevocationKind, CredentialName>> known;
  std::set<std::pair<RevocationKind, CredentialName>> unknown;
  std::set<std::pair<RevocationKind, CredentialName>> gone;
  const auto sort = [&]<typename T>(const T& one, const ImagePulledRecord& of) {
    const auto kind = kIsSecret<T> ? RevocationKind::kSecret : RevocationKind::kServiceAccount;
    (exists(one) ? known : unknown).emplace(kind, NameOf(one));
    if (leaves(one, of)) gone.emplace(kind, NameOf(one));
  };
  for (const auto& [copy, record] : records_) {
    for (const auto& [name, entry] : record.credential_mapping) {
      for (const auto& secret : entry.kubernetes_secrets) sort(secret, record);
      for (const auto& account : entry.kubernetes_service_accounts) sort(account, record);
    }
  }
  report.known = known.size();
  report.gone = gone.size();
  report.newer = unknown.size() - gone.size();
  report.forgotten.stored = !gone.empty();
  for (const auto& [kind, who] : gone) {
    Revocation one;
    one.kind = kind;
    one.who = who;
    one.commit = token;
    one.since = now_;
    one.ran = static_cast<std::uint64_t>(TimesNow().ran);
    PutRevocation(one);
  }
  last_truth_ = token;
  for (auto& [copy, record] : records_) {
    const bool loses = Drop(
        record, [&](const auto& one) { return leaves(one, record); },
        [](const Proof&) { return false; });
    if (loses) record.stamp = writes_ + 1;
  }
  changed_ = true;
  Written();
  return report;
}

// Kept while the node runs for their time, until another boot, as long as an older backup, and as
// long as a pull that began before is open; those of hashes also as long as a Secret might be
// rotated to them.
void Model::DropOldRevocations(std::chrono::seconds kept, std::uint64_t oldest) {
  for (const ModelPull& one : pulls_) {
    if (one.pull.nothing_at == 0) oldest = std::min(oldest, one.pull.stamp);
  }
  const bool any_secret = std::any_of(records_.begin(), records_.end(), [](const auto& one) {
    const auto& mapping = one.second.credential_mapping;
    return std::any_of(mapping.begin(), mapping.end(),
                       [](const auto& entry) { return !entry.second.kubernetes_secrets.empty(); });
  });
  const auto gone = std::erase_if(revocations_, [&](const Revocation& one) {
    const bool is_hash = one.kind == RevocationKind::kCredential;
    const Times now = TimesNow();
    const auto made = static_cast<std::int64_t>(one.ran);
    return now.ran - made > kept.count() * kSecond && now.boot_began > made &&
           oldest > one.commit && !(is_hash && any_secret);
  });
  if (gone > 0) Written();
}

}  // namespace waybill::testing
