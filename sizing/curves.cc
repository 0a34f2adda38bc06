#include "sizing/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sizing/plot.h"

namespace waybill::sizing {

namespace {

using internal::Json;

constexpr std::size_t kDiskPoints = 32;

double Real(std::uint64_t count) { return static_cast<double>(count); }

// The unit in which so many bytes are a number of few digits.
struct ByteUnit {
  const char* name;
  double bytes;
};
ByteUnit UnitFor(double bytes) {
  constexpr ByteUnit kUnits[] = {
      {"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}};
  for (const ByteUnit& unit : kUnits) {
    if (bytes >= 2 * unit.bytes) return unit;
  }
  return {"bytes", 1};
}

Panel MissPanel(const MissCurves& curves) {
  const bool objects = curves.unit == Unit::kObjects;
  Panel panel;
  panel.title = objects ? "A cache of records: decisions that miss"
                        : "A store of images, by what it evicts: bytes that are pulled";
  const ByteUnit unit = UnitFor(Real(curves.curves.front().points.front().size));
  panel.x = {.title = objects ? "records that it holds" : fmt::format("size, {}", unit.name),
             .log = true};
  panel.y = {.title = objects ? "misses, % of uses" : "pulled, % of the bytes that are used",
             .to = 100.0};
  for (const MissCurve& curve : curves.curves) {
    Series series{.name = std::string(NameOf(curve.policy))};
    for (const MissPoint& point : curve.points) {
      series.points.emplace_back(Real(point.size) / (objects ? 1 : unit.bytes),
                                 100 * (objects ? point.requests : point.bytes));
    }
    panel.series.push_back(std::move(series));
  }
  const auto& points = panel.series.front().points;
  const double first = 100 * (objects ? curves.first_requests : curves.first_bytes);
  panel.series.push_back({.name = "first uses",
                          .points = {{points.front().first, first}, {points.back().first, first}},
                          .faint = true});
  return panel;
}

Panel DiskPanel(const NodeCurves& curves, bool of_bytes) {
  const ByteUnit size = UnitFor(Real(curves.disk.front().disk_bytes));
  const auto value = [&](const Misses& misses) {
    return Real(of_bytes ? misses.bytes : misses.requests) / curves.days;
  };
  double most = 0;
  for (const DiskPoint& point : curves.disk) most = std::max(most, value(point.pulled));
  const ByteUnit unit = of_bytes ? UnitFor(most) : ByteUnit{"", 1};
  Series all{.name = "in all", .place = 0};
  Series again{.name = "again: collected", .place = 1};
  for (const DiskPoint& point : curves.disk) {
    const double at = Real(point.disk_bytes) / size.bytes;
    all.points.emplace_back(at, value(point.pulled) / unit.bytes);
    again.points.emplace_back(at, value(point.again) / unit.bytes);
  }
  return {.title = fmt::format("The kubelet's image disk, collected at {} % down to {} %: {}",
                               curves.gc.high_percent, curves.gc.low_percent,
                               of_bytes ? "bytes pulled" : "pulls"),
          .x = Axis{.title = fmt::format(
                        "disk, {0}; from {1:.1f} {0} on there is room for all that runs", size.name,
                        Real(curves.disk.front().disk_bytes) / size.bytes),
                    .log = true},
          .y = Axis{.title = of_bytes ? fmt::format("{} a day", unit.name) : "pulls a day"},
          .series = {std::move(all), std::move(again)}};
}

Json JsonOfMisses(const MissCurves& curves) {
  Json list = Json::array();
  for (const MissCurve& curve : curves.curves) {
    Json points = Json::array();
    for (const MissPoint& point : curve.points) {
      points.push_back(
          {{"size", point.size}, {"requests", point.requests}, {"bytes", point.bytes}});
    }
    list.push_back({{"policy", NameOf(curve.policy)}, {"points", points}});
  }
  return {{"sampled", curves.rate},
          {"firstRequests", curves.first_requests},
          {"firstBytes", curves.first_bytes},
          {"curves", list}};
}

void AppendMisses(const MissCurves& curves, std::string_view name, std::string& out) {
  for (const MissCurve& curve : curves.curves) {
    for (const MissPoint& point : curve.points) {
      out += fmt::format("{},{},{},{:.6f},{:.6f},,,,\n", name, NameOf(curve.policy), point.size,
                         point.requests, point.bytes);
    }
  }
}

}  // namespace

NodeCurves CurvesOf(const NodeHistory& history, const ImageGc& gc, std::size_t running, bool all) {
  // Of less than an hour no day can be told.
  NodeCurves curves{.days = std::max(history.days(), 1.0 / 24), .gc = gc, .running = running};
  if (history.requests.all.empty()) return curves;
  if (all) curves.records = CurvesOf(history.requests, Unit::kObjects);
  if (!history.has_bytes()) return curves;
  if (all) curves.bytes = CurvesOf(history.requests, Unit::kBytes);
  curves.disk = DiskCurve(history.requests, gc, running, kDiskPoints);
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
  if (!curves.records.curves.empty()) panels.push_back(MissPanel(curves.records));
  if (curves.bytes) panels.push_back(MissPanel(*curves.bytes));
  if (!curves.disk.empty()) {
    panels.push_back(DiskPanel(curves, true));
    panels.push_back(DiskPanel(curves, false));
  }
  return SvgOf(fmt::format("{:.1f} days of one node", curves.days), panels);
}

std::string CsvOf(const NodeCurves& curves) {
  std::string out =
      "curve,policy,size,missed_requests,missed_bytes,pulls_per_day,pulled_bytes_per_day,"
      "again_per_day,again_bytes_per_day\n";
  AppendMisses(curves.records, "records", out);
  if (curves.bytes) AppendMisses(*curves.bytes, "bytes", out);
  for (const DiskPoint& point : curves.disk) {
    out += fmt::format(
        "image_disk,kubelet,{},,,{:.3f},{:.0f},{:.3f},{:.0f}\n", point.disk_bytes,
        Real(point.pulled.requests) / curves.days, Real(point.pulled.bytes) / curves.days,
        Real(point.again.requests) / curves.days, Real(point.again.bytes) / curves.days);
  }
  return out;
}

Json JsonOf(const NodeCurves& curves) {
  Json json = {{"days", curves.days}, {"records", JsonOfMisses(curves.records)}};
  if (curves.bytes) json["bytes"] = JsonOfMisses(*curves.bytes);
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
