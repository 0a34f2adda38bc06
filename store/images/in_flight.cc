#include "store/images/in_flight.h"

#include <algorithm>
#include <utility>

namespace waybill::internal {

namespace {

std::string KeyOf(std::string_view image, std::string_view runtime_handler) {
  std::string key(runtime_handler);
  key += '\0';
  return key += image;
}

}  // namespace

std::uint64_t InFlight::Get(std::string_view image, std::string_view runtime_handler) const {
  const auto at = entries_.find(KeyOf(image, runtime_handler));
  return at == entries_.end() ? 0 : at->second;
}

void InFlight::Set(std::string_view image, std::string_view runtime_handler, std::uint64_t count) {
  undo_.emplace_back();
  Undo& undo = undo_.back();
  undo.key = KeyOf(image, runtime_handler);
  const auto at = entries_.find(undo.key);
  if (at != entries_.end()) undo.before = at->second;
  if (count == 0) {
    if (at != entries_.end()) undo.node = entries_.extract(at);
  } else if (at != entries_.end()) {
    at->second = count;
  } else {
    entries_.emplace(undo.key, count);
  }
  size_.store(entries_.size(), std::memory_order_relaxed);
}

bool InFlight::AnyOf(FunctionRef<bool(std::string_view)> matches) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
    const std::string_view key = entry.first;
    return matches(key.substr(0, key.find('\0')));
  });
}

void InFlight::RollBackTo(std::size_t mark) {
  for (; undo_.size() > mark; undo_.pop_back()) {
    Undo& undo = undo_.back();
    if (undo.node) {
      entries_.insert(std::move(undo.node));
    } else if (undo.before == 0) {
      entries_.erase(undo.key);
    } else if (const auto at = entries_.find(undo.key); at != entries_.end()) {
      at->second = undo.before;
    }
  }
  size_.store(entries_.size(), std::memory_order_relaxed);
}

}  // namespace waybill::internal
