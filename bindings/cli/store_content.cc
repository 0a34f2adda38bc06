#include "bindings/cli/store_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "bindings/cli/described_json.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/quiet_store.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"
#include "store/maintenance/for_the_command.h"
#include "waybill/kubelet_format.h"

namespace waybill::cli {
namespace {

using Effect = ContentChange::Effect;
using What = ContentChange::What;

Result<StoreContent> ContentOf(const NodeStore& store) {
  StoreContent content;
  auto records = TRY(store.ListRecords());
  auto ledger = TRY(store.ListLedger());
  std::erase_if(ledger, [](const LedgerEntry& entry) { return entry.absent_since.has_value(); });
  auto pulls = TRY(store.ListOpenPulls());
  auto quarantine = TRY(store.ListQuarantine());
  auto revocations = TRY(store.ListRevocations());
  auto trust = TRY(store.GetTrust());
  content.revocations = std::move(revocations);
  content.records = std::move(records);
  content.ledger = std::move(ledger);
  content.pulls = std::move(pulls);
  content.quarantine = std::move(quarantine);
  content.distrustful = trust.distrustful;
  return content;
}

Result<StoreContent> ReadFromDirectory(const std::string& path) {
  ProgressLine copying("copying", "bytes");
  auto store = TRY(QuietStore::Of(path, copying.UntilStopped()));
  auto content = WithStore(store.ObserveAnyAge({}), ContentOf);
  if (!content) return store.InTruth(content.error());
  auto of_any_age = WithStore(store.Observe({.ages = AgeLimits()}),
                              [](const NodeStore& unlimited) { return unlimited.ListRecords(); });
  if (!of_any_age) return store.InTruth(of_any_age.error());
  content->records_of_any_age = *std::move(of_any_age);
  return content;
}

// What is revoked, by kind and coordinates, hash, or image and handler.
class Revoked {
 public:
  explicit Revoked(const std::vector<Revocation>& revocations) {
    for (const Revocation& one : revocations) by_identity_[IdentityOf(one)] = &one;
  }

  // The revocation that forgets a credential with that proof, the newest of several; nullptr: none.
  const Revocation* Find(const ImagePulledRecord& record, const ImagePullSecret& secret) const {
    const Revocation* found = OfAny(record, secret, RevocationKind::kSecret);
    if (secret.credential_hash.empty()) return found;
    return Newer(found, {RevocationKind::kCredential, secret.credential_hash, "", ""},
                 secret.proof);
  }
  const Revocation* Find(const ImagePulledRecord& record,
                         const ImagePullServiceAccount& account) const {
    return OfAny(record, account, RevocationKind::kServiceAccount);
  }
  // The same, for access by every pod.
  const Revocation* Find(const ImagePulledRecord& record, const Proof& proof) const {
    return Newer(nullptr, {RevocationKind::kImage, record.image_ref, record.runtime_handler, ""},
                 proof);
  }

 private:
  using Identity = std::tuple<RevocationKind, std::string, std::string, std::string>;
  static Identity IdentityOf(const Revocation& one) {
    switch (one.kind) {
      case RevocationKind::kImage:
        return {one.kind, one.image_ref, one.runtime_handler, ""};
      case RevocationKind::kCredential:
        return {one.kind, one.credential_hash, "", ""};
      case RevocationKind::kSecret:
      case RevocationKind::kServiceAccount:
      case RevocationKind::kNamespace:
        break;
    }
    return {one.kind, one.who.namespace_name, one.who.name, one.who.uid};
  }

  const Revocation* Newer(const Revocation* found, const Identity& identity,
                          const Proof& proof) const {
    const auto at = by_identity_.find(identity);
    if (at == by_identity_.end() || at->second->commit < proof.pull_began) return found;
    return found != nullptr && found->commit >= at->second->commit ? found : at->second;
  }
  template <typename T>
  const Revocation* OfAny(const ImagePulledRecord& record, const T& one,
                          RevocationKind kind) const {
    const Revocation* found = Find(record, one.proof);
    found = Newer(found, {RevocationKind::kNamespace, one.namespace_name, "", ""}, one.proof);
    found = Newer(found, {kind, one.namespace_name, one.name, ""}, one.proof);
    return Newer(found, {kind, one.namespace_name, one.name, one.uid}, one.proof);
  }

