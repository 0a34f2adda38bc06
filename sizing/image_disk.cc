#include "sizing/image_disk.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <tuple>

namespace waybill::sizing {

namespace {

__extension__ using Wide = unsigned __int128;

class Disk {
 public:
  Disk(const Requests& requests, const ImageGc& gc, std::size_t running, std::uint64_t bytes)
      : requests_(requests), gc_(gc), most_running_(running), images_(requests.bytes.size()) {
    point_.disk_bytes = bytes;
    began_ = tick_ = requests.all.empty() ? 0 : requests.all.front().time_ms;
  }

  DiskPoint Play() {
    for (const Request& request : requests_.all) {
      RunUntil(request.time_ms);
      Use(request);
    }
    return point_;
  }

 private:
  // The zero time of the kubelet's code: before everything.
  static constexpr std::int64_t kNever = INT64_MIN / 2;
  using Order = std::tuple<std::int64_t, std::int64_t, std::uint32_t>;

  struct Image {
    bool present = false;
    bool was_present = false;
    std::size_t users = 0;
    std::int64_t used_since = 0;
    std::int64_t last_used = kNever;  // as the kubelet sees it, at its ticks
    std::int64_t detected = 0;        // the first tick that sees it
  };

  std::uint64_t BytesOf(std::uint32_t object) const { return requests_.BytesOnDisk(object); }
  Order OrderOf(std::uint32_t object) const {
    return {images_[object].last_used, images_[object].detected, object};
  }

  // The ticks up to `now`.
  void RunUntil(std::int64_t now) {
    while (tick_ + kGcPeriodMs <= now) {
      // Nothing happens between two requests that is not due already.
      if (gc_.max_age_ms == 0 && !IsOver()) {
        tick_ += (now - tick_) / kGcPeriodMs * kGcPeriodMs;
        return;
      }
      tick_ += kGcPeriodMs;
      Collect();
    }
  }

  bool IsOver() const {
    const std::uint64_t capacity = point_.disk_bytes;
    const std::uint64_t free_percent =
        static_cast<std::uint64_t>(Wide(capacity - used_) * 100 / capacity);
    return 100 - free_percent >= gc_.high_percent;
  }

  void Collect() {
    if (gc_.max_age_ms > 0 && tick_ - began_ > gc_.max_age_ms) {
      while (!unused_.empty()) {
        const auto [last_used, detected, object] = *unused_.begin();
        if (tick_ - last_used <= gc_.max_age_ms) break;
        Delete(object);
      }
    }
    if (!IsOver()) return;
    const auto wanted_free =
        static_cast<std::int64_t>(Wide(point_.disk_bytes) * (100 - gc_.low_percent) / 100);
    const auto available = static_cast<std::int64_t>(point_.disk_bytes - used_);
    std::int64_t freed = 0;
    for (auto at = unused_.begin(); at != unused_.end();) {
      const auto [last_used, detected, object] = *at++;
      if (tick_ - detected < gc_.min_age_ms) continue;
      Delete(object);
      // The kubelet counts what the runtime lists. Also where nothing is wanted one image goes.
      freed += static_cast<std::int64_t>(requests_.bytes[object]);
      if (freed >= wanted_free - available) break;
    }
  }

  void Delete(std::uint32_t object) {
    unused_.erase(OrderOf(object));
    images_[object].present = false;
    used_ -= BytesOf(object);
    ++point_.collected;
  }

  bool Pull(const Request& request) {
    Image& image = images_[request.object];
    const std::uint64_t bytes = BytesOf(request.object);
    if (bytes > point_.disk_bytes - used_) {
      while (!unused_.empty()) Delete(std::get<2>(*unused_.begin()));
    }
    if (bytes > point_.disk_bytes - used_) {
      ++point_.without_room;
      return false;
    }
    const std::uint64_t listed = requests_.bytes[request.object];
    ++point_.pulled.requests;
    point_.pulled.bytes += listed;
    if (image.was_present) {
      ++point_.again.requests;
      point_.again.bytes += listed;
    }
    used_ += bytes;
    point_.most_bytes = std::max(point_.most_bytes, used_);
    image = {.present = true, .was_present = true, .detected = tick_ + kGcPeriodMs};
    return true;
  }

  void Use(const Request& request) {
    Image& image = images_[request.object];
    if (!image.present && !Pull(request)) return;
    if (image.users++ == 0) {
      unused_.erase(OrderOf(request.object));
      image.used_since = request.time_ms;
      in_use_ += BytesOf(request.object);
      point_.most_in_use = std::max(point_.most_in_use, in_use_);
    }
    running_.push_back(request.object);
    if (running_.size() <= most_running_) return;
    const std::uint32_t ends = running_.front();
    running_.pop_front();
    Image& ended = images_[ends];
    if (--ended.users > 0) return;
    in_use_ -= BytesOf(ends);
    if (tick_ > ended.used_since) ended.last_used = tick_;
    unused_.insert(OrderOf(ends));
  }

  const Requests& requests_;
  const ImageGc& gc_;
  std::size_t most_running_;
  std::vector<Image> images_;
  std::set<Order> unused_;  // of those present, the oldest first
  std::deque<std::uint32_t> running_;
  std::int64_t began_ = 0;
  std::int64_t tick_ = 0;  // the last one
  std::uint64_t used_ = 0;
  std::uint64_t in_use_ = 0;
  DiskPoint point_;
};

}  // namespace

DiskPoint PlayDisk(const Requests& requests, const ImageGc& gc, std::size_t running,
                   std::uint64_t disk_bytes) {
  return Disk(requests, gc, std::max<std::size_t>(1, running), disk_bytes).Play();
}

std::vector<DiskPoint> DiskCurve(const Requests& requests, const ImageGc& gc, std::size_t running,
                                 std::size_t points) {
  std::vector<DiskPoint> curve;
  if (requests.all.empty() || points < 2) return curve;
  // The kubelet rounds the free percent down, so 101 - high percent must be free beside all images.
  // From below 2 it collects whatever is free.
  const std::uint64_t high = std::max<std::uint64_t>(2, gc.high_percent) - 1;
  Wide distinct = 0;
  for (std::uint32_t i = 0; i < requests.bytes.size(); ++i) distinct += requests.BytesOnDisk(i);
  const auto most = static_cast<std::uint64_t>((distinct * 100 + high - 1) / high);
  const DiskPoint all = PlayDisk(requests, gc, running, most);
  const auto least = static_cast<double>(all.most_in_use);
  const double factor = static_cast<double>(most) / least;
  for (std::size_t i = 0; i + 1 < points; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(points - 1);
    const auto bytes = static_cast<std::uint64_t>(std::ceil(least * std::pow(factor, part)));
    curve.push_back(PlayDisk(requests, gc, running, bytes));
  }
  curve.push_back(all);
  return curve;
}

}  // namespace waybill::sizing
