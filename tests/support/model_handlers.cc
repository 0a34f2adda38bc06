// What the model makes of the registry of runtime handlers.

#include <algorithm>
#include <utility>

#include "tests/support/model.h"

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
bool Model::Fold(const Chosen& chosen, Timestamp time, bool by_image, CollapseReport& report) {
  std::map<std::string, std::optional<Timestamp>> refs;  // with the latest time of what goes
  std::set<std::string> closed_by_operator;
  std::set<std::string> names;
  const auto takes = [&](const std::string& stored) { return !stored.empty() && chosen(stored); };
  for (auto at = records_.begin(); at != records_.end();) {
    const auto& [ref, stored] = at->first;
    if (!takes(stored)) {
      ++at;
      continue;
    }
    refs[ref] = std::max(refs[ref], at->second.last_updated);
    names.insert(stored);
    if (at->second.closed_by_operator) closed_by_operator.insert(ref);
    ++report.records;
    at = records_.erase(at);
  }
  for (const auto& [ref, latest] : refs) {
    ImagePulledRecord record;
    record.image_ref = ref;
    record.last_updated = std::max<std::optional<Timestamp>>(time, latest);
    record.closed_by_operator = closed_by_operator.contains(ref);
    if (const auto own = records_.find({ref, ""}); own != records_.end()) {
      record.closed_by_operator = record.closed_by_operator || own->second.closed_by_operator;
      record.last_updated = std::max(record.last_updated, own->second.last_updated);
    }
    record.stamp = writes_ + 1;
    records_[{ref, ""}] = record;
    ++report.records_to_verify;
    // The default's records under other spellings.
    for (const std::string& spelt : by_image ? RefsOf(ref) : std::vector<std::string>()) {
      const auto other = records_.find({spelt, ""});
      if (other == records_.end() || other->second.credential_mapping.empty()) continue;
      other->second.credential_mapping.clear();
      other->second.stamp = writes_ + 1;
      ++report.records_to_verify;
    }
  }
  const bool had_revocations = FoldRevocations(takes, report);
  report.intents += FoldPulls(takes, names);
  // The default's copy of an image may be one of the others.
  std::set<std::string> images;
  for (const auto& [ref, latest] : refs) images.insert(ImageOf(ref));
  const auto dropped = std::erase_if(ledger_, [&](const auto& entry) {
    return takes(entry.first.second) || images.contains(entry.first.first);
  });
  if (dropped > 0) EvidenceRemoved();
  report.handlers.assign(names.begin(), names.end());
  return !names.empty() || had_revocations || dropped > 0;
}

// What was forgotten of the other copies is forgotten of the default's. Whether there was any.
bool Model::FoldRevocations(const Chosen& takes, CollapseReport& report) {
  std::vector<Revocation> folded;
  std::erase_if(revocations_, [&](const Revocation& one) {
    if (takes(one.runtime_handler)) folded.push_back(one);
    return takes(one.runtime_handler);
  });
  for (Revocation& one : folded) {
    one.runtime_handler.clear();
    PutRevocation(one);
    const auto own = records_.find({one.image_ref, ""});
    if (own == records_.end() || !DropForgotten(own->second)) continue;
    own->second.stamp = writes_ + 1;
    ++report.records_to_verify;
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
  CollapseReport folded;
  Fold([&](const std::string& stored) { return report.turned_on || stored == name; },
       TimeOfWriting(), closed_, folded);
  report.records_collapsed = folded.records;
  report.intents_collapsed = folded.intents;
  const bool other_default = !handlers_.empty() && NameOfDefault(handlers_) != name;
  const Handlers before = std::exchange(handlers_, std::move(handlers));
  const auto dropped = std::erase_if(ledger_, [&](const auto& entry) {
    const std::string& stored = entry.first.second;
    const bool known = stored.empty() || Stored(stored).value_or("") == stored;
    const bool is_new = !stored.empty() && known && Named(before, stored) == nullptr;
    return (stored.empty() && other_default) || is_new ||
           (known && GuestIn(before, stored) != GuestIn(handlers_, stored));
  });
  if (dropped > 0) EvidenceRemoved();
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
    record.credential_mapping.clear();
    record.manifest_digest.clear();
    record.platform.reset();
    record.guest_platform = GuestOf(copy.second);
    if (had_credentials) record.stamp = writes_ + 1;
  }
  report.changed.assign(changed.begin(), changed.end());
}

CollapseReport Model::Collapse() {
  CollapseReport report;
  const bool folded =
      Fold([](const std::string&) { return true; }, TimeOfWriting(), closed_, report);
  const bool others = HasOthers(handlers_);
  std::erase_if(handlers_, [](const RuntimeHandler& handler) { return !handler.is_default; });
  if (folded || others) Written();
  return report;
}

}  // namespace waybill::testing
