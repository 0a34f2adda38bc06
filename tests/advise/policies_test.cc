// The cache simulations against slow ones, written again from the papers, on random requests; and
// against what libCacheSim 0.3.5 says of requests that both make the same.

#include "sizing/policies.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "sizing/stack_distances.h"
#include "tests/support/draw.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(policies)

namespace {

using namespace waybill::sizing;  // NOLINT(google-build-using-namespace)

using Objects = std::vector<std::uint32_t>;

bool Holds(const Objects& list, std::uint32_t object) {
  return std::find(list.begin(), list.end(), object) != list.end();
}
void Drop(Objects& list, std::uint32_t object) {
  list.erase(std::find(list.begin(), list.end(), object));
}

// A cache as a list of what it holds, looked through each time. Oldest first.
class SlowCache {
 public:
  SlowCache(const Requests& requests, Unit unit, std::uint64_t capacity)
      : requests_(requests), unit_(unit), capacity_(capacity) {}
  virtual ~SlowCache() = default;

  Misses Play() {
    Misses misses;
    for (const Request& request : requests_.all) {
      ++now_;
      if (Asked(request.object)) continue;
      ++misses.requests;
      misses.bytes += requests_.bytes[request.object];
      if (Size(request.object) > capacity_) continue;
      while (Sum(All()) + Size(request.object) > capacity_) Evict();
      Insert(request.object);
    }
    return misses;
  }

 protected:
  // Whether it is there; and what being asked for changes.
  virtual bool Asked(std::uint32_t object) = 0;
  virtual void Evict() = 0;
  virtual void Insert(std::uint32_t object) = 0;
  virtual Objects All() const { return held_; }

  std::uint64_t Size(std::uint32_t object) const {
    return unit_ == Unit::kObjects ? 1 : requests_.bytes[object];
  }
  std::uint64_t Sum(const Objects& objects) const {
    std::uint64_t sum = 0;
    for (const std::uint32_t object : objects) sum += Size(object);
    return sum;
  }

  const Requests& requests_;
  Unit unit_;
  std::uint64_t capacity_;
  std::uint64_t now_ = 0;
  Objects held_;
};

class SlowFifo : public SlowCache {
 public:
  using SlowCache::SlowCache;
  bool Asked(std::uint32_t object) override { return Holds(held_, object); }
  void Evict() override { held_.erase(held_.begin()); }
  void Insert(std::uint32_t object) override { held_.push_back(object); }
};

class SlowLru : public SlowFifo {
 public:
  using SlowFifo::SlowFifo;
  bool Asked(std::uint32_t object) override {
    if (!Holds(held_, object)) return false;
    Drop(held_, object);
    held_.push_back(object);
    return true;
  }
};

class SlowLfu : public SlowCache {
 public:
  using SlowCache::SlowCache;
  bool Asked(std::uint32_t object) override {
    if (!Holds(held_, object)) return false;
    ++count_[object];
    last_[object] = now_;
    return true;
  }
  void Evict() override {
    const auto least = std::min_element(held_.begin(), held_.end(), [&](auto a, auto b) {
      return count_[a] != count_[b] ? count_[a] < count_[b] : last_[a] < last_[b];
    });
    held_.erase(least);
  }
  void Insert(std::uint32_t object) override {
    held_.push_back(object);
    count_[object] = 1;
    last_[object] = now_;
  }

 private:
  std::map<std::uint32_t, std::uint64_t> count_;
  std::map<std::uint32_t, std::uint64_t> last_;
};

// The functions of the paper's Algorithm 1.
class SlowS3Fifo : public SlowCache {
 public:
  using SlowCache::SlowCache;
  Objects All() const override {
    Objects all = small_;
    all.insert(all.end(), main_.begin(), main_.end());
    return all;
  }
  bool Asked(std::uint32_t object) override {
    if (Holds(All(), object)) {
      count_[object] = std::min(count_[object] + 1, 3);
      return true;
    }
    in_ghost_ = Holds(ghost_, object);
    if (in_ghost_) Drop(ghost_, object);
    return false;
  }
  void Insert(std::uint32_t object) override {
    count_[object] = 0;
    (in_ghost_ ? main_ : small_).push_back(object);
  }
  void Evict() override {
    if (!small_.empty() && Sum(main_) <= MainRoom()) {
      EvictSmall();
    } else {
      EvictMain();
    }
  }

