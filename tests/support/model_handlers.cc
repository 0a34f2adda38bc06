// What the model makes of the registry of runtime handlers.

#include <algorithm>
#include <utility>

#include "tests/support/model.h"
#include "tests/support/model_proofs.h"

namespace waybill::testing {

namespace {

using Handlers = std::vector<RuntimeHandler>;

Handlers Sorted(Handlers handlers) {
  std::sort(handlers.begin(), handlers.end(),
            [](const RuntimeHandler& a, const RuntimeHandler& b) { return a.name < b.name; });
  return handlers;
}

const RuntimeHandler* DefaultOf(const Handlers& handlers) {
  for (const RuntimeHandler& handler : handlers) {
    if (handler.is_default) return &handler;
  }
  return nullptr;
}

// "": not known.
std::string NameOfDefault(const Handlers& handlers) {
  const RuntimeHandler* const handler = DefaultOf(handlers);
  return handler == nullptr ? "" : handler->name;
}

bool HasOthers(const Handlers& handlers) {
  return std::any_of(handlers.begin(), handlers.end(),
                     [](const RuntimeHandler& handler) { return !handler.is_default; });
}

const RuntimeHandler* Named(const Handlers& handlers, const std::string& name) {
  for (const RuntimeHandler& handler : handlers) {
    if (handler.name == name && !handler.is_default) return &handler;
  }
  return nullptr;
}

std::optional<Platform> GuestIn(const Handlers& handlers, const std::string& stored) {
  const RuntimeHandler* const handler =
      stored.empty() ? DefaultOf(handlers) : Named(handlers, stored);
  return handler == nullptr ? std::nullopt : handler->guest_platform;
}

std::vector<std::string> NamesWithout(const Handlers& handlers, const Handlers& others) {
  std::vector<std::string> names;
  for (const RuntimeHandler& handler : handlers) {
    const bool there = std::any_of(others.begin(), others.end(), [&](const RuntimeHandler& other) {
      return other.name == handler.name;
    });
    if (!there) names.push_back(handler.name);
  }
  return names;
}

}  // namespace

// Copies that can't be told apart any more: known, and nothing proven. Part of a write to come;
// whether there was anything to do.
bool Model::Fold(const Chosen& chosen, Timestamp time, RuntimesReport& report) {
  std::set<std::string> folded;  // images
  std::set<std::string> names;
  const auto takes = [&](const std::string& stored) { return !stored.empty() && chosen(stored); };
  for (const auto& [copy, other] : Records(records_)) {
    if (!takes(copy.second)) continue;
    const CopyKey to{copy.first, ""};
    const auto own = records_.find(to);
    const bool is_new = own == records_.end();
    const ImagePulledRecord before = is_new ? ImagePulledRecord() : own->second;
    ImagePulledRecord& record = records_[to];
    record = {};
    StaysPrivate(before, record);
    StaysPrivate(other, record);
    record.image_ref = is_new ? other.image_ref : before.image_ref;
    record.last_updated = std::max<std::optional<Timestamp>>(time, other.last_updated);
    record.last_updated = std::max(record.last_updated, before.last_updated);
    record.closed_by_operator = before.closed_by_operator || other.closed_by_operator;
    record.stamp = writes_ + 1;
    if (const auto row = rows_.find(copy); row != rows_.end()) {
      const auto refs = row->second.refs;
      rows_[to].refs.insert(refs.begin(), refs.end());
    }
    if (folded.insert(copy.first).second) ++report.records_to_verify;
    names.insert(copy.second);
    ++report.records_collapsed;
    Unrecord(copy);
  }
  const bool had_revocations = FoldRevocations(takes, report);
  report.intents_collapsed += FoldPulls(takes, names);
  // The default's copy of an image may be one of the others.
  const bool dropped = DropEntries(
      [&](const CopyKey& copy) { return takes(copy.second) || folded.contains(copy.first); });
  report.changed.assign(names.begin(), names.end());
  return !names.empty() || had_revocations || dropped;
}

// Whether there were any.
bool Model::DropEntries(const std::function<bool(const CopyKey&)>& drops) {
  std::vector<CopyKey> dropped;
  for (const auto& [copy, entry] : ledger_) {
    if (drops(copy)) dropped.push_back(copy);
  }
  for (const CopyKey& copy : dropped) Unload(copy);
  if (!dropped.empty()) EvidenceRemoved();
  return !dropped.empty();
}

// What was forgotten of the other copies is forgotten of the default's. Whether there was any.
bool Model::FoldRevocations(const Chosen& takes, RuntimesReport& report) {
  std::vector<Revocation> folded;
  std::erase_if(revocations_, [&](const Revocation& one) {
    if (takes(one.runtime_handler)) folded.push_back(one);
    return takes(one.runtime_handler);
  });
  for (Revocation& one : folded) {
    one.runtime_handler.clear();
    PutRevocation(one);
    for (auto& [copy, record] : records_) {
      if (!copy.second.empty() || SpellingOf(copy.first) != one.image_ref) continue;
      if (!DropForgotten(record)) continue;
      record.stamp = writes_ + 1;
      ++report.records_to_verify;
    }
  }
  return !folded.empty();
}

bool Model::TurnsOn(const Handlers& handlers) const {
  return !HasOthers(handlers_) && HasOthers(handlers);
}

bool Model::MayCollapse() const {
  return std::none_of(in_flight_.begin(), in_flight_.end(),
                      [](const auto& pulls) { return !pulls.first.second.empty(); });
}

// While intents are handed over to the default handler, nobody may be about to end theirs.
// Nor may what a pull is going to bring become something else meanwhile: an image for another
// default handler, or for another guest. A handler that goes away is no such thing.
bool Model::MayReplace(const Handlers& handlers) const {
  if (Sorted(handlers) == handlers_) return true;
  Model after(*this);
  after.handlers_ = Sorted(handlers);
  const bool other_default =
      !handlers_.empty() && NameOfDefault(handlers_) != NameOfDefault(handlers);
  for (const auto& [pull, in_flight] : in_flight_) {
    const std::string& stored = pull.second;
    if (stored.empty() && other_default) return false;
    const bool served = stored.empty() || after.Stored(stored).value_or("") == stored;
    const bool served_before = stored.empty() || Stored(stored).value_or("") == stored;
    if (served && (!served_before || GuestOf(stored) != after.GuestOf(stored))) return false;
  }
  if (MayCollapse()) return true;
  if (TurnsOn(handlers)) return false;
  const std::string name = NameOfDefault(handlers);
  return name.empty() || std::none_of(pulls_.begin(), pulls_.end(), [&](const ModelPull& one) {
           return one.pull.runtime_handler == name && one.pull.nothing_at == 0;
         });
}

RuntimesReport Model::Replace(Handlers handlers) {
  handlers = Sorted(std::move(handlers));
  RuntimesReport report;
  if (handlers == handlers_) return report;
  report.added = NamesWithout(handlers, handlers_);
  report.vanished = NamesWithout(handlers_, handlers);
  report.turned_on = TurnsOn(handlers);
  const std::string name = NameOfDefault(handlers);
  // What is kept under the default's own name could not be asked for any more.
  RuntimesReport folded;
  Fold([&](const std::string& stored) { return report.turned_on || stored == name; }, now_, folded);
  report.records_collapsed = folded.records_collapsed;
  report.intents_collapsed = folded.intents_collapsed;
  const bool other_default = !handlers_.empty() && NameOfDefault(handlers_) != name;
  const Handlers before = std::exchange(handlers_, std::move(handlers));
  DropEntries([&](const CopyKey& copy) {
    const std::string& stored = copy.second;
    const bool known = stored.empty() || Stored(stored).value_or("") == stored;
    const bool is_new = !stored.empty() && known && Named(before, stored) == nullptr;
    return (stored.empty() && other_default) || is_new ||
           (known && GuestIn(before, stored) != GuestIn(handlers_, stored));
  });
  DropOutdated(other_default, report);
  Written();
  return report;
}

void Model::DropOutdated(bool other_default, RuntimesReport& report) {
  std::set<std::string> changed;
  for (auto& [copy, record] : records_) {
    const bool of_default = copy.second.empty();
    const bool known = of_default ? DefaultOf(handlers_) != nullptr
                                  : Stored(copy.second).value_or("") == copy.second;
    const bool replaced = of_default && other_default;
    const bool other_guest = (known || replaced) && record.guest_platform != GuestOf(copy.second);
    if (!replaced && !other_guest) continue;
    const bool had_credentials = !record.credential_mapping.empty();
    if (had_credentials) {
      ++report.records_to_verify;
      if (known) changed.insert(of_default ? NameOfDefault(handlers_) : copy.second);
    } else if (!other_guest) {
      continue;
    }
    DropCredentials(record);
    record.manifest_digest.clear();
    record.platform.reset();
    record.guest_platform = GuestOf(copy.second);
    if (had_credentials) record.stamp = writes_ + 1;
  }
  report.changed.assign(changed.begin(), changed.end());
}

RuntimesReport Model::Collapse() {
  RuntimesReport report;
  const bool folded = Fold([](const std::string&) { return true; }, now_, report);
  const bool others = HasOthers(handlers_);
  std::erase_if(handlers_, [](const RuntimeHandler& handler) { return !handler.is_default; });
  if (folded || others) Written();
  return report;
}

}  // namespace waybill::testing
