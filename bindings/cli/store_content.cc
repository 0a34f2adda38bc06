#include "bindings/cli/store_content.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "bindings/cli/evidence_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/quiet_store.h"
#include "bindings/cli/store_access.h"
#include "store/database/evidence_tables.h"
#include "store/database/open_pulls_table.h"
#include "store/database/pulled_record.h"
#include "store/database/typed_tables.h"
#include "store/recovery/inspect.h"
#include "store/recovery/open_store.h"
#include "store/recovery/salvage.h"

namespace waybill::cli {
namespace {

using internal::Table;
using Effect = ContentChange::Effect;
using What = ContentChange::What;

Result<StoreContent> ContentOf(const NodeStore& store) {
  StoreContent content;
  auto records = store.ListRecords();
  if (!records) return records.error();
  auto ledger = store.ListLedger();
  if (!ledger) return ledger.error();
  auto pulls = store.ListOpenPulls();
  if (!pulls) return pulls.error();
  auto quarantine = store.ListQuarantine();
  if (!quarantine) return quarantine.error();
  auto trust = store.GetTrust();
  if (!trust) return trust.error();
  content.records = *std::move(records);
  content.ledger = *std::move(ledger);
  content.pulls = *std::move(pulls);
  content.quarantine = *std::move(quarantine);
  content.distrustful = trust->distrustful;
  return content;
}

Result<StoreContent> ReadFromDirectory(const std::string& path) {
  ProgressLine copying("copying", "bytes");
  auto store = QuietStore::Of(path, copying.UntilStopped());
  if (!store) return store.error();
  auto content = WithStore(store->ObserveAnyAge({}), ContentOf);
  if (!content) return store->InTruth(content.error());
  return content;
}

Result<StoreContent> ReadFromFile(const std::string& path) {
  const auto file = internal::OpenFile(path, O_RDONLY);
  if (!file) return file.error();
  auto inspection = internal::InspectFile(*file, internal::FileIs::kCompactCopy);
  if (!inspection) return inspection.error();
  if (inspection->newer_schema) return internal::NewerSchema(path);
  if (!inspection->sound || !inspection->state) {
    return Error{ErrorCode::kDamaged,
                 fmt::format("{} fails the check of a backup{}; nothing was changed", path,
                             inspection->Why()),
                 "name a store's directory, or a file in its backup/"};
  }
  const auto values = internal::Salvage(*file, inspection->newer_meta);
  if (!values) return values.error();
  StoreContent content;
  content.records = values->All(Table::kPulled, internal::DecodePulledRecordValue);
  content.ledger = values->All(Table::kLedger, internal::DecodeLedgerEntry);
  content.pulls = values->All(Table::kIntents, internal::DecodeOpenPull);
  std::erase_if(content.pulls, [](const OpenPull& pull) { return pull.nothing_at != 0; });
  content.quarantine = values->All(Table::kQuarantine, internal::DecodeQuarantineValue);
  content.distrustful = inspection->state->distrustful;
  return content;
}

std::string WhoText(const std::string& namespace_name, const std::string& name,
                    const std::string& uid) {
  return namespace_name + "/" + name + "/" + uid;
}

// What a record grants: under an image name, of a kind, to whom; and the hash of it.
using Grants = std::map<std::tuple<std::string, What, std::string>, std::string>;

Grants GrantsOf(const ImagePulledRecord& record) {
  Grants grants;
  for (const auto& [name, entry] : record.credential_mapping) {
    if (entry.node_pods_accessible) grants[{name, What::kNodePods, ""}];
    for (const ImagePullSecret& one : entry.kubernetes_secrets) {
      grants[{name, What::kSecret, WhoText(one.namespace_name, one.name, one.uid)}] =
          one.credential_hash;
    }
    for (const ImagePullServiceAccount& one : entry.kubernetes_service_accounts) {
      grants[{name, What::kServiceAccount, WhoText(one.namespace_name, one.name, one.uid)}];
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

void CompareRecords(const StoreContent& before, const StoreContent& after,
                    std::vector<ContentChange>& changes) {
  ForEachKey(
      ByCopy(before.records), ByCopy(after.records),
      [&](const Copy& copy, const ImagePulledRecord* old_one, const ImagePulledRecord* new_one) {
        const ContentChange about{.image_ref = copy.first, .runtime_handler = copy.second};
        const Grants had = old_one == nullptr ? Grants() : GrantsOf(*old_one);
        const Grants has = new_one == nullptr ? Grants() : GrantsOf(*new_one);
        for (const auto& [grant, hash] : had) {
          ContentChange change = about;
          std::tie(change.image_name, change.what, change.who) = grant;
          const auto now = has.find(grant);
          if (now == has.end()) {
            change.effect = Effect::kClosed;
            change.because = new_one == nullptr ? "its record is gone"
                             : new_one->closed_because.empty()
                                 ? "it was forgotten, grew too old, or another image took its place"
                                 : new_one->closed_because;
            changes.push_back(std::move(change));
          } else if (now->second != hash) {
            change.because = "its credentials changed";
            changes.push_back(std::move(change));
          }
        }
        for (const auto& [grant, hash] : has) {
          if (had.count(grant) != 0) continue;
          ContentChange change = about;
          std::tie(change.image_name, change.what, change.who) = grant;
          change.effect = Effect::kOpened;
          change.because = "a pull proved it, or a match was written back";
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
               if (old_one != nullptr && new_one != nullptr) return;
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
               if (old_one != nullptr && new_one != nullptr) return;
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
               if (old_one != nullptr && new_one != nullptr) return;
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
                                      ? "the store is distrustful: what has no record and is not "
                                        "known to be preloaded must be pulled"
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