 private:
  std::uint64_t MainRoom() const { return capacity_ - capacity_ / 10; }
  void EvictSmall() {
    while (!small_.empty()) {
      const std::uint32_t tail = small_.front();
      small_.erase(small_.begin());
      if (count_[tail] > 1) {
        count_[tail] = 0;
        main_.push_back(tail);
        continue;
      }
      if (Size(tail) > MainRoom()) return;
      ghost_.push_back(tail);
      while (Sum(ghost_) > MainRoom()) ghost_.erase(ghost_.begin());
      return;
    }
    EvictMain();
  }
  void EvictMain() {
    while (count_[main_.front()] > 0) {
      --count_[main_.front()];
      std::rotate(main_.begin(), main_.begin() + 1, main_.end());
    }
    main_.erase(main_.begin());
  }
  Objects small_;
  Objects main_;
  Objects ghost_;
  bool in_ghost_ = false;
  std::map<std::uint32_t, int> count_;
};

class SlowSieve : public SlowCache {
 public:
  using SlowCache::SlowCache;
  bool Asked(std::uint32_t object) override {
    if (!Holds(held_, object)) return false;
    visited_[object] = true;
    return true;
  }
  void Evict() override {
    while (visited_[held_[hand_]]) {
      visited_[held_[hand_]] = false;
      hand_ = (hand_ + 1) % held_.size();
    }
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(hand_));
    if (hand_ == held_.size()) hand_ = 0;
  }
  void Insert(std::uint32_t object) override {
    held_.push_back(object);
    visited_[object] = false;
  }

 private:
  std::size_t hand_ = 0;
  std::map<std::uint32_t, bool> visited_;
};

Misses Slowly(Policy policy, const Requests& requests, Unit unit, std::uint64_t capacity) {
  switch (policy) {
    case Policy::kLru:
      return SlowLru(requests, unit, capacity).Play();
    case Policy::kLfu:
      return SlowLfu(requests, unit, capacity).Play();
    case Policy::kFifo:
      return SlowFifo(requests, unit, capacity).Play();
    case Policy::kS3Fifo:
      return SlowS3Fifo(requests, unit, capacity).Play();
    case Policy::kSieve:
      return SlowSieve(requests, unit, capacity).Play();
  }
  return {};
}

Misses Quickly(Policy policy, const Requests& requests, Unit unit, std::uint64_t capacity) {
  if (policy != Policy::kLru) return Simulate(policy, requests, unit, capacity);
  return LruMisses(requests, unit, std::vector{capacity}).front();
}

Requests Drawn(Draw& draw) {
  Requests requests;
  const std::size_t objects = 1 + draw.Below(40);
  for (std::size_t i = 0; i < objects; ++i) requests.bytes.push_back(1 + draw.Below(30));
  const std::size_t few = 1 + draw.Below(objects);
  for (std::size_t i = 0; i < 400; ++i) {
    const std::size_t object = draw.Below(draw.OneIn(3) ? objects : few);
    requests.all.push_back({static_cast<std::uint32_t>(object), static_cast<std::int64_t>(i)});
  }
  return requests;
}

// Of whole numbers alone, so that another program makes the same.
Requests Skewed(std::uint64_t count, std::uint32_t objects) {
  Requests requests;
  for (std::uint64_t i = 0; i < objects; ++i) requests.bytes.push_back(1 + Mixed(i) % 1000);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t least =
        std::min({Mixed(3 * i) % objects, Mixed(3 * i + 1) % objects, Mixed(3 * i + 2) % objects});
    requests.all.push_back({static_cast<std::uint32_t>(least), static_cast<std::int64_t>(i)});
  }
  return requests;
}

struct Known {
  Policy policy;
  std::uint64_t capacity;
  Misses misses;
};