  std::map<Identity, const Revocation*> by_identity_;
};

// Leaves out forgotten credentials that records still store, as the store's own answers do.
void LeaveWhatCounts(const AgeLimits& ages, const internal::Clocks& clocks, StoreContent& content) {
  const Revoked revoked(content.revocations);
  for (ImagePulledRecord& record : content.records) {
    internal::LeaveIf(
        [&](const std::string&, const auto& one) { return revoked.Find(record, one) == nullptr; },
        record);
  }
  content.records_of_any_age = content.records;
  const VerificationPolicy any;
  const internal::IsGood good(any, ages, clocks.At(SystemBootClock(), SystemClock()));
  for (ImagePulledRecord& record : content.records) internal::LeaveIf(good, record);
}

Result<StoreContent> ReadFromFile(const std::string& path) {
  auto backup = TRY(internal::ReadBackup(path));
  StoreContent content{.records = std::move(backup.records),
                       .revocations = std::move(backup.revocations),
                       .ledger = std::move(backup.ledger),
                       .pulls = std::move(backup.pulls),
                       .quarantine = std::move(backup.quarantine),
                       .distrustful = backup.distrustful};
  LeaveWhatCounts(backup.ages, backup.clocks, content);
  return content;
}

std::string WhoText(const std::string& namespace_name, const std::string& name,
                    const std::string& uid) {
  return namespace_name + "/" + name + "/" + uid;
}

// What a record grants: under an image name, of a kind, to whom.
using GrantKey = std::tuple<std::string, What, std::string>;
struct Grant {
  // One of these, or neither: every pod of the node. They point into the record.
  const ImagePullSecret* secret = nullptr;
  const ImagePullServiceAccount* account = nullptr;
  Proof proof = {};

  std::string hash() const { return secret == nullptr ? "" : secret->credential_hash; }
};
using Grants = std::map<GrantKey, Grant>;

// nullptr: none.
Grants GrantsOf(const ImagePulledRecord* record) {
  Grants grants;
  if (record == nullptr) return grants;
  for (const auto& [name, entry] : record->credential_mapping) {
    if (entry.node_pods_accessible) {
      grants[{name, What::kNodePods, ""}] = {.proof = entry.node_pods_proof};
    }
    for (const ImagePullSecret& one : entry.kubernetes_secrets) {
      grants[{name, What::kSecret, WhoText(one.namespace_name, one.name, one.uid)}] = {
          .secret = &one, .proof = one.proof};
    }
    for (const ImagePullServiceAccount& one : entry.kubernetes_service_accounts) {
      grants[{name, What::kServiceAccount, WhoText(one.namespace_name, one.name, one.uid)}] = {
          .account = &one, .proof = one.proof};
    }
  }
  return grants;
}

using Copy = std::pair<std::string, std::string>;  // image ref, runtime handler

template <typename T>
std::map<Copy, const T*> ByCopy(const std::vector<T>& list) {
  std::map<Copy, const T*> by_copy;
  for (const T& one : list) by_copy[{one.image_ref, one.runtime_handler}] = &one;
  return by_copy;
}

// Calls `look(key, before, after)` for each key of either map; nullptr: it is not in that one.
template <typename Map, typename Look>
void ForEachKey(const Map& before, const Map& after, const Look& look) {
  std::set<typename Map::key_type> keys;
  for (const auto& [key, value] : before) keys.insert(key);
  for (const auto& [key, value] : after) keys.insert(key);
  for (const auto& key : keys) {
    const auto left = before.find(key);
    const auto right = after.find(key);
    look(key, left == before.end() ? nullptr : left->second,
         right == after.end() ? nullptr : right->second);
  }
}

std::string SecondsText(Timestamp time) { return FormatTimestamp({.seconds = time.seconds}); }

// The records of OLD or NEW, and the reasons for which they lack something.
struct Side {
  explicit Side(const StoreContent& content)
      : records(ByCopy(content.records)),
        of_any_age(ByCopy(content.records_of_any_age)),
        revoked(content.revocations) {}

