// Image garbage collection against a slow play of the kubelet's code: every tick looks at every
// image.

#include "sizing/image_disk.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "tests/support/draw.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(image_disk)

namespace {

using namespace waybill::sizing;  // NOLINT(google-build-using-namespace)

class SlowKubelet {
 public:
  SlowKubelet(const Requests& requests, const ImageGc& gc, std::size_t running,
              std::uint64_t capacity)
      : requests_(requests), gc_(gc), most_running_(running), capacity_(capacity) {}

  DiskPoint Play() {
    point_.disk_bytes = capacity_;
    const std::int64_t start = requests_.all.front().time_ms;
    std::int64_t next = start + kGcPeriodMs;
    for (const Request& request : requests_.all) {
      for (; next <= request.time_ms; next += kGcPeriodMs) GarbageCollect(next, start);
      Run(request.object);
    }
    return point_;
  }

 private:
  struct Record {
    std::int64_t first_detected = 0;
    std::int64_t last_used = -1'000'000'000'000'000;
  };

  std::set<std::uint32_t> InUse() const { return {running_.begin(), running_.end()}; }
  std::int64_t Used() const {
    std::int64_t sum = 0;
    for (const std::uint32_t image : on_disk_) sum += BytesOf(image);
    return sum;
  }
  std::int64_t BytesOf(std::uint32_t image) const {
    return static_cast<std::int64_t>(requests_.BytesOnDisk(image));
  }

  void GarbageCollect(std::int64_t now, std::int64_t start) {
    const std::set<std::uint32_t> in_use = InUse();
    std::vector<std::uint32_t> order;
    for (const std::uint32_t image : on_disk_) {
      Record& record = records_.try_emplace(image, Record{.first_detected = now}).first->second;
      if (in_use.contains(image)) {
        record.last_used = now;
      } else {
        order.push_back(image);
      }
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Record& left = records_.at(a);
      const Record& right = records_.at(b);
      if (left.last_used != right.last_used) return left.last_used < right.last_used;
      return left.first_detected != right.first_detected
                 ? left.first_detected < right.first_detected
                 : a < b;
    });
    if (gc_.max_age_ms > 0 && now - start > gc_.max_age_ms) {
      std::vector<std::uint32_t> left;
      for (const std::uint32_t image : order) {
        if (now - records_.at(image).last_used > gc_.max_age_ms) {
          Remove(image);
        } else {
          left.push_back(image);
        }
      }
      order = left;
    }
    const auto capacity = static_cast<std::int64_t>(capacity_);
    const std::int64_t available = capacity - Used();
    const std::int64_t usage = 100 - available * 100 / capacity;
    if (usage < static_cast<std::int64_t>(gc_.high_percent)) return;
    const std::int64_t wanted =
        capacity * (100 - static_cast<std::int64_t>(gc_.low_percent)) / 100 - available;
    std::int64_t freed = 0;
    for (const std::uint32_t image : order) {
      if (now - records_.at(image).first_detected < gc_.min_age_ms) continue;
      Remove(image);
      freed += static_cast<std::int64_t>(requests_.bytes[image]);
      if (freed >= wanted) break;
    }
  }

  void Remove(std::uint32_t image) {
    on_disk_.erase(image);
    records_.erase(image);
    ++point_.collected;
  }

  void Run(std::uint32_t image) {
    const auto capacity = static_cast<std::int64_t>(capacity_);
    if (!on_disk_.contains(image)) {
      if (Used() + BytesOf(image) > capacity) {
        const std::set<std::uint32_t> in_use = InUse();
        const std::set<std::uint32_t> before = on_disk_;
        for (const std::uint32_t one : before) {
          if (!in_use.contains(one)) Remove(one);
        }
      }
      if (Used() + BytesOf(image) > capacity) {
        ++point_.without_room;
        return;
      }
      on_disk_.insert(image);
      ++point_.pulled.requests;
      point_.pulled.bytes += requests_.bytes[image];
      if (!ever_.insert(image).second) {
        ++point_.again.requests;
        point_.again.bytes += requests_.bytes[image];
      }
      point_.most_bytes = std::max(point_.most_bytes, static_cast<std::uint64_t>(Used()));
    }
    running_.push_back(image);
    std::uint64_t in_use = 0;
    for (const std::uint32_t one : InUse()) in_use += requests_.BytesOnDisk(one);
    point_.most_in_use = std::max(point_.most_in_use, in_use);
    if (running_.size() > most_running_) running_.pop_front();
  }

  const Requests& requests_;
  ImageGc gc_;
  std::size_t most_running_;
  std::uint64_t capacity_;
  std::set<std::uint32_t> on_disk_;
  std::set<std::uint32_t> ever_;
  std::map<std::uint32_t, Record> records_;
  std::deque<std::uint32_t> running_;
  DiskPoint point_;
};

