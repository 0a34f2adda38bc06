#include "sizing/policies.h"

#include <deque>
#include <set>
#include <tuple>

namespace waybill::sizing {

std::uint64_t Requests::total_bytes() const {
  std::uint64_t sum = 0;
  for (const Request& request : all) sum += bytes[request.object];
  return sum;
}

std::uint64_t Requests::distinct_bytes() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t one : bytes) sum += one;
  return sum;
}

std::string_view NameOf(Policy policy) {
  switch (policy) {
    case Policy::kLru:
      return "LRU";
    case Policy::kLfu:
      return "LFU";
    case Policy::kFifo:
      return "FIFO";
    case Policy::kS3Fifo:
      return "S3-FIFO";
    case Policy::kSieve:
      return "SIEVE";
  }
  return "";
}

namespace {

using Weights = std::vector<std::uint64_t>;
using Object = std::uint32_t;

// Each has: Hit, true if the object is there, which it notes; Evict, which makes room by at least
// one object; Insert.
class Fifo {
 public:
  Fifo(const Weights& weights, std::uint64_t /*capacity*/) : held_(weights.size()) {}
  bool Hit(Object object) { return held_[object] != 0; }
  Object Evict() {
    const Object oldest = queue_.front();
    queue_.pop_front();
    held_[oldest] = 0;
    return oldest;
  }
  void Insert(Object object) {
    queue_.push_back(object);
    held_[object] = 1;
  }

 private:
  std::vector<char> held_;
  std::deque<Object> queue_;
};

class Lfu {
 public:
  Lfu(const Weights& weights, std::uint64_t /*capacity*/) : uses_(weights.size()) {}
  bool Hit(Object object) {
    Uses& uses = uses_[object];
    if (uses.count == 0) return false;
    order_.erase({uses.count, uses.last, object});
    Use(object);
    return true;
  }
  Object Evict() {
    const Object object = std::get<2>(*order_.begin());
    order_.erase(order_.begin());
    uses_[object] = {};
    return object;
  }
  void Insert(Object object) { Use(object); }

 private:
  struct Uses {
    std::uint64_t count = 0;
    std::uint64_t last = 0;
  };
  void Use(Object object) {
    Uses& uses = uses_[object];
    ++uses.count;
    uses.last = ++now_;
    order_.insert({uses.count, uses.last, object});
  }
  std::vector<Uses> uses_;
  std::set<std::tuple<std::uint64_t, std::uint64_t, Object>> order_;
  std::uint64_t now_ = 0;
};

class S3Fifo {
 public:
  S3Fifo(const Weights& weights, std::uint64_t capacity)
      : weights_(weights),
        main_room_(capacity - capacity / 10),
        where_(weights.size()),
        uses_(weights.size()),
        ghost_since_(weights.size()) {}

  bool Hit(Object object) {
    if (where_[object] != Queue::kNone) {
      if (uses_[object] < kMostUses) ++uses_[object];
      return true;
    }
    // Before room is made for it, which may push it out of the ghost queue.
    from_ghost_ = ghost_since_[object] != 0;
    if (from_ghost_) Forget(object);
    return false;
  }

  // `main_` may hold more than its part for a moment: what moves there is not evicted with it.
  Object Evict() {
    return main_bytes_ > main_room_ || small_.empty() ? EvictFromMain() : EvictFromSmall();
  }

  void Insert(Object object) {
    uses_[object] = 0;
    if (from_ghost_) {
      ToMain(object);
    } else {
      small_.push_back(object);
      where_[object] = Queue::kSmall;
    }
  }

 private:
  enum class Queue : std::uint8_t { kNone, kSmall, kMain };
  static constexpr std::uint8_t kMostUses = 3;

  void ToMain(Object object) {
    main_.push_back(object);
    where_[object] = Queue::kMain;
    main_bytes_ += weights_[object];
  }

  Object EvictFromSmall() {
    while (!small_.empty()) {
      const Object object = small_.front();
      small_.pop_front();
      if (uses_[object] > 1) {
        uses_[object] = 0;
        ToMain(object);
        continue;
      }
      where_[object] = Queue::kNone;
      Remember(object);
      return object;
    }
    return EvictFromMain();
  }

