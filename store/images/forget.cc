#include "store/images/forget.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "store/base/function_ref.h"
#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"
#include "store/images/pull_row.h"
#include "store/images/revoked.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

bool IsNamed(const CredentialName& who, const CredentialName& one) {
  return who.namespace_name == one.namespace_name && who.name == one.name &&
         (who.uid.empty() || who.uid == one.uid);
}

template <typename T>
CredentialName NameOf(const T& credential) {
  return {credential.namespace_name, credential.name, credential.uid};
}

// What a revocation is about, apart from when it was proven.
struct Covers {
  const Revocation& what;

  bool operator()(const ImagePullSecret& secret) const {
    return CoversAllIn(secret.namespace_name) ||
           (what.kind == RevocationKind::kSecret && IsNamed(what.who, NameOf(secret))) ||
           (what.kind == RevocationKind::kCredential &&
            what.credential_hash == secret.credential_hash);
  }
  bool operator()(const ImagePullServiceAccount& account) const {
    return CoversAllIn(account.namespace_name) ||
           (what.kind == RevocationKind::kServiceAccount && IsNamed(what.who, NameOf(account)));
  }
  bool node_pods() const { return what.kind == RevocationKind::kImage; }

 private:
  bool CoversAllIn(std::string_view namespace_name) const {
    return what.kind == RevocationKind::kImage ||
           (what.kind == RevocationKind::kNamespace && what.who.namespace_name == namespace_name);
  }
};

// What leaves the records, and what stays of the same hashes.
struct Tally {
  RevokeReport report;
  std::unordered_set<std::string> hashes;  // of Secrets that leave
  // The other hashes in these records, and how often.
  std::unordered_map<std::string, std::uint64_t> stay;
  std::vector<Key16> records;  // that were looked at

  // Returns whether the record loses anything.
  template <typename IsForgotten>
  bool Count(const Key16& key, const ImageRow& row, const IsForgotten& is_forgotten,
             bool node_pods) {
    const RevokeReport before = report;
    for (const auto& [name, entry] : row.pulled->entries) {
      if (node_pods && entry.node_pods_accessible) ++report.node_pods;
      for (const ImagePullSecret& secret : entry.kubernetes_secrets) {
        const bool leaves = is_forgotten(secret);
        if (leaves) ++report.secrets;
        if (secret.credential_hash.empty()) continue;
        if (leaves) {
          hashes.insert(secret.credential_hash);
        } else {
          ++stay[secret.credential_hash];
        }
      }
      for (const auto& account : entry.kubernetes_service_accounts) {
        if (is_forgotten(account)) ++report.service_accounts;
      }
    }
    records.push_back(key);
    const bool loses = report.secrets != before.secrets ||
                       report.service_accounts != before.service_accounts ||
                       report.node_pods != before.node_pods;
    if (loses) ++report.records;
    return loses;
  }
};

// nullopt: there is none, or it can't be read, and so opens nothing.
Result<std::optional<ImageRow>> RecordUnder(const StoreTxn& txn, const Key16& key) {
  auto payload = txn.Get(Table::kImages, key);
  if (!payload && payload.error().code != ErrorCode::kDamaged) return payload.error();
  auto row = payload && *payload ? DecodeImage(**payload) : std::nullopt;
  return row && row->pulled ? std::move(row) : std::nullopt;
}

// Each record with its key. One that can't be read opens nothing.
using VisitRecord = FunctionRef<void(const Key16& key, const ImageRow& row)>;
Result<void> ForEachRecord(const StoreTxn& txn, VisitRecord visit) {
  return txn.ForEach(Table::kImages, [&](const Key16& key, Payload payload) -> Result<bool> {
    if (payload.empty() || !ImageView(payload).HasEntries()) return true;
    const auto row = DecodeImage(payload);
    if (row && row->pulled) visit(key, *row);
    return true;
  });
}

// How long the node has run, in nanoseconds.
std::uint64_t Ran(const StoreTxn& txn) {
  return static_cast<std::uint64_t>(txn.clocks().ran.count());
}

