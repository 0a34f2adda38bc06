#include "store/pull/in_flight.h"

namespace waybill::internal {

InFlight::Entry InFlight::Get(std::string_view image) const {
  const auto at = entries_.find(std::string(image));
  return at == entries_.end() ? Entry{} : at->second;
}

void InFlight::Set(std::string_view image, Entry entry) {
  std::string key(image);
  undo_.emplace_back(key, Get(image));
  Apply(key, entry);
}

void InFlight::Apply(const std::string& image, Entry entry) {
  if (entry.count == 0) {
    entries_.erase(image);
  } else {
    entries_[image] = entry;
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