  Object EvictFromMain() {
    while (true) {
      const Object object = main_.front();
      main_.pop_front();
      if (uses_[object] > 0) {
        --uses_[object];
        main_.push_back(object);
        continue;
      }
      where_[object] = Queue::kNone;
      main_bytes_ -= weights_[object];
      return object;
    }
  }

  void Forget(Object object) {
    ghost_since_[object] = 0;
    ghost_bytes_ -= weights_[object];
  }

  void Remember(Object object) {
    if (weights_[object] > main_room_) return;
    while (ghost_bytes_ + weights_[object] > main_room_) {
      const auto [oldest, since] = ghost_.front();
      ghost_.pop_front();
      if (ghost_since_[oldest] != since) continue;  // it came back meanwhile
      Forget(oldest);
    }
    ghost_since_[object] = ++now_;
    ghost_.emplace_back(object, now_);
    ghost_bytes_ += weights_[object];
  }

  const Weights& weights_;
  std::uint64_t main_room_;
  std::vector<Queue> where_;
  std::vector<std::uint8_t> uses_;
  std::deque<Object> small_;
  std::deque<Object> main_;
  std::uint64_t main_bytes_ = 0;
  std::deque<std::pair<Object, std::uint64_t>> ghost_;
  std::vector<std::uint64_t> ghost_since_;  // 0: not in it
  std::uint64_t ghost_bytes_ = 0;
  bool from_ghost_ = false;  // what is asked for now
  std::uint64_t now_ = 0;
};

class Sieve {
 public:
  Sieve(const Weights& weights, std::uint64_t /*capacity*/) : nodes_(weights.size()) {}

  bool Hit(Object object) {
    if (!nodes_[object].held) return false;
    nodes_[object].visited = true;
    return true;
  }

  Object Evict() {
    if (hand_ == kNone) hand_ = oldest_;
    while (nodes_[hand_].visited) {
      nodes_[hand_].visited = false;
      hand_ = nodes_[hand_].newer == kNone ? oldest_ : nodes_[hand_].newer;
    }
    const Object object = hand_;
    Node& node = nodes_[object];
    hand_ = node.newer;
    (node.newer == kNone ? newest_ : nodes_[node.newer].older) = node.older;
    (node.older == kNone ? oldest_ : nodes_[node.older].newer) = node.newer;
    node = {};
    return object;
  }

  void Insert(Object object) {
    nodes_[object] = {.older = newest_, .held = true};
    (newest_ == kNone ? oldest_ : nodes_[newest_].newer) = object;
    newest_ = object;
  }

 private:
  static constexpr Object kNone = UINT32_MAX;
  struct Node {
    Object newer = kNone;
    Object older = kNone;
    bool held = false;
    bool visited = false;
  };
  std::vector<Node> nodes_;
  Object newest_ = kNone;
  Object oldest_ = kNone;
  Object hand_ = kNone;
};

template <typename Cache>
Misses Run(const Requests& requests, const Weights& weights, std::uint64_t capacity) {
  Cache cache(weights, capacity);
  Misses misses;
  std::uint64_t used = 0;
  for (const Request& request : requests.all) {
    if (cache.Hit(request.object)) continue;
    ++misses.requests;
    misses.bytes += requests.bytes[request.object];
    const std::uint64_t weight = weights[request.object];
    if (weight > capacity) continue;
    while (used > capacity - weight) used -= weights[cache.Evict()];
    cache.Insert(request.object);
    used += weight;
  }
  return misses;
}

}  // namespace

Misses Simulate(Policy policy, const Requests& requests, Unit unit, std::uint64_t capacity) {
  const Weights ones(unit == Unit::kObjects ? requests.bytes.size() : 0, 1);
  const Weights& weights = unit == Unit::kObjects ? ones : requests.bytes;
  switch (policy) {
    case Policy::kLfu:
      return Run<Lfu>(requests, weights, capacity);
    case Policy::kFifo:
      return Run<Fifo>(requests, weights, capacity);
    case Policy::kS3Fifo:
      return Run<S3Fifo>(requests, weights, capacity);
    case Policy::kSieve:
      return Run<Sieve>(requests, weights, capacity);
    case Policy::kLru:
      break;
  }
  return {};
}

}  // namespace waybill::sizing