void CheckKnown(const Requests& requests, Unit unit, const std::vector<Known>& rows) {
  for (const Known& row : rows) {
    BOOST_TEST_CONTEXT(NameOf(row.policy) << " of " << row.capacity) {
      const Misses found = Quickly(row.policy, requests, unit, row.capacity);
      BOOST_TEST(found.requests == row.misses.requests);
      if (row.misses.bytes != 0) BOOST_TEST(found.bytes == row.misses.bytes);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(as_a_slow_cache_of_the_same_policy) {
  const std::uint64_t seed = SeedOfThisRun();
  Draw draw(seed);
  for (int round = 0; round < 150; ++round) {
    const Requests requests = Drawn(draw);
    for (const Unit unit : {Unit::kObjects, Unit::kBytes}) {
      // An LRU by stack distances: no object passes it by.
      const std::uint64_t largest = *std::max_element(requests.bytes.begin(), requests.bytes.end());
      const std::uint64_t most = unit == Unit::kObjects ? 45 : requests.distinct_bytes() + 2;
      for (const Policy policy : kPolicies) {
        std::uint64_t capacity = 1 + draw.Below(most);
        if (policy == Policy::kLru && unit == Unit::kBytes) capacity += largest;
        BOOST_TEST_CONTEXT(NameOf(policy)
                           << " of " << capacity << ", round " << round << ", seed " << seed) {
          const Misses found = Quickly(policy, requests, unit, capacity);
          const Misses slow = Slowly(policy, requests, unit, capacity);
          BOOST_TEST(found.requests == slow.requests);
          BOOST_TEST(found.bytes == slow.bytes);
        }
      }
    }
  }
}

// Made with LRU, LFU, FIFO, S3FIFOv0 (the published one) and Sieve of libCacheSim's Python package.
BOOST_AUTO_TEST_CASE(as_libcachesim_on_the_same_requests) {
  const Requests requests = Skewed(50'000, 2000);
  CheckKnown(requests, Unit::kObjects,
             {{Policy::kLru, 20, {49150, 0}},     {Policy::kLru, 200, {41225, 0}},
              {Policy::kLru, 500, {28795, 0}},    {Policy::kLru, 1500, {2701, 0}},
              {Policy::kLfu, 20, {48959, 0}},     {Policy::kLfu, 200, {39775, 0}},
              {Policy::kLfu, 500, {26243, 0}},    {Policy::kLfu, 1500, {2394, 0}},
              {Policy::kFifo, 20, {49154, 0}},    {Policy::kFifo, 200, {41410, 0}},
              {Policy::kFifo, 500, {29732, 0}},   {Policy::kFifo, 1500, {4505, 0}},
              {Policy::kS3Fifo, 20, {48908, 0}},  {Policy::kS3Fifo, 200, {39651, 0}},
              {Policy::kS3Fifo, 500, {26707, 0}}, {Policy::kS3Fifo, 1500, {2574, 0}},
              {Policy::kSieve, 20, {48918, 0}},   {Policy::kSieve, 200, {39349, 0}},
              {Policy::kSieve, 500, {25324, 0}},  {Policy::kSieve, 1500, {2396, 0}}});
  CheckKnown(requests, Unit::kBytes,
             {{Policy::kLru, 20'000, {48296, 23810532}},
              {Policy::kLru, 200'000, {32658, 16131589}},
              {Policy::kLru, 800'000, {2072, 1030906}},
              {Policy::kLfu, 20'000, {48010, 23659641}},
              {Policy::kLfu, 200'000, {30138, 15055453}},
              {Policy::kLfu, 800'000, {1988, 983245}},
              {Policy::kFifo, 20'000, {48282, 23804927}},
              {Policy::kFifo, 200'000, {33184, 16384994}},
              {Policy::kFifo, 800'000, {3191, 1590262}},
              {Policy::kS3Fifo, 20'000, {47867, 23570724}},
              {Policy::kS3Fifo, 200'000, {30336, 14988738}},
              {Policy::kS3Fifo, 800'000, {2086, 1036698}},
              {Policy::kSieve, 20'000, {47860, 23635005}},
              {Policy::kSieve, 200'000, {28934, 14476881}},
              {Policy::kSieve, 800'000, {1988, 983245}}});
}

// What libCacheSim's own test states of its sample trace, data/cloudPhysicsIO.oracleGeneral.bin in
// its source package. The trace is not ours to copy: WAYBILL_CLOUD_PHYSICS names it.
BOOST_AUTO_TEST_CASE(as_libcachesim_on_its_own_trace) {
  const char* const path = std::getenv("WAYBILL_CLOUD_PHYSICS");
  if (path == nullptr) {
    BOOST_TEST_MESSAGE("left out: WAYBILL_CLOUD_PHYSICS does not name libCacheSim's trace");
    return;
  }
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  constexpr std::size_t kEntry = 24;  // time, object, size, next use: 4, 8, 4 and 8 bytes
  Requests requests;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (std::size_t at = 0; at + kEntry <= text.size(); at += kEntry) {
    std::uint64_t object = 0;
    std::uint32_t bytes = 0;
    std::memcpy(&object, &text[at + 4], sizeof object);
    std::memcpy(&bytes, &text[at + 12], sizeof bytes);
    const auto number = static_cast<std::uint32_t>(numbers.size());
    const auto [found, is_new] = numbers.emplace(object, number);
    if (is_new) requests.bytes.push_back(bytes);
    requests.all.push_back({found->second, 0});
  }
  BOOST_TEST(requests.all.size() == 113'872U);
  BOOST_TEST(requests.total_bytes() == 4'368'040'448U);
  constexpr std::uint64_t kStep = 128 << 20;
  CheckKnown(requests, Unit::kBytes,
             {{Policy::kLru, kStep, {93374, 4214303232}},
              {Policy::kLru, 4 * kStep, {81722, 3660569600}},
              {Policy::kLru, 8 * kStep, {71704, 3061662720}},
              {Policy::kFifo, kStep, {93403, 4213112832}},
              {Policy::kFifo, 4 * kStep, {84025, 3807412736}},
              {Policy::kFifo, 8 * kStep, {72140, 3077547520}},
              {Policy::kLfu, kStep, {91699, 4158632960}},
              {Policy::kLfu, 4 * kStep, {76707, 3455379968}},
              {Policy::kLfu, 8 * kStep, {64376, 2696345600}},
              {Policy::kS3Fifo, kStep, {89307, 4040718336}},
              {Policy::kS3Fifo, 4 * kStep, {76791, 3282235904}},
              {Policy::kS3Fifo, 8 * kStep, {70355, 2979649536}},
              {Policy::kSieve, kStep, {91699, 4158632960}},
              {Policy::kSieve, 4 * kStep, {76707, 3455379968}},
              {Policy::kSieve, 8 * kStep, {64376, 2696345600}}});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
