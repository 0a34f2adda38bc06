#include "store/pull/in_flight.h"

#include <algorithm>

namespace waybill::internal {

namespace {

std::string KeyOf(std::string_view image, std::string_view runtime_handler) {
  std::string key(runtime_handler);
  key += '\0';
  return key += image;
}

}  // namespace

InFlight::Entry InFlight::Get(std::string_view image, std::string_view runtime_handler) const {
  const auto at = entries_.find(KeyOf(image, runtime_handler));
  return at == entries_.end() ? Entry{} : at->second;
}

void InFlight::Set(std::string_view image, std::string_view runtime_handler, Entry entry) {
  const std::string key = KeyOf(image, runtime_handler);
  undo_.emplace_back(key, Get(image, runtime_handler));
  Apply(key, entry);
}

bool InFlight::AnyOf(const std::function<bool(std::string_view)>& is_it) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
    const std::string_view key = entry.first;
    return is_it(key.substr(0, key.find('\0')));
  });
}

void InFlight::Apply(const std::string& key, Entry entry) {
  if (entry.count == 0) {
    entries_.erase(key);
  } else {
    entries_[key] = entry;
  }
  size_.store(entries_.size(), std::memory_order_relaxed);
}

void InFlight::RollBackTo(std::size_t mark) {
  while (undo_.size() > mark) {
    Apply(undo_.back().first, undo_.back().second);
    undo_.pop_back();
  }
}

}  // namespace waybill::internal