// Secrets with one of the hashes that leave, which stay themselves.
template <typename IsForgotten>
Result<std::uint64_t> CountEqualHashes(const StoreTxn& txn, Tally& tally,
                                       const IsForgotten& is_forgotten) {
  std::uint64_t count = 0;
  if (tally.hashes.empty()) return count;
  std::sort(tally.records.begin(), tally.records.end());
  for (const std::string& hash : tally.hashes) {
    if (const auto at = tally.stay.find(hash); at != tally.stay.end()) count += at->second;
  }
  TRY(ForEachRecord(txn, [&](const Key16& key, const ImageRow& row) {
    if (std::binary_search(tally.records.begin(), tally.records.end(), key)) return;
    for (const auto& [name, entry] : row.pulled->entries) {
      for (const ImagePullSecret& secret : entry.kubernetes_secrets) {
        if (tally.hashes.contains(secret.credential_hash) && !is_forgotten(secret)) ++count;
      }
    }
  }));
  return count;
}

// Whether any record has a Secret that is not forgotten.
Result<bool> AnySecret(const Images& images) {
  bool any = false;
  TRY(images.ForEach([&](const ImageRow* stored) -> Result<bool> {
    if (stored == nullptr || !stored->pulled) return true;
    ImageRow row = *stored;
    if (images.txn().state().unfinished != 0) TRY(LeaveOutRevoked(images, row));
    any = std::ranges::any_of(row.pulled->entries, [](const auto& one) {
      return !one.second.kubernetes_secrets.empty();
    });
    return !any;
  }));
  return any;
}

// A record that stays as it is keeps its stamp.
Result<void> StoreWithoutForgotten(Images& images, const Key16& key) {
  auto row = TRY(RecordUnder(images.txn(), key));
  if (!row) return {};
  const auto loses = TRY(LeaveOutRevoked(images, *row));
  if (!loses) return {};
  return images.Put(*std::move(row), Images::Confirms::kYes, Images::Room::kReserve);
}

Error Missing(std::string_view what) {
  return {ErrorCode::kInvalidArgument,
          "the " + std::string(what) + " is empty; nothing was changed",
          "say what is to be forgotten"};
}

Result<void> CheckName(const CredentialName& who, bool has_name) {
  if (who.namespace_name.empty()) return Missing("namespace");
  if (has_name && who.name.empty()) return Missing("name");
  for (const auto& [what, text] :
       {std::pair<std::string_view, const std::string&>{"namespace", who.namespace_name},
        {"name", who.name},
        {"UID", who.uid}}) {
    if (auto r = CheckLength(what, text, kMaxCoordinateBytes); !r) return r;
  }
  return {};
}

// What exists, for lookups.
class Truth {
 public:
  explicit Truth(const ExistingCredentials& truth) {
    Add(RevocationKind::kSecret, truth.secrets);
    Add(RevocationKind::kServiceAccount, truth.service_accounts);
  }
  // A credential without a UID exists if its name does.
  bool Has(RevocationKind kind, const CredentialName& who) const {
    if (!who.uid.empty() && exact_.contains(KeyOf(kind, who))) return true;
    const std::string name = KeyOf(kind, {who.namespace_name, who.name, {}});
    return who.uid.empty() ? names_.contains(name) : any_uid_.contains(name);
  }
  // One string for each credential.
  static std::string KeyOf(RevocationKind kind, const CredentialName& who) {
    std::string key(1, static_cast<char>(kind));
    for (const std::string& part : {std::cref(who.namespace_name), std::cref(who.name)}) {
      key += std::to_string(part.size());
      key += ':';
      key += part;
    }
    return key += who.uid;
  }

 private:
  void Add(RevocationKind kind, const std::vector<CredentialName>& all) {
    for (const CredentialName& who : all) {
      std::string name = KeyOf(kind, {who.namespace_name, who.name, {}});
      if (who.uid.empty()) {
        any_uid_.insert(name);
      } else {
        exact_.insert(KeyOf(kind, who));
      }
      names_.insert(std::move(name));
    }
  }

