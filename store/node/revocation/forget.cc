#include "store/node/revocation/forget.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "store/base/try.h"
#include "store/node/images/list_token.h"
#include "store/node/records/credential_index.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/keys.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/revocations_table.h"
#include "store/node/records/typed_tables.h"
#include "store/node/records/what_counts.h"
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
  ForgetReport report;
  std::unordered_set<std::string> hashes;  // of Secrets that leave
  // The other hashes in these records, and how often.
  std::unordered_map<std::string, std::uint64_t> stay;
  std::vector<Key16> records;  // that were looked at

  // Returns whether the record loses anything.
  template <typename IsForgotten>
  bool Count(const Key16& key, const ImagePulledRecord& record, const IsForgotten& is_forgotten,
             bool node_pods) {
    const ForgetReport before = report;
    for (const auto& [name, entry] : record.credential_mapping) {
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
Result<std::optional<ImagePulledRecord>> RecordUnder(const StoreTxn& txn, const Key16& key) {
  auto payload = txn.Get(Table::kPulled, key);
  if (!payload && payload.error().code != ErrorCode::kDamaged) return payload.error();
  if (!payload || !*payload) return std::optional<ImagePulledRecord>();
  return DecodePulledRecordValue(**payload);
}

// Where the index rows of a revocation begin, and how much of their keys they share.
std::pair<Key16, std::size_t> RowsOf(const Revocation& what, std::uint64_t seed) {
  if (what.kind == RevocationKind::kNamespace) {
    return {FirstUseKeyOfNamespace(what.who.namespace_name, seed), kNamespaceKeyBytes};
  }
  if (what.kind == RevocationKind::kCredential) {
    return {FirstUseKeyOfHash(what.credential_hash, seed), kHashKeyBytes};
  }
  return {FirstUseKeyOfName(what.kind, what.who.namespace_name, what.who.name, seed),
          kCoordinateKeyBytes};
}

struct Found {
  std::vector<Key16> records;  // sorted
  std::optional<Key16> next;   // nullopt: these are the last
  bool row_unreadable = false;
};

// At most `most` records that may mention what is forgotten, from the index row `from` on; or, with
// `all_records`, at most `most` of all records.
Result<Found> FindRecords(const StoreTxn& txn, const Revocation& what,
                          const std::optional<Key16>& from, bool all_records, std::size_t most) {
  Found found;
  if (what.kind == RevocationKind::kImage) {
    found.records.push_back(PulledKey(what.image_ref, what.runtime_handler, txn.seed()));
    return found;
  }
  const auto rows = all_records ? std::pair<Key16, std::size_t>{} : RowsOf(what, txn.seed());
  const Key16& first = rows.first;
  const auto shared = static_cast<std::ptrdiff_t>(rows.second);
  const auto visit = [&](const Key16& key, Payload payload) -> Result<bool> {
    const auto record = all_records ? std::optional(key) : RecordOfCredentialUse(payload);
    if (!record) {
      found.row_unreadable = true;
      return false;
    }
    found.records.push_back(*record);
    if (found.records.size() < most) return true;
    found.next = key.Next();
    return false;
  };
  const Table table = all_records ? Table::kPulled : Table::kCredentialIndex;
  // From the middle of a range on, whose end the visitor can't see by its first bytes alone.
  TRY(txn.ForEachFrom(
      table, from.value_or(first), [&](const Key16& key, Payload payload) -> Result<bool> {
        if (!std::equal(first.bytes.begin(), first.bytes.begin() + shared, key.bytes.begin())) {
          return false;
        }
        return visit(key, payload);
      }));
  std::sort(found.records.begin(), found.records.end());
  found.records.erase(std::unique(found.records.begin(), found.records.end()), found.records.end());
  return found;
}

// All of them.
Result<std::vector<Key16>> FindAllRecords(const StoreTxn& txn, const Revocation& what) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  auto found = FindRecords(txn, what, std::nullopt, false, kAll);
  if (found && found->row_unreadable) found = FindRecords(txn, what, std::nullopt, true, kAll);
  if (!found) return found.error();
  return std::move(found->records);
}

// Secrets with one of the hashes that leave, which stay themselves.
template <typename IsForgotten>
Result<std::uint64_t> CountEqualHashes(const StoreTxn& txn, Tally& tally,
                                       const IsForgotten& is_forgotten) {
  std::sort(tally.records.begin(), tally.records.end());
  std::uint64_t count = 0;
  std::set<Key16> others;
  for (const std::string& hash : tally.hashes) {
    if (const auto at = tally.stay.find(hash); at != tally.stay.end()) count += at->second;
    Revocation of_hash;
    of_hash.kind = RevocationKind::kCredential;
    of_hash.credential_hash = hash;
    auto records = TRY(FindAllRecords(txn, of_hash));
    for (const Key16& key : records) {
      if (!std::binary_search(tally.records.begin(), tally.records.end(), key)) others.insert(key);
    }
  }
  for (const Key16& key : others) {
    auto record = TRY(RecordUnder(txn, key));
    if (!record) continue;
    for (const auto& [name, entry] : record->credential_mapping) {
      for (const ImagePullSecret& secret : entry.kubernetes_secrets) {
        if (tally.hashes.contains(secret.credential_hash) && !is_forgotten(secret)) ++count;
      }
    }
  }
  return count;
}

// Whether any record has a Secret that is not forgotten.
Result<bool> AnySecret(const StoreTxn& txn) {
  bool any = false;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    auto record = DecodePulledRecordValue(payload);
    if (!record) return true;
    if (txn.state().untidied != 0) TRY(DropForgotten(txn, *record));
    any = std::any_of(record->credential_mapping.begin(), record->credential_mapping.end(),
                      [](const auto& one) { return !one.second.kubernetes_secrets.empty(); });
    return !any;
  }));
  return any;
}

