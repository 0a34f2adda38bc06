#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/sizing/study.h"
#include "sizing/plot.h"
#include "waybill/limits.h"

namespace waybill::bench {

namespace {

using cli::BytesText;
using cli::SecondsText;
using nlohmann::ordered_json;

std::string NsText(double nanoseconds) { return SecondsText(nanoseconds / 1e9); }

void AppendStudy(const Findings& run, const Study& study, std::string& out) {
  const ReplayResult& store = study.store;
  out += fmt::format(
      "\n{}: {:.0f} pods, {:.0f} images, {:.0f} tenants; {:g} days, {} decisions, {} pulls, {} "
      "write-backs\n"
      "                        hit rate       p50       p99   resident  flushes/day  written/day   "
      " "
      "start\n",
      study.shape.name, study.shape.pods, study.shape.images, study.shape.tenants, study.days,
      store.decisions, store.pulls.count, store.write_backs.count);
  const auto row = [&](const std::string& name, const std::string& hits, const ReplayResult& side,
                       const ReplayResult& last) {
    const DiskCalls written = last.io();
    out += fmt::format("  {:<22}{:>8}{:>10}{:>10}{:>11}{:>13.0f}{:>13}{:>9}\n", name, hits,
                       NsText(side.decision.p50), NsText(side.decision.p99),
                       BytesText(static_cast<double>(side.resident_bytes)),
                       static_cast<double>(written.flushes) / study.days,
                       BytesText(static_cast<double>(written.block_bytes) / study.days),
                       SecondsText(last.start_seconds));
  };
  row("waybill", "n/a", store, store);
  for (std::size_t i = 0; i < study.files.size(); ++i) {
    const ReplayResult& files = study.files[i];
    row(fmt::format("files, LRU of {}", cli::kCapacities[i]),
        fmt::format("{:.1f} %", files.hit_rate * 100), files, study.files.back());
  }
  const cli::SizingModel model = run.calibration.Model();
  const cli::SizingQuestion question{.shape = study.shape};
  out += "  advice: " +
         cli::AdviceLine(question, cli::Advise(model, FiguresOf(study, model), question)) + "\n";
}

}  // namespace

std::string TextOf(const Findings& run) {
  std::string out;
  for (const auto& [name, value] : run.machine.facts)
    out += fmt::format("{:<12} {}\n", name, value);
  for (const std::string& warning : run.machine.warnings) out += "warning: " + warning + "\n";
  out += fmt::format(
      "seed {}, {} rounds of each side in turn; times are medians of the rounds.\n"
      "Flushes are counted, not waited for. Written: in whole blocks, without the file system's "
      "own.\n",
      run.seed, run.rounds);
  for (const Study& study : run.studies) AppendStudy(run, study, out);
  return out;
}

std::string JsonOf(const Findings& run) {
  ordered_json json = {{"name", "sizing"}};
  for (const auto& [name, value] : run.machine.facts) json["machine"][name] = value;
  json["warnings"] = run.machine.warnings;
  for (const cli::RecordSize& size : run.calibration.record_sizes) {
    json["recordSizes"].push_back({{"secrets", size.secrets}, {"bytes", size.bytes}});
  }
  for (const Study& study : run.studies) {
    ordered_json caches;
    for (std::size_t i = 0; i < study.files.size(); ++i) {
      caches.push_back({{"records", cli::kCapacities[i]}, {"hitRate", study.files[i].hit_rate}});
    }
    json["nodes"].push_back({{"name", study.shape.name},
                             {"decisionP99Ns", study.store.decision.p99},
                             {"caches", caches}});
  }
  return json.dump(1) + "\n";
}

std::string PlotOfCaches(const Findings& run) {
  const auto largest = std::ranges::max_element(
      run.studies, {}, [](const Study& study) { return study.shape.pods; });
  const sizing::Axis capacity{.title = "records that the LRU holds", .log = true};
  const double kubelet = cli::KubeletsCapacity(largest->shape.pods);
  sizing::Panel times{
      .title = fmt::format("{}: {:.0f} pods", largest->shape.name, largest->shape.pods),
      .x = capacity,
      .y = {.title = "time of a decision, µs", .log = true},
      .marks = {{kubelet, fmt::format("{:.0f}: a kubelet's", kubelet)}}};
  sizing::Panel hits{.title = "all simulated nodes",
                     .x = capacity,
                     .y = {.title = "hit rate of the LRU, %", .to = 100}};
  const std::pair<const char*, double Times::*> quantiles[] = {{"p99", &Times::p99},
                                                               {"p50", &Times::p50}};
  for (const auto& [name, quantile] : quantiles) {
    sizing::Series files{.name = fmt::format("files + LRU, {}", name)};
    sizing::Series waybill{.name = fmt::format("waybill, {}", name)};
    for (std::size_t i = 0; i < largest->files.size(); ++i) {
      const double x = cli::kCapacities[i];
      files.points.emplace_back(x, largest->files[i].decision.*quantile / 1000);
      waybill.points.emplace_back(x, largest->store.decision.*quantile / 1000);
    }
    times.series.push_back(std::move(files));
    times.series.push_back(std::move(waybill));
  }
  for (const Study& study : run.studies) {
    sizing::Series series{.name = std::string(study.shape.name)};
    for (std::size_t i = 0; i < study.files.size(); ++i) {
      series.points.emplace_back(cli::kCapacities[i], 100 * study.files[i].hit_rate);
    }
    hits.series.push_back(std::move(series));
  }
  return sizing::SvgOf("waybill, and an LRU of decoded records in front of files", {times, hits});
}

std::string ModelOf(const Findings& run) {
  std::string out =
      "// Written by `./dev bench sizing`; do not edit.\n\n"
      "// clang-format off\n";
  out += fmt::format("constexpr std::string_view kRecordedOn =\n    \"{}\";\n",
                     run.machine.Fact("machine"));
  out += fmt::format(
      "constexpr std::string_view kRecordedWith =\n    \"commit {}, {}, schema {}, seed {}{}\";\n",
      run.machine.Fact("commit"), run.machine.Fact("date"), kNewestSchema, run.seed,
      run.machine.warnings.empty() ? "" : "; " + run.machine.warnings.front());
  const cli::SizingModel model = run.calibration.Model();
  const auto constant = [&out](const char* name, double value) {
    out += fmt::format("constexpr double {} = {:.5g};\n", name, value);
  };
  constant("kEmptyBytes", model.empty_bytes);
  constant("kStartSecondsPerByte", model.start_seconds_per_byte);
  constant("kRecoveryBaseSeconds", model.recovery_base_seconds);
  constant("kRecoverySecondsPerByte", model.recovery_seconds_per_byte);
  out += fmt::format("constexpr std::array<RecordSize, {}> kRecordSizes = {{{{\n",
                     model.record_sizes.size());
  for (const cli::RecordSize& size : model.record_sizes) {
    out += fmt::format("    {{.secrets = {}, .bytes = {:.1f}}},\n", size.secrets, size.bytes);
  }
  out += fmt::format("}}}};\nconstexpr std::array<PresetFigures, {}> kFigures = {{{{\n",
                     run.studies.size());
  for (const Study& study : run.studies) {
    if (!study.year) throw std::runtime_error("a model needs --year-days");
    const cli::PresetFigures f = FiguresOf(study, model);
    out += fmt::format("    {{.name = \"{}\",\n", f.name);
    const auto field = [&out](const char* name, double value) {
      out += fmt::format("     .{} = {:.6g},\n", name, value);
    };
    field("days", f.days);
    field("decisions_per_day", f.decisions_per_day);
    const std::pair<const char*, const cli::OperationFigures&> operations[] = {
        {"pulls", f.pulls},
        {"failed_pulls", f.failed_pulls},
        {"write_backs", f.write_backs},
        {"collections", f.collections},
        {"lists", f.lists}};
    for (const auto& [name, one] : operations) {
      out += fmt::format("     .{} = {{.per_day = {:.6g}, .flushes = {:.6g}, .bytes = {:.6g}}},\n",
                         name, one.per_day, one.flushes, one.bytes);
    }
    field("resident_share", f.resident_share);
    field("decision_p50_ns", f.decision_p50_ns);
    field("decision_p99_ns", f.decision_p99_ns);
    field("start_base_seconds", f.start_base_seconds);
    field("file_start_seconds_per_record", f.file_start_seconds_per_record);
    field("cache_hit_ns", f.cache_hit_ns);
    out += fmt::format("     .cache_hit_rates = {{{:.4f}}},\n     .cache_bytes = {{{:.0f}}},\n",
                       fmt::join(f.cache_hit_rates, ", "), fmt::join(f.cache_bytes, ", "));
    field("year_days", f.year_days);
    field("records_per_image", f.records_per_image);
    field("secrets_growth", f.secrets_growth);
    out += fmt::format("     .disk_growth = {:.4f}}},\n", f.disk_growth);
  }
  return out + "}};\n// clang-format on\n";
}

}  // namespace waybill::bench