  Grants GrantsOfAnyAge(const Copy& copy) const {
    const auto at = of_any_age.find(copy);
    return at == of_any_age.end() ? Grants() : GrantsOf(at->second);
  }
  // `whenever`: even a revocation that is older than the proof.
  const Revocation* Forgets(const ImagePulledRecord& record, const Grant& grant,
                            bool whenever) const {
    const auto find = [&](auto one) {
      if (whenever) one.proof = {};
      return revoked.Find(record, one);
    };
    if (grant.secret != nullptr) return find(*grant.secret);
    if (grant.account != nullptr) return find(*grant.account);
    return revoked.Find(record, whenever ? Proof() : grant.proof);
  }

  std::map<Copy, const ImagePulledRecord*> records;
  std::map<Copy, const ImagePulledRecord*> of_any_age;
  Revoked revoked;
};

std::string ForgottenText(const Revocation& revocation) {
  const std::string at = " at " + SecondsText(revocation.since);
  switch (revocation.kind) {
    case RevocationKind::kSecret:
      return "the secret was forgotten" + at;
    case RevocationKind::kServiceAccount:
      return "the service account was forgotten" + at;
    case RevocationKind::kNamespace:
      return "its namespace was forgotten" + at;
    case RevocationKind::kImage:
      return "what was proven for the image was forgotten" + at;
    case RevocationKind::kCredential:
      return "its credentials were forgotten, whoever has them," + at;
  }
  return "it was forgotten" + at;
}

// Why NEW lacks what the record `old_one` grants.
std::string WhyClosed(const Side& after, const ImagePulledRecord& old_one, const Grant& had,
                      const ImagePulledRecord* new_one, const Grant* too_old) {
  if (new_one == nullptr) return "its record is gone";
  if (too_old != nullptr) {
    if (too_old->proof.good_until) {
      return "it was good until " + SecondsText(*too_old->proof.good_until) +
             " only, or is past its age";
    }
    return too_old->proof.proven
               ? "it is past its age: proven " + SecondsText(*too_old->proof.proven)
               : "it is past its age: when it was proven is not known";
  }
  if (const Revocation* one = after.Forgets(old_one, had, false)) return ForgottenText(*one);
  return new_one->closed_because.empty()
             ? "it was forgotten long ago, or another image took its place"
             : new_one->closed_because;
}

bool IsSame(const Proof& a, const Proof& b) {
  return a.proven == b.proven && a.pull_began == b.pull_began;
}

// Why NEW has what OLD lacks.
std::string WhyOpened(const Side& before, const ImagePulledRecord& new_one, const Grant& has,
                      const Grant* too_old) {
  if (too_old != nullptr) {
    if (too_old->proof.good_until) {
      return "it was good until " + SecondsText(*too_old->proof.good_until) +
             " only, or is past its age";
    }
    return IsSame(too_old->proof, has.proof) ? "only OLD has an age limit that it is past"
                                             : "a pull proved it again: in OLD it is past its age";
  }
  if (const Revocation* one = before.Forgets(new_one, has, false)) {
    return "NEW does not know that " + ForgottenText(*one);
  }
  if (const Revocation* one = before.Forgets(new_one, has, true)) {
    return "a pull proved it again, after " + ForgottenText(*one);
  }
  return "a pull proved it, or a match was written back";
}

void CompareRecords(const StoreContent& before, const StoreContent& after,
                    std::vector<ContentChange>& changes) {
  const Side left(before);
  const Side right(after);
  const auto find = [](const Grants& grants, const GrantKey& key) {
    const auto at = grants.find(key);
    return at == grants.end() ? nullptr : &at->second;
  };
  ForEachKey(
      left.records, right.records,
      [&](const Copy& copy, const ImagePulledRecord* old_one, const ImagePulledRecord* new_one) {
        const ContentChange about{.image_ref = copy.first, .runtime_handler = copy.second};
        const Grants had = GrantsOf(old_one);
        const Grants has = GrantsOf(new_one);
        const Grants had_of_any_age = left.GrantsOfAnyAge(copy);
        const Grants has_of_any_age = right.GrantsOfAnyAge(copy);
        for (const auto& [key, grant] : had) {
          ContentChange change = about;
          std::tie(change.image_name, change.what, change.who) = key;
          const Grant* now = find(has, key);
          if (now == nullptr) {
            change.effect = Effect::kClosed;
            change.because = WhyClosed(right, *old_one, grant, new_one, find(has_of_any_age, key));
            changes.push_back(std::move(change));
          } else if (now->hash() != grant.hash()) {
            change.because = "its credentials changed";
            changes.push_back(std::move(change));
          } else if (now->proof.checker != grant.proof.checker) {
            change.because =
                fmt::format("its checker is {}, and was {}", ProofCheckerName(now->proof.checker),
                            ProofCheckerName(grant.proof.checker));
            changes.push_back(std::move(change));
          }
        }
        for (const auto& [key, grant] : has) {
          if (find(had, key) != nullptr) continue;
          ContentChange change = about;
          std::tie(change.image_name, change.what, change.who) = key;
          change.effect = Effect::kOpened;
          change.because = WhyOpened(left, *new_one, grant, find(had_of_any_age, key));
          changes.push_back(std::move(change));
        }
        if ((old_one == nullptr) == (new_one == nullptr) || !had.empty() || !has.empty()) return;
        ContentChange change = about;
        change.what = What::kRecord;
        if (new_one != nullptr) {
          change.effect = Effect::kClosed;
          change.because = new_one->closed_because.empty() ? "it was pulled, with what is not known"
                                                           : new_one->closed_because;
        } else {
          change.because = "the record that kept it closed is gone: the next list judges it anew";
        }
        changes.push_back(std::move(change));
      });
}

void CompareLedger(const StoreContent& before, const StoreContent& after,
                   std::vector<ContentChange>& changes) {
  ForEachKey(ByCopy(before.ledger), ByCopy(after.ledger),
             [&](const Copy& copy, const LedgerEntry* old_one, const LedgerEntry* new_one) {
               if ((old_one == nullptr) == (new_one == nullptr)) return;
               const LedgerEntry& entry = old_one == nullptr ? *new_one : *old_one;
               changes.push_back({.effect = new_one != nullptr ? Effect::kOpened : Effect::kClosed,
                                  .what = What::kLedger,
                                  .image_ref = copy.first,
                                  .runtime_handler = copy.second,
                                  .image_name = entry.names.empty() ? "" : entry.names.front(),
                                  .because = new_one == nullptr ? "its ledger entry is gone"
                                                                : "preloaded: " + entry.source});
             });
}

void CompareQuarantine(const StoreContent& before, const StoreContent& after,
                       std::vector<ContentChange>& changes) {
  const auto by_hash = [](const std::vector<QuarantineEntry>& list) {
    std::map<std::pair<QuarantineKind, std::string>, const QuarantineEntry*> map;
    for (const QuarantineEntry& one : list) map[{one.kind, one.sha256}] = &one;
    return map;
  };
  ForEachKey(by_hash(before.quarantine), by_hash(after.quarantine),
             [&](const auto&, const QuarantineEntry* old_one, const QuarantineEntry* new_one) {
               if ((old_one == nullptr) == (new_one == nullptr)) return;
               const QuarantineEntry& entry = old_one == nullptr ? *new_one : *old_one;
               changes.push_back({.effect = new_one == nullptr ? Effect::kOther : Effect::kClosed,
                                  .what = What::kQuarantine,
                                  .image_name = entry.source,
                                  .because = new_one == nullptr
                                                 ? "no longer in quarantine: a pull replaced it"
                                                 : entry.reason});
             });
}

void ComparePulls(const StoreContent& before, const StoreContent& after,
                  std::vector<ContentChange>& changes) {
  // Not by their numbers: a migration gives an intent another one.
  const auto by_image = [](const std::vector<OpenPull>& list) {
    std::map<std::tuple<bool, std::string, std::string>, const OpenPull*> map;
    for (const OpenPull& one : list) map[{one.anything, one.image, one.runtime_handler}] = &one;
    return map;
  };
  ForEachKey(by_image(before.pulls), by_image(after.pulls),
             [&](const auto&, const OpenPull* old_one, const OpenPull* new_one) {
               if ((old_one == nullptr) == (new_one == nullptr)) return;
               const OpenPull& pull = old_one == nullptr ? *new_one : *old_one;
               changes.push_back({.effect = Effect::kOther,
                                  .what = What::kPull,
                                  .runtime_handler = pull.runtime_handler,
                                  .image_name = ImageText(pull),
                                  .because = new_one == nullptr ? "it is no longer open"
                                                                : "it may still bring an image"});
             });
}

std::string_view EffectName(Effect effect) {
  constexpr std::string_view kNames[] = {"opened", "closed", "changed"};
  return kNames[static_cast<std::size_t>(effect)];
}

std::string_view WhatName(What what) {
  constexpr std::string_view kNames[] = {"nodePods", "secret",     "serviceAccount", "record",
                                         "ledger",   "quarantine", "distrust",       "pull"};
  return kNames[static_cast<std::size_t>(what)];
}

}  // namespace

Result<StoreContent> ReadStoreContent(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ? ReadFromFile(path)
                                                         : ReadFromDirectory(path);
}

std::vector<ContentChange> Compare(const StoreContent& before, const StoreContent& after) {
  std::vector<ContentChange> changes;
  if (before.distrustful != after.distrustful) {
    changes.push_back({.effect = after.distrustful ? Effect::kClosed : Effect::kOther,
                       .what = What::kDistrust,
                       .because = after.distrustful
                                      ? "the store is distrustful: what has neither record nor "
                                        "ledger entry must be pulled"
                                      : "the store is trusted again: lists are judged"});
  }
  CompareRecords(before, after, changes);
  CompareLedger(before, after, changes);
  CompareQuarantine(before, after, changes);
  ComparePulls(before, after, changes);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const ContentChange& a, const ContentChange& b) {
                     return std::tie(a.effect, a.image_ref, a.runtime_handler, a.image_name) <
                            std::tie(b.effect, b.image_ref, b.runtime_handler, b.image_name);
                   });
  return changes;
}

