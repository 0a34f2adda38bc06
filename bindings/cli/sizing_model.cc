#include "bindings/cli/sizing_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace waybill::cli {

namespace {

#include "bindings/cli/sizing_model.inc"

// The map has room for a store of several times the size that is expected.
constexpr double kHeadroom = 4;
constexpr double kLeastMapBytes = 16 << 20;

double MapFor(double disk_bytes) {
  double map = kLeastMapBytes;
  while (map < kHeadroom * disk_bytes + ReserveOf(map)) map *= 2;
  return map;
}

double OnLine(double x, double x0, double y0, double x1, double y1) {
  return x1 == x0 ? y0 : y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

// What a cache of this capacity does on a node that is `scale` times as large as the preset's.
CachePoint CacheOf(const PresetFigures& figures, double capacity, double scale, double records) {
  const double at = std::clamp(capacity / scale, kCapacities.front(), kCapacities.back());
  std::size_t right = 1;
  while (right + 1 < kCapacities.size() && kCapacities[right] < at) ++right;
  const auto between = [&](const OfCapacities& values) {
    return OnLine(at, kCapacities[right - 1], values[right - 1], kCapacities[right], values[right]);
  };
  CachePoint point{.capacity = capacity};
  point.hit_rate = std::clamp(between(figures.cache_hit_rates), 0.0, 1.0);
  point.bytes = std::min(between(figures.cache_bytes) * scale,
                         figures.cache_bytes.back() * scale * std::min(1.0, capacity / records));
  return point;
}

}  // namespace

const SizingModel& RecordedModel() {
  static constexpr SizingModel kModel = {.recorded_on = kRecordedOn,
                                         .recorded_with = kRecordedWith,
                                         .empty_bytes = kEmptyBytes,
                                         .start_seconds_per_byte = kStartSecondsPerByte,
                                         .recovery_base_seconds = kRecoveryBaseSeconds,
                                         .recovery_seconds_per_byte = kRecoverySecondsPerByte,
                                         .record_sizes = kRecordSizes,
                                         .presets = kFigures};
  return kModel;
}

const PresetFigures* FindFigures(const SizingModel& model, std::string_view preset) {
  for (const PresetFigures& figures : model.presets) {
    if (figures.name == preset) return &figures;
  }
  return nullptr;
}

double BytesOfRecord(const SizingModel& model, double secrets) {
  const auto sizes = model.record_sizes;
  if (sizes.size() < 2) return sizes.empty() ? 0 : sizes.front().bytes;
  std::size_t right = 1;
  while (right + 1 < sizes.size() && sizes[right].secrets < secrets) ++right;
  const RecordSize& a = sizes[right - 1];
  const RecordSize& b = sizes[right];
  return OnLine(secrets, a.secrets, a.bytes, b.secrets, b.bytes);
}

// Five records a pod, at most 2,000.
double KubeletsCapacity(double pods) { return std::clamp(5 * pods, 1.0, 2000.0); }

SizingAdvice Advise(const SizingModel& model, const PresetFigures& figures,
                    const SizingQuestion& question) {
  const NodeShape& shape = question.shape;
  const NodeShape& preset = *FindPreset(figures.name);
  SizingAdvice advice;
  advice.records = question.records.value_or(shape.images * figures.records_per_image);
  advice.secrets_per_record =
      question.secrets_per_record.value_or(shape.secrets_per_image * figures.secrets_growth);
  advice.bytes_per_record =
      question.bytes_per_record.value_or(BytesOfRecord(model, advice.secrets_per_record));
  advice.disk_bytes =
      (model.empty_bytes + advice.records * advice.bytes_per_record) * figures.disk_growth;
  advice.simulated_days = figures.year_days;
  advice.map_bytes = MapFor(advice.disk_bytes);
  advice.reserve_bytes = ReserveOf(advice.map_bytes);
  advice.resident_bytes = advice.disk_bytes * figures.resident_share;

  const double size_scale = shape.images / preset.images;
  advice.pulls_per_day = question.pulls_per_day.value_or(figures.pulls.per_day * size_scale);
  advice.decisions_per_day = question.decisions_per_day.value_or(
      figures.decisions_per_day * shape.pod_starts_per_day / preset.pod_starts_per_day);
  const double pull_scale =
      figures.pulls.per_day == 0 ? 0 : advice.pulls_per_day / figures.pulls.per_day;
  const auto add = [&advice](double per_day, const OperationFigures& operation) {
    advice.flushes_per_day += per_day * operation.flushes;
    advice.written_bytes_per_day += per_day * operation.bytes;
  };
  add(advice.pulls_per_day, figures.pulls);
  add(question.failed_pulls_per_day.value_or(figures.failed_pulls.per_day * pull_scale),
      figures.failed_pulls);
  add(question.write_backs_per_day.value_or(figures.write_backs.per_day * shape.tenants /
                                            preset.tenants),
      figures.write_backs);
  add(question.collections_per_day.value_or(figures.collections.per_day * pull_scale),
      figures.collections);
  add(shape.lists_per_day, figures.lists);
  advice.start_seconds =
      figures.start_base_seconds + advice.disk_bytes * model.start_seconds_per_byte;
  // A start, and more.
  advice.recovery_seconds =
      std::max(advice.start_seconds,
               model.recovery_base_seconds + advice.disk_bytes * model.recovery_seconds_per_byte);
  advice.file_start_seconds = figures.file_start_seconds_per_record * advice.records;
  advice.decision_p50_ns = figures.decision_p50_ns;
  advice.decision_p99_ns = figures.decision_p99_ns;

  advice.cache = CacheOf(figures, KubeletsCapacity(shape.pods), size_scale, advice.records);
  if (question.cache_hit_rate) advice.cache.hit_rate = *question.cache_hit_rate;
  // A hit costs what one costs an LRU that holds everything; a miss costs that beside waybill.
  const double gain_ns = advice.cache.hit_rate * advice.decision_p50_ns - figures.cache_hit_ns;
  advice.cache_saves_seconds_per_day = gain_ns * advice.decisions_per_day / 1e9;
  advice.cache_pays = advice.cache_saves_seconds_per_day >= kCacheMustSaveSeconds;
  return advice;
}

std::string BytesText(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  const bool whole = unit == 0 || bytes >= 100 || bytes == std::floor(bytes);
  return fmt::format("{:.{}f} {}", bytes, whole ? 0 : 1, kUnits[unit]);
}

std::string SecondsText(double seconds) {
  constexpr const char* kUnits[] = {"s", "ms", "µs", "ns"};
  const double size = std::abs(seconds);
  std::size_t unit = 0;
  double scaled = seconds;
  while (size > 0 && std::abs(scaled) < 1 && unit + 1 < std::size(kUnits)) {
    scaled *= 1000;
    ++unit;
  }
  const double shown = std::abs(scaled);
  return fmt::format("{:.{}f} {}", scaled, shown >= 100 ? 0 : shown >= 10 ? 1 : 2, kUnits[unit]);
}

std::string AdviceLine(const SizingQuestion& question, const SizingAdvice& advice) {
  const double saves = advice.cache_saves_seconds_per_day;
  const std::string gain = fmt::format("it {} {} of a processor a day at {:.0f} % hits, for {}",
                                       saves < 0 ? "costs" : "saves", SecondsText(std::abs(saves)),
                                       advice.cache.hit_rate * 100, BytesText(advice.cache.bytes));
  return fmt::format(
      "{}, {:.0f} pods, {:.0f} images: map {}, {:.0f} times the {} that {:g} days need on disk; a "
      "cache "
      "of {:.0f} records in front {} pay: {}",
      question.shape.name, question.shape.pods, question.shape.images, BytesText(advice.map_bytes),
      advice.map_bytes / advice.disk_bytes, BytesText(advice.disk_bytes), advice.simulated_days,
      advice.cache.capacity, advice.cache_pays ? "would" : "would not", gain);
}

}  // namespace waybill::cli