Requests Drawn(Draw& draw) {
  Requests requests;
  const std::size_t objects = 1 + draw.Below(30);
  for (std::size_t i = 0; i < objects; ++i) requests.bytes.push_back(1 + draw.Below(100));
  requests.unpacked = draw.From(std::vector{1.0, 2.7, 0.6});
  std::int64_t now = static_cast<std::int64_t>(draw.Below(1000));
  for (std::size_t i = 0; i < 300; ++i) {
    // Also at the very moment of a tick.
    now += static_cast<std::int64_t>(draw.OneIn(4) ? draw.Below(4) * 300'000 : draw.Below(200'000));
    requests.all.push_back({static_cast<std::uint32_t>(draw.Below(objects)), now});
  }
  return requests;
}

// Of all images, on the disk.
std::uint64_t BytesOf(const Requests& requests) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < requests.bytes.size(); ++i) sum += requests.BytesOnDisk(i);
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_CASE(as_a_slow_play_of_the_kubelets_code) {
  const std::uint64_t seed = SeedOfThisRun();
  Draw draw(seed);
  std::uint64_t collected = 0;
  std::uint64_t without_room = 0;
  for (int round = 0; round < 300; ++round) {
    const Requests requests = Drawn(draw);
    ImageGc gc;
    gc.high_percent = draw.Below(101);
    gc.low_percent = draw.Below(gc.high_percent + 1);
    gc.min_age_ms = static_cast<std::int64_t>(draw.Below(3) * 200'000);
    gc.max_age_ms = static_cast<std::int64_t>(draw.Below(3) * 1'500'000);
    const std::size_t running = 1 + draw.Below(20);
    const std::uint64_t capacity = 20 + draw.Below(BytesOf(requests) + 20);
    BOOST_TEST_CONTEXT("round " << round << ", seed " << seed << ", " << capacity << " bytes, "
                                << running << " run, " << gc.high_percent << " " << gc.low_percent
                                << " " << gc.min_age_ms << " " << gc.max_age_ms) {
      const DiskPoint found = PlayDisk(requests, gc, running, capacity);
      const DiskPoint slow = SlowKubelet(requests, gc, running, capacity).Play();
      BOOST_TEST(found.pulled.requests == slow.pulled.requests);
      BOOST_TEST(found.pulled.bytes == slow.pulled.bytes);
      BOOST_TEST(found.again.bytes == slow.again.bytes);
      BOOST_TEST(found.collected == slow.collected);
      BOOST_TEST(found.most_bytes == slow.most_bytes);
      BOOST_TEST(found.most_in_use == slow.most_in_use);
      BOOST_TEST(found.without_room == slow.without_room);
      BOOST_TEST((found == slow));
      collected += found.collected;
      without_room += found.without_room;
    }
  }
  BOOST_TEST(collected > 1000U);
  BOOST_TEST(without_room > 100U);
}

BOOST_AUTO_TEST_CASE(a_disk_with_room_for_all_pulls_nothing_again) {
  Draw draw(SeedOfThisRun());
  for (int round = 0; round < 20; ++round) {
    const Requests requests = Drawn(draw);
    const std::vector<DiskPoint> curve = DiskCurve(requests, {}, 5, 8);
    BOOST_TEST(curve.size() == 8U);
    for (const DiskPoint& point : curve) BOOST_TEST(point.without_room == 0U);
    BOOST_TEST(curve.front().disk_bytes == curve.front().most_in_use);
    BOOST_TEST(curve.back().again.requests == 0U);
    BOOST_TEST(curve.back().collected == 0U);
    BOOST_TEST(curve.back().most_bytes <= BytesOf(requests));
  }
}

// The kubelet rounds the free percent down, so it collects below what the threshold seems to say.
// Below 2 it always does.
BOOST_AUTO_TEST_CASE(the_last_point_is_where_nothing_is_pulled_again) {
  const std::uint64_t seed = SeedOfThisRun();
  Draw draw(seed);
  for (std::uint64_t high = 2; high <= 100; ++high) {
    Requests requests = Drawn(draw);
    for (std::uint64_t& bytes : requests.bytes) bytes = 10'000'000 + draw.Below(990'000'001);
    // All that was ever used, once more, and two looks of the kubelet at it.
    for (std::uint32_t object = 0; object < requests.bytes.size(); ++object) {
      requests.all.push_back({object, requests.all.back().time_ms});
    }
    for (int i = 0; i < 3; ++i) requests.all.push_back({0, requests.all.back().time_ms + 300'000});
    const ImageGc gc{.high_percent = high, .low_percent = std::min<std::uint64_t>(high, 80)};
    const std::size_t running = 1 + draw.Below(5);
    BOOST_TEST_CONTEXT("threshold " << high << ", seed " << seed) {
      const std::uint64_t last = DiskCurve(requests, gc, running, 4).back().disk_bytes;
      const DiskPoint slow = SlowKubelet(requests, gc, running, last).Play();
      BOOST_TEST(slow.again.requests == 0U);
      BOOST_TEST(slow.collected == 0U);
      // Nor is it larger than that takes.
      if (requests.bytes.size() > running) {
        BOOST_TEST(SlowKubelet(requests, gc, running, last - 1).Play().collected > 0U);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