Json JsonOf(const ContentChange& change) {
  Json object = {{"effect", EffectName(change.effect)}, {"what", WhatName(change.what)}};
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) object[key] = value;
  };
  add("imageRef", change.image_ref);
  add("runtimeHandler", change.runtime_handler);
  add(change.what == What::kQuarantine ? "source" : "imageName", change.image_name);
  add("who", change.who);
  object["because"] = change.because;
  return object;
}

std::string TextOf(const ContentChange& change) {
  std::string to;
  switch (change.what) {
    case What::kNodePods:
      to = "to all pods of the node";
      break;
    case What::kSecret:
      to = "to secret " + change.who;
      break;
    case What::kServiceAccount:
      to = "to service account " + change.who;
      break;
    case What::kRecord:
    case What::kLedger:
      to = "to all pods";
      break;
    case What::kQuarantine:
      return fmt::format("{:<7}  quarantine of {}: {}", EffectName(change.effect),
                         change.image_name, change.because);
    case What::kDistrust:
      return fmt::format("{:<7}  {}", EffectName(change.effect), change.because);
    case What::kPull:
      return fmt::format("{:<7}  pull of {}{}: {}", EffectName(change.effect), change.image_name,
                         ForHandler(change.runtime_handler), change.because);
  }
  return fmt::format("{:<7}  {}{}{} {}: {}", EffectName(change.effect), change.image_ref,
                     ForHandler(change.runtime_handler),
                     change.image_name.empty() ? "" : " as " + change.image_name, to,
                     change.because);
}

}  // namespace waybill::cli
