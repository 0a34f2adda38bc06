// The kubelet's image garbage collection (pkg/kubelet/images/image_gc_manager.go), played on disks
// of several sizes: how much is pulled again because it was collected.

#ifndef WAYBILL_SIZING_IMAGE_DISK_H_
#define WAYBILL_SIZING_IMAGE_DISK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sizing/requests.h"

namespace waybill::sizing {

// The fields of a KubeletConfiguration, with its defaults.
struct ImageGc {
  std::uint64_t high_percent = 85;       // imageGCHighThresholdPercent
  std::uint64_t low_percent = 80;        // imageGCLowThresholdPercent
  std::int64_t min_age_ms = 120 * 1000;  // imageMinimumGCAge
  std::int64_t max_age_ms = 0;           // imageMaximumGCAge; 0: off
};
inline constexpr std::int64_t kGcPeriodMs = 300 * 1000;

struct DiskPoint {
  std::uint64_t disk_bytes = 0;
  Misses pulled = {};              // first and again; bytes as listed
  Misses again = {};               // of these, what was on the disk before
  std::uint64_t collected = 0;     // images that were deleted
  std::uint64_t most_in_use = 0;   // bytes on the disk of images of which containers run, at once
  std::uint64_t most_bytes = 0;    // on the disk at once
  std::uint64_t without_room = 0;  // uses whose image did not fit beside those in use

  friend bool operator==(const DiskPoint&, const DiskPoint&) = default;
};

// What a disk of this size does, which holds nothing else and is empty at first. Each request is a
// container that starts. When it ends no trace says: it runs until `running` younger ones have
// started. Where a pull finds no room all unused images go, as when the kubelet evicts.
DiskPoint PlayDisk(const Requests& requests, const ImageGc& gc, std::size_t running,
                   std::uint64_t disk_bytes);

// From what just holds the images that are in use at once to the smallest disk that never collects
// for want of room: each about as many times the one before.
std::vector<DiskPoint> DiskCurve(const Requests& requests, const ImageGc& gc, std::size_t running,
                                 std::size_t points);

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_IMAGE_DISK_H_