  std::unordered_set<std::string> exact_;
  std::unordered_set<std::string> any_uid_;
  std::unordered_set<std::string> names_;
};

constexpr RevocationKind KindOf(const ImagePullSecret&) { return RevocationKind::kSecret; }
constexpr RevocationKind KindOf(const ImagePullServiceAccount&) {
  return RevocationKind::kServiceAccount;
}

template <typename Visit>
void ForEachCredential(const Credentials& entries, const Visit& visit) {
  for (const auto& [name, entry] : entries) {
    for (const ImagePullSecret& secret : entry.kubernetes_secrets) visit(secret);
    for (const auto& account : entry.kubernetes_service_accounts) visit(account);
  }
}

}  // namespace

Result<void> CheckForgettable(const Revocation& what) {
  switch (what.kind) {
    case RevocationKind::kSecret:
    case RevocationKind::kServiceAccount:
      return CheckName(what.who, true);
    case RevocationKind::kNamespace:
      return CheckName(what.who, false);
    case RevocationKind::kImage:
      if (what.image_ref.empty()) return Missing("image ref");
      return CheckLength("image ref", what.image_ref, kMaxImageRefBytes);
    case RevocationKind::kCredential:
      if (what.credential_hash.empty()) return Missing("credential hash");
      return CheckLength("credential hash", what.credential_hash, kMaxCoordinateBytes);
  }
  return Missing("kind of what is to be forgotten");
}

Result<RevokeReport> Forget(Images& images, Revocation what, std::size_t at_once) {
  StoreTxn& txn = images.txn();
  what.commit = txn.sequence();
  what.since = txn.now();
  what.ran = Ran(txn);
  what.unfinished = false;
  std::vector<Revocation> all{what};
  if (what.kind == RevocationKind::kImage) {
    // A pull of it may lie under a digest that two images have.
    std::set<std::string> subjects;
    const auto home = TRY(images.Home(what.image_ref));
    const auto texts = TRY(images.TextsOf(what.image_ref));
    // By the digest in either mode: the other may be next.
    for (const std::string& text : texts) subjects.insert(SpellingOf(text));
    TRY(images.ForEach([&](const ImageRow* row) -> Result<bool> {
      if (row == nullptr || !row->alias) return true;
      const auto& taken_for = row->alias->taken_for;
      if (std::ranges::find(taken_for, home) != taken_for.end()) subjects.insert(row->subject);
      return true;
    }));
    all.clear();
    for (const std::string& subject : subjects) {
      all.push_back(what);
      all.back().image_ref = subject;
    }
  }
  Tally tally;
  const Covers covers{what};
  std::vector<Key16> changed;
  const auto count = [&](const Key16& key, const ImageRow& row) {
    if (tally.Count(key, row, covers, covers.node_pods())) changed.push_back(key);
  };
  if (what.kind == RevocationKind::kImage) {
    const auto is_its = [&](const ImageRow& row) {
      return row.runtime_handler == what.runtime_handler &&
             std::ranges::any_of(all, [&, subject = SpellingOf(row.subject)](const auto& one) {
               return one.image_ref == subject;
             });
    };
    TRY(ForEachRecord(txn, [&](const Key16& key, const ImageRow& row) {
      if (is_its(row)) count(key, row);
    }));
  } else {
    TRY(ForEachRecord(txn, count));
  }
  RevokeReport& report = tally.report;
  // Even if nothing has it: a pull may be under way, a kubelet's file or a backup have it, and a
  // Secret be rotated to a hash.
  report.stored = true;
  if (what.kind != RevocationKind::kImage) {
    report.equal_hashes = TRY(CountEqualHashes(txn, tally, covers));
  }
  // Decisions do not look for an image's own revocation: its few rows lose it at once.
  const bool many = what.kind != RevocationKind::kImage && changed.size() > at_once;
  for (Revocation& one : all) {
    one.unfinished = many;
    TRY(PutRevocation(txn, one));
  }
  if (many) return report;
  for (const Key16& key : changed) TRY(StoreWithoutForgotten(images, key));
  return report;
}

