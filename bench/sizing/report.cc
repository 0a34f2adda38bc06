#include "bench/sizing/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sizing/plot.h"
#include "waybill/maintenance.h"

namespace waybill::bench {

namespace {

using cli::BytesText;
using cli::SecondsText;
using nlohmann::ordered_json;

std::string NsText(double nanoseconds) { return SecondsText(nanoseconds / 1e9); }

double ADay(std::uint64_t count, double days) { return static_cast<double>(count) / days; }

double SecretsOf(const Sample& sample) {
  return static_cast<double>(sample.secrets) /
         static_cast<double>(std::max<std::uint64_t>(1, sample.records));
}

const ReplayResult* YearOf(const Run& run, const cli::NodeShape& shape) {
  for (const Year& year : run.years) {
    if (year.shape.name == shape.name) return &year.result;
  }
  return nullptr;
}

void AppendStudy(const Run& run, const Study& study, std::string& out) {
  const auto line = [&out](const std::string& text) { out += text + "\n"; };
  const ReplayResult& store = study.store;
  const IoCount io = store.io();
  line(
      fmt::format("{}: {:.0f} pods, {:.0f} images, {:.0f} tenants; {:g} days, {} decisions, {} "
                  "pulls, {} write-backs",
                  study.shape.name, study.shape.pods, study.shape.images, study.shape.tenants,
                  study.days, store.decisions, store.pulls.count, store.write_backs.count));
  line(
      "                        hit rate       p50       p99     p99.9   resident    on disk  "
      "flushes/day  written/day    start");
  const auto row = [&](const std::string& name, const std::string& hits, const Times& times,
                       double resident, double disk, const IoCount& written, double start) {
    line(fmt::format("  {:<22}{:>8}{:>10}{:>10}{:>10}{:>11}{:>11}{:>13.0f}{:>13}{:>9}", name, hits,
                     NsText(times.p50), NsText(times.p99), NsText(times.p999), BytesText(resident),
                     BytesText(disk), ADay(written.flushes, study.days),
                     BytesText(ADay(written.block_bytes, study.days)), SecondsText(start)));
  };
  row("waybill", "n/a", study.decision.median, static_cast<double>(store.resident_bytes),
      static_cast<double>(store.end.store_bytes), io, study.start_seconds);
  for (const CacheStudy& cache : study.caches) {
    row(fmt::format("files, LRU of {}", cache.capacity),
        fmt::format("{:.1f} %", cache.hit_rate * 100), cache.decision.median,
        static_cast<double>(cache.resident_bytes), static_cast<double>(study.files.file_disk_bytes),
        study.files.file_io, study.file_start_seconds);
  }
  line(fmt::format("  waybill's spread in {} rounds: p50 {} to {}, p99 {} to {}", run.rounds,
                   NsText(study.decision.least.p50), NsText(study.decision.most.p50),
                   NsText(study.decision.least.p99), NsText(study.decision.most.p99)));
  const auto flushes = [](const Operations& operations) {
    return operations.count == 0
               ? std::string("none")
               : fmt::format("{:.2f}", static_cast<double>(operations.io.flushes) /
                                           static_cast<double>(operations.count));
  };
  line(
      fmt::format("  waybill's flushes: a pull {}, a failed pull {}, a write-back {}, a list that "
                  "deletes nothing {}",
                  flushes(store.pulls), flushes(store.failed_pulls), flushes(store.write_backs),
                  flushes(store.lists)));
  const cli::PresetFigures* earlier = cli::FindFigures(cli::RecordedModel(), study.shape.name);
  const ReplayResult* year = YearOf(run, study.shape);
  if (earlier != nullptr || year != nullptr) {
    const cli::PresetFigures figures = FiguresOf(study, run.calibration, year, earlier);
    const cli::SizingModel model{.empty_bytes = run.calibration.empty_bytes,
                                 .start_seconds_per_byte = run.calibration.start_seconds_per_byte,
                                 .recovery_base_seconds = run.calibration.recovery.base,
                                 .recovery_seconds_per_byte = run.calibration.recovery.slope,
                                 .record_sizes = run.calibration.record_sizes};
    const cli::SizingQuestion question{.shape = study.shape};
    line("  advice: " + cli::AdviceLine(question, cli::Advise(model, figures, question)));
  }
  line("");
}

void AppendYear(const Year& year, std::string& out) {
  const ReplayResult& result = year.result;
  out += fmt::format("{}: a year of {:.0f} days, {} pulls, {} write-backs\n", year.shape.name,
                     result.end.day, result.pulls.count, result.write_backs.count);
  out +=
      "     day   records   secrets  secrets/record  most  data.mdb  bytes/secret  as files  JSON  "
      "bytes/secret\n";
  for (std::size_t i = 0; i < result.samples.size(); ++i) {
    if (i % 8 != 0 && i + 1 != result.samples.size()) continue;
    const Sample& sample = result.samples[i];
    const auto secrets = static_cast<double>(std::max<std::uint64_t>(1, sample.secrets));
    out += fmt::format("  {:>6.0f}{:>10}{:>10}{:>16.2f}{:>6}{:>10}{:>14.0f}{:>10}{:>10}{:>10.0f}\n",
                       sample.day, sample.records, sample.secrets, SecretsOf(sample),
                       sample.most_secrets, BytesText(static_cast<double>(sample.store_bytes)),
                       static_cast<double>(sample.store_bytes) / secrets,
                       BytesText(static_cast<double>(sample.file_bytes)),
                       BytesText(static_cast<double>(sample.json_bytes)),
                       static_cast<double>(sample.json_bytes) / secrets);
  }
  out += "\n";
}

ordered_json JsonOfTimes(const Times& times) {
  return {{"p50Ns", times.p50}, {"p99Ns", times.p99}, {"p999Ns", times.p999}};
}

ordered_json JsonOfSpread(const RoundTimes& spread) {
  return {{"median", JsonOfTimes(spread.median)},
          {"least", JsonOfTimes(spread.least)},
          {"most", JsonOfTimes(spread.most)}};
}

ordered_json JsonOfIo(const IoCount& io, double days) {
  return {{"flushesPerDay", ADay(io.flushes, days)},
          {"bytesPerDay", ADay(io.bytes, days)},
          {"blockBytesPerDay", ADay(io.block_bytes, days)}};
}

ordered_json JsonOfOperations(const Operations& operations) {
  return {{"count", operations.count},
          {"flushes", operations.io.flushes},
          {"bytes", operations.io.bytes}};
}

ordered_json JsonOfSample(const Sample& sample) {
  return {{"day", sample.day},
          {"records", sample.records},
          {"secrets", sample.secrets},
          {"mostSecretsInARecord", sample.most_secrets},
          {"storeBytes", sample.store_bytes},
          {"fileBytes", sample.file_bytes},
          {"jsonBytes", sample.json_bytes}};
}

ordered_json JsonOfShape(const cli::NodeShape& shape) {
  ordered_json json = {{"name", shape.name}};
  for (const cli::ShapeField& field : cli::kShapeFields) {
    json[std::string(field.flag.substr(2))] = shape.*field.value;
  }
  return json;
}

ordered_json JsonOfStudy(const Study& study) {
  const ReplayResult& store = study.store;
  ordered_json caches = ordered_json::array();
  for (const CacheStudy& cache : study.caches) {
    caches.push_back({{"records", cache.capacity},
                      {"hitRate", cache.hit_rate},
                      {"decision", JsonOfSpread(cache.decision)},
                      {"residentBytes", cache.resident_bytes}});
  }
  return {{"shape", JsonOfShape(study.shape)},
          {"days", study.days},
          {"traceHash", fmt::format("{:016x}", store.trace_hash)},
          {"decisions", store.decisions},
          {"allowed", store.allowed},
          {"waybill",
           {{"decision", JsonOfSpread(study.decision)},
            {"diskBytes", store.end.store_bytes},
            {"residentBytes", store.resident_bytes},
            {"startSeconds", study.start_seconds},
            {"io", JsonOfIo(store.io(), study.days)},
            {"pulls", JsonOfOperations(store.pulls)},
            {"failedPulls", JsonOfOperations(store.failed_pulls)},
            {"writeBacks", JsonOfOperations(store.write_backs)},
            {"collections", JsonOfOperations(store.collections)},
            {"lists", JsonOfOperations(store.lists)},
            {"restarts", JsonOfOperations(store.restarts)},
            {"end", JsonOfSample(store.end)}}},
          {"files",
           {{"diskBytes", study.files.file_disk_bytes},
            {"startSeconds", study.file_start_seconds},
            {"io", JsonOfIo(study.files.file_io, study.days)},
            {"caches", caches}}}};
}

}  // namespace

std::string PresetsText() {
  std::string out = fmt::format("{:<24}", "");
  for (const cli::NodeShape& preset : cli::kPresets) out += fmt::format("{:>10}", preset.name);
  out += "\n";
  for (const cli::ShapeField& field : cli::kShapeFields) {
    out += fmt::format("{:<24}", field.flag);
    for (const cli::NodeShape& preset : cli::kPresets) {
      out += fmt::format("{:>10g}", preset.*field.value);
    }
    out += fmt::format("  {}\n", field.unit);
  }
  return out;
}

std::string TextOf(const Run& run) {
  std::string out;
  for (const auto& [name, value] : run.facts) out += fmt::format("{:<12} {}\n", name, value);
  for (const std::string& warning : run.warnings) out += "warning: " + warning + "\n";
  if (!run.studies.empty()) {
    out += fmt::format(
        "seed {}, {} rounds of each side in turn; times are medians of the rounds, and contain the "
        "clock's {:.0f} ns.\n"
        "{}. Written: in whole blocks, without the file system's own.\n\n",
        run.seed, run.rounds, run.clock_nanoseconds,
        run.flushing ? "Flushes are waited for"
                     : "Flushes are counted, not waited for: a decision waits for none");
  }
  for (const Study& study : run.studies) AppendStudy(run, study, out);
  for (const Year& year : run.years) AppendYear(year, out);
  if (!run.calibration.record_sizes.empty()) {
    out += "a record on disk, by its Secrets:";
    for (const cli::RecordSize& size : run.calibration.record_sizes) {
      out += fmt::format("  {:.0f}: {:.0f} B", size.secrets, size.bytes);
    }
    out += "\nan opening, by records, and after a kill within a commit, a pull in flight:";
    for (const StoreSize& size : run.calibration.openings) {
      out += fmt::format("  {:.0f}: {}, {}", size.records, SecondsText(size.start_seconds),
                         SecondsText(size.recovery_seconds));
    }
    out += "\n";
  }
  return out;
}

std::string JsonOf(const Run& run) {
  ordered_json json = {{"name", "sizing"}};
  for (const auto& [name, value] : run.facts) json["machine"][name] = value;
  json["warnings"] = run.warnings;
  json["seed"] = run.seed;
  json["rounds"] = run.rounds;
  json["flushesWaitedFor"] = run.flushing;
  json["clockNs"] = run.clock_nanoseconds;
  ordered_json sizes = ordered_json::array();
  for (const cli::RecordSize& size : run.calibration.record_sizes) {
    sizes.push_back({{"secrets", size.secrets}, {"bytes", size.bytes}});
  }
  json["recordSizes"] = sizes;
  ordered_json openings = ordered_json::array();
  for (const StoreSize& size : run.calibration.openings) {
    openings.push_back({{"records", size.records},
                        {"bytes", size.bytes},
                        {"startSeconds", size.start_seconds},
                        {"recoverySeconds", size.recovery_seconds}});
  }
  json["openings"] = openings;
  json["nodes"] = ordered_json::array();
  for (const Study& study : run.studies) json["nodes"].push_back(JsonOfStudy(study));
  json["years"] = ordered_json::array();
  for (const Year& year : run.years) {
    ordered_json samples = ordered_json::array();
    for (const Sample& sample : year.result.samples) samples.push_back(JsonOfSample(sample));
    json["years"].push_back({{"shape", JsonOfShape(year.shape)},
                             {"traceHash", fmt::format("{:016x}", year.result.trace_hash)},
                             {"mostRecords", year.result.most_records},
                             {"samples", samples}});
  }
  return json.dump(1) + "\n";
}

std::string PlotOfCaches(const Run& run) {
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
                     .y = {.title = "hit rate of the LRU, %", .from = 0, .to = 100}};
  const std::pair<const char*, double Times::*> quantiles[] = {{"p99", &Times::p99},
                                                               {"p50", &Times::p50}};
  for (const auto& [name, quantile] : quantiles) {
    sizing::Series files{.name = fmt::format("files + LRU, {}", name)};
    sizing::Series waybill{.name = fmt::format("waybill, {}", name)};
    for (const CacheStudy& cache : largest->caches) {
      const auto x = static_cast<double>(cache.capacity);
      files.points.emplace_back(x, cache.decision.median.*quantile / 1000);
      waybill.points.emplace_back(x, largest->decision.median.*quantile / 1000);
    }
    times.series.push_back(std::move(files));
    times.series.push_back(std::move(waybill));
  }
  for (const Study& study : run.studies) {
    sizing::Series series{.name = std::string(study.shape.name)};
    for (const CacheStudy& cache : study.caches) {
      series.points.emplace_back(static_cast<double>(cache.capacity), 100 * cache.hit_rate);
    }
    hits.series.push_back(std::move(series));
  }
  return sizing::SvgOf("waybill, and an LRU of decoded records in front of files", {times, hits});
}

