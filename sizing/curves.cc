#include "sizing/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sizing/plot.h"

namespace waybill::sizing {

namespace {

using internal::Json;

constexpr std::size_t kPoints = 32;

double Real(std::uint64_t count) { return static_cast<double>(count); }

struct ByteUnit {
  const char* name;
  double bytes;
};
// The largest in which this is one or more.
ByteUnit UnitFor(double bytes) {
  constexpr ByteUnit kUnits[] = {
      {"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}};
  for (const ByteUnit& unit : kUnits) {
    if (bytes >= unit.bytes) return unit;
  }
  return {"bytes", 1};
}

Panel MissPanel(const NodeCurves& curves) {
  Series lru{.name = "LRU"};
  for (const MissPoint& point : curves.records.points) {
    lru.points.emplace_back(Real(point.size), 100 * point.requests);
  }
  const double first = 100 * curves.records.first_requests;
  const double kubelet = Real(curves.kubelet_records);
  const double most = std::max(lru.points.back().first, kubelet);
  if (most > lru.points.back().first) lru.points.emplace_back(most, first);
  Series first_uses{.name = "first uses", .points = {{1, first}, {most, first}}, .faint = true};
  Panel panel{.title = "A cache of records: decisions that miss",
              .x = Axis{.title = "records that it holds", .log = true, .to = std::max(most, 10.0)},
              .y = Axis{.title = "misses, % of uses", .to = 100.0},
              .series = {std::move(lru), std::move(first_uses)}};
  if (kubelet > 0) panel.marks = {{kubelet, fmt::format("{:.0f}: a kubelet's", kubelet)}};
  return panel;
}

// The sizes that advise names.
std::vector<Mark> DiskMarks(const NodeCurves& curves, double unit) {
  std::vector<std::pair<const DiskPoint*, const char*>> sizes = {
      {&curves.disk.front(), "what runs at once"},
      {LeastWithAgain(curves, 0.1), "a tenth again"},
      {LeastWithAgain(curves, 0), "nothing again"}};
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto& [point, words] = sizes[i];
    // Of one size the last says most.
    if (point == nullptr || (i + 1 < sizes.size() && sizes[i + 1].first == point)) continue;
    marks.push_back({Real(point->disk_bytes) / unit,
                     fmt::format("{}: {}", DiskText(point->disk_bytes), words)});
  }
  return marks;
}

Panel DiskPanel(const NodeCurves& curves, bool of_bytes) {
  const ByteUnit size = UnitFor(Real(curves.disk.back().disk_bytes));
  const auto value = [&](const Misses& misses) {
    return Real(of_bytes ? misses.bytes : misses.requests) / curves.days;
  };
  double most = 0;
  for (const DiskPoint& point : curves.disk) most = std::max(most, value(point.pulled));
  const ByteUnit unit = of_bytes ? UnitFor(most) : ByteUnit{"", 1};
  Series all{.name = "in all"};
  Series again{.name = "again: collected"};
  for (const DiskPoint& point : curves.disk) {
    const double at = Real(point.disk_bytes) / size.bytes;
    all.points.emplace_back(at, value(point.pulled) / unit.bytes);
    again.points.emplace_back(at, value(point.again) / unit.bytes);
  }
  return {
      .title = fmt::format("The kubelet's image disk, collected at {} % down to {} %: {}",
                           curves.gc.high_percent, curves.gc.low_percent,
                           of_bytes ? "bytes pulled" : "pulls"),
      .x = Axis{.title = fmt::format("disk, {}: sizes {}", size.name, curves.unpacked_as),
                .log = true},
      .y = Axis{.title = of_bytes ? fmt::format("{} a day, as listed", unit.name) : "pulls a day"},
      .series = {std::move(all), std::move(again)},
      .marks = DiskMarks(curves, size.bytes)};
}

}  // namespace

std::string DiskText(std::uint64_t bytes) {
  const ByteUnit unit = UnitFor(Real(bytes));
  return fmt::format("{:.2f} {}", std::ceil(Real(bytes) / unit.bytes * 100) / 100, unit.name);
}

NodeCurves CurvesOf(const NodeHistory& history, const ImageGc& gc, std::size_t running, bool all) {
  // Of less than an hour no day can be told.
  NodeCurves curves{.unpacked_as = history.unpacked_as,
                    .days = std::max(history.days(), 1.0 / 24),
                    .gc = gc,
                    .running = running};
  if (history.requests.all.empty()) return curves;
  if (all) curves.records = LruCurve(history.requests, kPoints);
  if (history.has_bytes()) curves.disk = DiskCurve(history.requests, gc, running, kPoints);
  return curves;
}

const DiskPoint* LeastWithAgain(const NodeCurves& curves, double part) {
  const auto is_over = [&](const DiskPoint& point) {
    return Real(point.again.bytes) > part * Real(point.pulled.bytes - point.again.bytes);
  };
  const auto last_over = std::find_if(curves.disk.rbegin(), curves.disk.rend(), is_over);
  return last_over == curves.disk.rbegin() ? nullptr : &*last_over.base();
}

std::string SvgOf(const NodeCurves& curves) {
  std::vector<Panel> panels;
  if (!curves.records.points.empty()) panels.push_back(MissPanel(curves));
  if (!curves.disk.empty()) {
    panels.push_back(DiskPanel(curves, true));
    panels.push_back(DiskPanel(curves, false));
  }
  return SvgOf(fmt::format("{}: {:.1f} days", curves.node, curves.days), panels);
}

std::string CsvOf(const NodeCurves& curves) {
  std::string out =
      "curve,size,missed_requests,pulls_per_day,pulled_bytes_per_day,again_per_day,"
      "again_bytes_per_day\n";
  for (const MissPoint& point : curves.records.points) {
    out += fmt::format("records,{},{:.6f},,,,\n", point.size, point.requests);
  }
  for (const DiskPoint& point : curves.disk) {
    out += fmt::format(
        "image_disk,{},,{:.3f},{:.0f},{:.3f},{:.0f}\n", point.disk_bytes,
        Real(point.pulled.requests) / curves.days, Real(point.pulled.bytes) / curves.days,
        Real(point.again.requests) / curves.days, Real(point.again.bytes) / curves.days);
  }
  return out;
}

Json JsonOf(const NodeCurves& curves) {
  Json sizes = Json::array();
  for (const MissPoint& point : curves.records.points) {
    sizes.push_back({{"size", point.size}, {"requests", point.requests}});
  }
  Json json = {{"days", curves.days},
               {"records", {{"firstRequests", curves.records.first_requests}, {"points", sizes}}}};
  if (curves.disk.empty()) return json;
  Json points = Json::array();
  for (const DiskPoint& point : curves.disk) {
    points.push_back({{"diskBytes", point.disk_bytes},
                      {"pulls", point.pulled.requests},
                      {"pulledBytes", point.pulled.bytes},
                      {"again", point.again.requests},
                      {"againBytes", point.again.bytes},
                      {"collected", point.collected},
                      {"mostBytes", point.most_bytes},
                      {"withoutRoom", point.without_room}});
  }
  json["imageDisk"] = {{"imageGCHighThresholdPercent", curves.gc.high_percent},
                       {"imageGCLowThresholdPercent", curves.gc.low_percent},
                       {"imageMinimumGCAgeSeconds", curves.gc.min_age_ms / 1000},
                       {"imageMaximumGCAgeSeconds", curves.gc.max_age_ms / 1000},
                       {"containersThatRun", curves.running},
                       {"points", points}};
  return json;
}

}  // namespace waybill::sizing