Result<void> CheckTruth(const ExistingCredentials& truth) {
  if (truth.secrets.size() + truth.service_accounts.size() > kMaxTruth) {
    return Error{ErrorCode::kLimitExceeded,
                 "there are more than " + std::to_string(kMaxTruth) +
                     " Secrets and service accounts; nothing was changed"};
  }
  for (const auto* all : {&truth.secrets, &truth.service_accounts}) {
    for (const CredentialName& who : *all) TRY(CheckName(who, true));
  }
  return {};
}

Result<RevokeMissingReport> ReconcileWith(Images& images, const ExistingCredentials& truth,
                                          const ListToken& token, std::size_t at_once) {
  StoreTxn& txn = images.txn();
  TRY(CheckToken(txn, token, Hint::kBeginList));
  const std::uint64_t last_truth = txn.state().last_truth;
  if (token.commit < last_truth) {
    return Error{ErrorCode::kInvalidArgument,
                 "the token " + std::to_string(token.commit) +
                     " is older than that of the last truth, " + std::to_string(last_truth) +
                     "; nothing was changed",
                 "draw a token, then list what exists again"};
  }
  const Truth exists(truth);
  const auto is_newer = [&](const auto& credential) {
    return credential.proof.pull_began > token.commit;
  };
  const auto leaves = [&](const auto& credential) {
    return !is_newer(credential) && !exists.Has(KindOf(credential), NameOf(credential));
  };
  RevokeMissingReport report;
  Tally tally;
  std::unordered_set<std::string> known;
  std::unordered_set<std::string> newer;
  std::unordered_map<std::string, std::pair<RevocationKind, CredentialName>> gone;
  std::vector<Key16> changed;
  TRY(ForEachRecord(txn, [&](const Key16& key, const ImageRow& row) {
    bool all_known = true;
    ForEachCredential(row.pulled->entries, [&](const auto& credential) {
      const auto who = std::pair(KindOf(credential), NameOf(credential));
      std::string one = Truth::KeyOf(who.first, who.second);
      if (exists.Has(who.first, who.second)) {
        known.insert(std::move(one));
        return;
      }
      all_known = false;
      if (is_newer(credential)) {
        newer.insert(std::move(one));
      } else {
        gone.try_emplace(std::move(one), who);
      }
    });
    if (!all_known && tally.Count(key, row, leaves, false)) changed.push_back(key);
  }));
  report.known = known.size();
  report.gone = gone.size();
  for (const auto& [one, who] : gone) newer.erase(one);
  report.newer = newer.size();
  auto equal = TRY(CountEqualHashes(txn, tally, leaves));
  report.forgotten = tally.report;
  report.forgotten.equal_hashes = equal;
  report.forgotten.stored = !gone.empty();
  const bool many = changed.size() > at_once;
  for (const auto& [name, who] : gone) {
    Revocation one;
    std::tie(one.kind, one.who) = who;
    one.commit = token.commit;
    one.since = txn.now();
    one.ran = Ran(txn);
    one.unfinished = many;
    TRY(PutRevocation(txn, one));
  }
  // Even if nothing is gone. Pulls that began before it, also those of a backup that is put back,
  // what is queued to be written back, and the age of proofs depend on it.
  txn.state().last_truth = token.commit;
  txn.Touch();
  if (many) return report;
  for (const Key16& key : changed) TRY(StoreWithoutForgotten(images, key));
  return report;
}