std::string PlotOfYears(const Run& run) {
  const sizing::Axis days{.title = "days", .from = 0};
  sizing::Panel secrets{.x = days, .y = {.title = "Secrets in a record, mean", .from = 0}};
  sizing::Panel bytes{.x = days, .y = {.title = "KiB on disk for a record", .from = 0}};
  sizing::Series files{.name = "as files", .faint = true};
  for (const Year& year : run.years) {
    sizing::Series of_secrets{.name = std::string(year.shape.name)};
    sizing::Series of_bytes = of_secrets;
    files.points.clear();
    for (const Sample& sample : year.result.samples) {
      const double kib = 1024 * static_cast<double>(std::max<std::uint64_t>(1, sample.records));
      of_secrets.points.emplace_back(sample.day, SecretsOf(sample));
      of_bytes.points.emplace_back(sample.day, static_cast<double>(sample.store_bytes) / kib);
      files.points.emplace_back(sample.day, static_cast<double>(sample.file_bytes) / kib);
    }
    secrets.series.push_back(std::move(of_secrets));
    bytes.series.push_back(std::move(of_bytes));
  }
  bytes.series.push_back(std::move(files));  // the same on each node but for a few large records
  return sizing::SvgOf("How what is stored for an image grows on simulated nodes",
                       {secrets, bytes});
}