// A record that stays as it is keeps its stamp.
Result<void> StoreWithoutForgotten(StoreTxn& txn, const Key16& key) {
  auto record = TRY(RecordUnder(txn, key));
  if (!record) return {};
  auto loses = TRY(DropForgotten(txn, *record));
  return loses ? StoreRecord(txn, std::move(*record)) : Result<void>();
}

Result<void> CheckBound(std::string_view what, std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return {};
  return Error{ErrorCode::kLimitExceeded, "the " + std::string(what) + " is longer than " +
                                              std::to_string(limit) +
                                              " bytes; nothing was changed"};
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
    if (auto r = CheckBound(what, text, kMaxCoordinateBytes); !r) return r;
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
void ForEachCredential(const ImagePulledRecord& record, const Visit& visit) {
  for (const auto& [name, entry] : record.credential_mapping) {
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
      return CheckBound("image ref", what.image_ref, kMaxImageRefBytes);
    case RevocationKind::kCredential:
      if (what.credential_hash.empty()) return Missing("credential hash");
      return CheckBound("credential hash", what.credential_hash, kMaxCoordinateBytes);
  }
  return Missing("kind of what is to be forgotten");
}

Result<ForgetReport> Forget(StoreTxn& txn, Revocation what, std::size_t at_once) {
  what.commit = txn.sequence();
  what.since = txn.now();
  what.untidied = false;
  std::vector<Revocation> all{what};
  if (what.kind == RevocationKind::kImage && !txn.state().kubelet_rules) {
    auto refs = TRY(RefsOfImage(txn, what.image_ref));
    all.clear();
    for (std::string& ref : refs) {
      all.push_back(what);
      all.back().image_ref = std::move(ref);
    }
  }
  Tally tally;
  const Covers covers{what};
  std::vector<Key16> changed;
  for (const Revocation& one : all) {
    auto records = TRY(FindAllRecords(txn, one));
    for (const Key16& key : records) {
      auto record = TRY(RecordUnder(txn, key));
      if (record && tally.Count(key, *record, covers, covers.node_pods())) changed.push_back(key);
    }
  }
  ForgetReport& report = tally.report;
  // Even if nothing has it: a pull may be under way, a kubelet's file or a backup have it, and a
  // Secret be rotated to a hash.
  report.stored = true;
  if (what.kind != RevocationKind::kImage) {
    report.equal_hashes = TRY(CountEqualHashes(txn, tally, covers));
  }
  // Decisions do not look for an image's own revocation: its records, one of a spelling, are tidied
  // up at once.
  const bool many = what.kind != RevocationKind::kImage && changed.size() > at_once;
  for (Revocation& one : all) {
    one.untidied = many;
    TRY(PutRevocation(txn, one));
  }
  if (many) {
    report.untidied = report.records;
    return report;
  }
  for (const Key16& key : changed) TRY(StoreWithoutForgotten(txn, key));
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

Result<ReconcileReport> ReconcileWith(StoreTxn& txn, const ExistingCredentials& truth,
                                      const ListToken& token, std::size_t at_once) {
  TRY(CheckToken(txn, token, Hint::kBeginList));
  if (token.commit < txn.state().last_truth) {
    return Error{ErrorCode::kInvalidArgument,
                 "the token " + std::to_string(token.commit) +
                     " is older than that of the last truth, " +
                     std::to_string(txn.state().last_truth) + "; nothing was changed",
                 "draw a token, then list what exists again"};
  }
  const Truth exists(truth);
  const auto is_newer = [&](const auto& credential) {
    return credential.proof.pull_began > token.commit;
  };
  const auto leaves = [&](const auto& credential) {
    return !is_newer(credential) && !exists.Has(KindOf(credential), NameOf(credential));
  };
  ReconcileReport report;
  Tally tally;
  std::unordered_set<std::string> known;
  std::unordered_set<std::string> newer;
  std::unordered_map<std::string, std::pair<RevocationKind, CredentialName>> gone;
  std::vector<Key16> changed;
  // By the records themselves: an index that lacks a row must not keep a credential.
  TRY(txn.ForEach(Table::kPulled, [&](const Key16& key, Payload payload) -> Result<bool> {
    const auto record = DecodePulledRecordValue(payload);
    if (!record) return true;
    bool all_known = true;
    ForEachCredential(*record, [&](const auto& credential) {
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
    if (!all_known && tally.Count(key, *record, leaves, false)) changed.push_back(key);
    return true;
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
    one.untidied = many;
    TRY(PutRevocation(txn, one));
  }
  txn.state().last_truth = token.commit;
  txn.Touch();
  if (many) {
    report.forgotten.untidied = changed.size();
    return report;
  }
  for (const Key16& key : changed) TRY(StoreWithoutForgotten(txn, key));
  return report;
}

Result<bool> TidyUp(StoreTxn& txn, TidyCursor& cursor, std::size_t most) {
  if (txn.state().untidied == 0) return false;
  if (cursor.left.empty()) {
    auto all = TRY(ReadRevocations(txn));
    std::erase_if(all, [](const Revocation& one) { return !one.untidied; });
    cursor = {};
    cursor.left = std::move(all);
    std::sort(cursor.left.begin(), cursor.left.end(), [&](const auto& a, const auto& b) {
      return RowsOf(a, txn.seed()) < RowsOf(b, txn.seed());
    });
    if (cursor.left.empty()) {
      txn.state().untidied = 0;  // the count was wrong
      txn.Touch();
      return false;
    }
  }
  for (std::size_t done = 0; done < most && !cursor.left.empty();) {
    auto found =
        TRY(FindRecords(txn, cursor.left.back(), cursor.next, cursor.all_records, most - done));
    if (found.row_unreadable) {
      cursor.all_records = true;
      cursor.next.reset();
      continue;
    }
    for (const Key16& key : found.records) TRY(StoreWithoutForgotten(txn, key));
    done += found.records.size();
    cursor.next = found.next;
    if (cursor.next) continue;
    // What was walked was tidied up for others, too: for each UID of a Secret that was made anew
    // many times, since its rows lie in one range.
    const bool all = std::exchange(cursor.all_records, false);
    const auto rows = RowsOf(cursor.left.back(), txn.seed());
    const auto is_done_too = [&](const Revocation& one) {
      return all || (done < most && RowsOf(one, txn.seed()) == rows);
    };
    do {
      Revocation tidied = std::move(cursor.left.back());
      cursor.left.pop_back();
      ++done;
      // Forgotten once more meanwhile: again from the beginning.
      auto stored = TRY(FindRevocation(txn, tidied));
      if (!stored || stored->commit != tidied.commit) continue;
      tidied.untidied = false;
      TRY(PutRevocation(txn, tidied));
    } while (!cursor.left.empty() && is_done_too(cursor.left.back()));
  }
  return txn.state().untidied != 0;
}

Result<void> RebuildIndex(StoreTxn& txn) {
  if (auto r = txn.Clear(Table::kCredentialIndex); !r) return r;
  std::vector<Key16> keys;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16& key, Payload) -> Result<bool> {
    keys.push_back(key);
    return true;
  }));
  for (const Key16& key : keys) TRY(txn.IndexAnew(Table::kPulled, key));
  return {};
}

Result<void> DropOldRevocations(StoreTxn& txn, std::uint64_t oldest_backup) {
  if (txn.state().digest(Table::kRevocations).count == 0) return {};
  auto all = TRY(ReadRevocations(txn));
  auto pulls = TRY(AllOpenPulls(txn));
  std::uint64_t oldest_pull = std::numeric_limits<std::uint64_t>::max();
  for (const OpenPull& pull : pulls) {
    if (pull.nothing_at == 0) oldest_pull = std::min(oldest_pull, pull.stamp);
  }
  const std::int64_t now = NowForAges(txn.clock(), txn.state().latest_time).seconds;
  const std::int64_t kept = txn.state().ages.revocations.count();
  std::optional<bool> any_secret;
  for (const Revocation& one : all) {
    bool is_needed = one.untidied || now - one.since.seconds <= kept ||
                     std::min(oldest_backup, oldest_pull) <= one.commit;
    if (!is_needed && one.kind == RevocationKind::kCredential) {
      if (!any_secret) any_secret = TRY(AnySecret(txn));
      is_needed = *any_secret;
    }
    if (is_needed) continue;
    if (auto r = EraseRevocation(txn, one); !r) return r;
  }
  return {};
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

void LeaveWhatIsRemembered(const ReaderPool::Lease& snapshot, ImagePulledRecord& record) {
  if (snapshot.state().untidied != 0) LeaveIf(IsRemembered(snapshot), record);
}

void LeaveWhatCounts(const ReaderPool::Lease& snapshot, const VerificationPolicy& policy,
                     const AgeLimits& ages, Timestamp clock, ImagePulledRecord& record) {
  LeaveWhatIsRemembered(snapshot, record);
  LeaveIf(IsGood(policy, ages, NowForAges(clock, snapshot.state().latest_time)), record);
}

}  // namespace waybill::internal