Result<bool> FinishPart(Images& images, Unfinished& walk, std::size_t most) {
  StoreTxn& txn = images.txn();
  if (txn.state().unfinished == 0) return false;
  if (walk.left.empty()) {
    auto all = TRY(ReadRevocations(txn));
    std::erase_if(all, [](const Revocation& one) { return !one.unfinished; });
    walk = {.left = std::move(all), .next = Key16{}};
    if (walk.left.empty()) {
      txn.state().unfinished = 0;  // the count was wrong
      txn.Touch();
      return false;
    }
  }
  if (walk.next) {
    std::vector<Key16> keys;
    TRY(txn.ForEachFrom(Table::kImages, *walk.next, [&](const Key16& key, Payload) {
      keys.push_back(key);
      return Result<bool>(keys.size() < most);
    }));
    for (const Key16& key : keys) TRY(StoreWithoutForgotten(images, key));
    walk.next = keys.size() < most ? std::nullopt : std::optional(keys.back().Next());
    return true;
  }
  for (std::size_t done = 0; done < most && !walk.left.empty(); ++done) {
    Revocation finished = std::move(walk.left.back());
    walk.left.pop_back();
    auto stored = TRY(FindRevocation(txn, finished));
    // Forgotten once more meanwhile: again from the beginning.
    if (!stored || stored->commit != finished.commit) continue;
    finished.unfinished = false;
    TRY(PutRevocation(txn, finished));
  }
  return txn.state().unfinished != 0;
}

Result<bool> MentionsAny(const Images& images) {
  bool any = false;
  TRY(images.ForEach([&](const ImageRow* row) -> Result<bool> {
    if (row != nullptr && row->pulled) {
      ForEachCredential(row->pulled->entries, [&](const auto&) { any = true; });
    }
    return !any;
  }));
  return any;
}

Result<std::vector<Revocation>> OldRevocations(const Images& images, std::chrono::seconds kept,
                                               std::uint64_t oldest_backup) {
  const StoreTxn& txn = images.txn();
  auto all = TRY(ReadRevocations(txn));
  auto pulls = TRY(AllOpenPulls(txn));
  std::uint64_t oldest = oldest_backup;
  for (const UnresolvedPull& pull : pulls) {
    if (pull.nothing_at == 0) oldest = std::min(oldest, pull.stamp);
  }
  const Clocks now = txn.clocks();
  // A kubelet that began before still has in its memory what was forgotten, and writes it again.
  const std::chrono::nanoseconds kubelet_began = std::max(now.boot_ran, now.kubelet_ran);
  std::optional<bool> any_secret;
  std::vector<Revocation> old;
  for (Revocation& one : all) {
    const std::chrono::nanoseconds made(
        std::min(one.ran, static_cast<std::uint64_t>(kLongestRun.count())));
    bool is_needed =
        one.unfinished || now.ran - made <= kept || kubelet_began <= made || oldest <= one.commit;
    if (!is_needed && one.kind == RevocationKind::kCredential) {
      if (!any_secret) any_secret = TRY(AnySecret(images));
      is_needed = *any_secret;
    }
    if (!is_needed) old.push_back(std::move(one));
  }
  return old;
}

bool IsCovered(const Revocation& what, const ImagePulledRecord& record) {
  if (what.kind == RevocationKind::kImage) {
    return SpellingOf(what.image_ref) == SpellingOf(record.image_ref);
  }
  const Covers covers{what};
  bool any = false;
  ForEachCredential(record.credential_mapping, [&](const auto& one) { any = any || covers(one); });
  return any;
}

namespace {

class IsRemembered {
 public:
  explicit IsRemembered(const ReaderPool::Lease& snapshot) : snapshot_(snapshot) {}
  bool operator()(const std::string&, const Proof&) const { return true; }
  template <typename T>
  bool operator()(const std::string&, const T& one) const {
    return !IsForgotten(snapshot_, one);
  }

 private:
  const ReaderPool::Lease& snapshot_;
};

}  // namespace

void LeaveWhatCounts(const ReaderPool::Lease& snapshot, const VerificationPolicy& policy,
                     const Aging& aging, PulledPart& pulled) {
  if (snapshot.state().unfinished != 0) {
    const PulledPart was = pulled;
    LeaveIf(IsRemembered(snapshot), pulled.entries);
    KeepPrivateNames(was, pulled);
  }
  LeaveIf(IsGood(policy, aging), pulled.entries);
}

}  // namespace waybill::internal