std::string ModelOf(const Run& run) {
  const auto fact = [&](std::string_view name) -> std::string {
    for (const auto& [known, value] : run.facts) {
      if (known == name) return value;
    }
    return "unknown";
  };
  std::string out =
      "// Written by `./dev bench sizing`; do not edit.\n\n"
      "// clang-format off\n";
  out += fmt::format("constexpr std::string_view kRecordedOn =\n    \"{}\";\n", fact("machine"));
  out += fmt::format(
      "constexpr std::string_view kRecordedWith =\n    \"commit {}, {}, schema {}, seed {}{}\";\n",
      fact("commit"), fact("date"), kNewestSchema, run.seed,
      run.warnings.empty() ? "" : "; " + run.warnings.front());
  out += fmt::format("constexpr double kEmptyBytes = {};\n", run.calibration.empty_bytes);
  out += fmt::format("constexpr double kStartSecondsPerByte = {:.4g};\n",
                     run.calibration.start_seconds_per_byte);
  out += fmt::format("constexpr double kRecoveryBaseSeconds = {:.4g};\n",
                     run.calibration.recovery.base);
  out += fmt::format("constexpr double kRecoverySecondsPerByte = {:.4g};\n",
                     run.calibration.recovery.slope);
  const auto& sizes = run.calibration.record_sizes;
  out += fmt::format("constexpr std::array<RecordSize, {}> kRecordSizes = {{{{\n", sizes.size());
  for (const cli::RecordSize& size : sizes) {
    out += fmt::format("    {{.secrets = {}, .bytes = {:.1f}}},\n", size.secrets, size.bytes);
  }
  out += "}};\n";
  std::string entries;
  std::size_t count = 0;
  for (const Study& study : run.studies) {
    const ReplayResult* year = YearOf(run, study.shape);
    if (year == nullptr) throw std::runtime_error("a model needs a year of each preset");
    const cli::PresetFigures f = FiguresOf(study, run.calibration, year, nullptr);
    ++count;
    entries += fmt::format("    {{.name = \"{}\",\n", f.name);
    const std::pair<const char*, double> fields[] = {
        {"days", f.days},
        {"decisions_per_day", f.decisions_per_day},
        {"pulls_per_day", f.pulls_per_day},
        {"failed_pulls_per_day", f.failed_pulls_per_day},
        {"write_backs_per_day", f.write_backs_per_day},
        {"collections_per_day", f.collections_per_day},
        {"flushes_per_pull", f.flushes_per_pull},
        {"bytes_per_pull", f.bytes_per_pull},
        {"flushes_per_failed_pull", f.flushes_per_failed_pull},
        {"bytes_per_failed_pull", f.bytes_per_failed_pull},
        {"flushes_per_write_back", f.flushes_per_write_back},
        {"bytes_per_write_back", f.bytes_per_write_back},
        {"flushes_per_collection", f.flushes_per_collection},
        {"bytes_per_collection", f.bytes_per_collection},
        {"flushes_per_list", f.flushes_per_list},
        {"bytes_per_list", f.bytes_per_list},
        {"resident_share", f.resident_share},
        {"decision_p50_ns", f.decision_p50_ns},
        {"decision_p99_ns", f.decision_p99_ns},
        {"start_base_seconds", f.start_base_seconds},
        {"file_start_seconds_per_record", f.file_start_seconds_per_record}};
    for (const auto& [name, value] : fields) {
      entries += fmt::format("     .{} = {:.6g},\n", name, value);
    }
    entries += "     .caches = {{\n";
    for (const cli::CachePoint& cache : f.caches) {
      entries += fmt::format(
          "         {{.capacity = {}, .hit_rate = {:.4f}, .p50_ns = {:.0f}, .p99_ns = {:.0f}, "
          ".bytes = {:.0f}}},\n",
          cache.capacity, cache.hit_rate, cache.p50_ns, cache.p99_ns, cache.bytes);
    }
    entries += fmt::format(
        "     }}}},\n     .year_days = {:g},\n"
        "     .records_per_image = {:.4f},\n     .secrets_growth = {:.4f},\n"
        "     .most_secrets = {},\n     .disk_growth = {:.4f},\n     .file_bytes_per_record = "
        "{:.1f}}},\n",
        f.year_days, f.records_per_image, f.secrets_growth, f.most_secrets, f.disk_growth,
        f.file_bytes_per_record);
  }
  out += fmt::format("constexpr std::array<PresetFigures, {}> kFigures = {{{{\n{}}}}};\n", count,
                     entries);
  return out + "// clang-format on\n";
}

}  // namespace waybill::bench
