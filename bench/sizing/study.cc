#include "bench/sizing/study.h"

#include <algorithm>
#include <stdexcept>

#include "bench/measure.h"

namespace waybill::bench {

namespace {

RoundTimes SpreadOf(const std::vector<Times>& rounds) {
  RoundTimes spread;
  for (double Times::*quantile : {&Times::p50, &Times::p99, &Times::p999}) {
    std::vector<double> values;
    for (const Times& round : rounds) values.push_back(round.*quantile);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    spread.least.*quantile = *least;
    spread.most.*quantile = *most;
    spread.median.*quantile = Median(values);
  }
  return spread;
}

// In a directory that is empty before and after.
ReplayResult ReplayAnew(const cli::NodeShape& shape, const ReplayOptions& options) {
  std::filesystem::remove_all(options.directory);
  std::filesystem::create_directories(options.directory);
  ReplayResult result = Replay(shape, options);
  std::filesystem::remove_all(options.directory);
  if (result.differences != 0) {
    throw std::runtime_error("answers differ from those of the trace, first: " +
                             result.first_difference);
  }
  return result;
}

ReplayOptions OptionsOf(const StudyOptions& options) {
  return {.directory = options.directory / "replay",
          .seed = options.seed,
          .days = options.days,
          .flushing = options.flushing};
}

}  // namespace

Study StudyNode(const cli::NodeShape& shape, const StudyOptions& options) {
  Study study{.shape = shape, .days = options.days};
  std::vector<Times> store_rounds;
  std::vector<double> starts;
  std::vector<double> file_starts;
  std::vector<std::vector<Times>> cache_rounds(kCapacities.size());
  for (int round = 0; round < options.rounds; ++round) {
    const bool first = round == 0;
    ReplayResult store = ReplayAnew(shape, OptionsOf(options));
    store_rounds.push_back(store.decision);
    starts.push_back(store.start_seconds);
    if (first) study.store = std::move(store);
    for (std::size_t i = 0; i < kCapacities.size(); ++i) {
      ReplayOptions of_files = OptionsOf(options);
      of_files.store = false;
      of_files.measures_start = i + 1 == kCapacities.size();
      of_files.cache = kCapacities[i];
      ReplayResult files = ReplayAnew(shape, of_files);
      cache_rounds[i].push_back(files.file_decision);
      if (first) {
        study.caches.push_back({.capacity = kCapacities[i],
                                .hit_rate = files.hit_rate,
                                .resident_bytes = files.file_resident_bytes});
      }
      if (i + 1 < kCapacities.size()) continue;
      file_starts.push_back(files.file_start_seconds);
      if (first) study.files = std::move(files);
    }
  }
  study.decision = SpreadOf(store_rounds);
  study.start_seconds = Median(starts);
  study.file_start_seconds = Median(file_starts);
  for (std::size_t i = 0; i < kCapacities.size(); ++i) {
    study.caches[i].decision = SpreadOf(cache_rounds[i]);
  }
  return study;
}

ReplayResult StudyYear(const cli::NodeShape& shape, const StudyOptions& options, double days) {
  cli::NodeShape seldom = shape;
  seldom.lists_per_day = std::min(4.0, shape.lists_per_day);
  ReplayOptions replay = OptionsOf(options);
  replay.days = days;
  replay.sample_days = 7;
  replay.flushing = false;
  return ReplayAnew(seldom, replay);
}

cli::PresetFigures FiguresOf(const Study& study, const Calibration& calibration,
                             const ReplayResult* year, const cli::PresetFigures* earlier) {
  cli::PresetFigures figures = earlier == nullptr ? cli::PresetFigures() : *earlier;
  const ReplayResult& store = study.store;
  const auto a_day = [&](std::uint64_t count) { return static_cast<double>(count) / study.days; };
  const auto each = [](std::uint64_t sum, const Operations& operations) {
    return operations.count == 0 ? 0
                                 : static_cast<double>(sum) / static_cast<double>(operations.count);
  };
  figures.name = study.shape.name;
  figures.days = study.days;
  figures.decisions_per_day = a_day(store.decisions);
  figures.pulls_per_day = a_day(store.pulls.count);
  figures.failed_pulls_per_day = a_day(store.failed_pulls.count);
  figures.write_backs_per_day = a_day(store.write_backs.count);
  figures.flushes_per_pull = each(store.pulls.io.flushes, store.pulls);
  figures.bytes_per_pull = each(store.pulls.io.bytes, store.pulls);
  figures.flushes_per_failed_pull = each(store.failed_pulls.io.flushes, store.failed_pulls);
  figures.bytes_per_failed_pull = each(store.failed_pulls.io.bytes, store.failed_pulls);
  figures.flushes_per_write_back = each(store.write_backs.io.flushes, store.write_backs);
  figures.bytes_per_write_back = each(store.write_backs.io.bytes, store.write_backs);
  figures.flushes_per_list = each(store.lists.io.flushes, store.lists);
  figures.bytes_per_list = each(store.lists.io.bytes, store.lists);
  figures.resident_share =
      static_cast<double>(store.resident_bytes) / static_cast<double>(store.end.store_bytes);
  figures.decision_p50_ns = study.decision.median.p50;
  figures.decision_p99_ns = study.decision.median.p99;
  figures.start_base_seconds =
      std::max(0.0, study.start_seconds - static_cast<double>(store.end.store_bytes) *
                                              calibration.start_seconds_per_byte);
  figures.file_start_seconds_per_record =
      study.file_start_seconds / static_cast<double>(std::max<std::uint64_t>(1, store.end.records));
  for (std::size_t i = 0; i < study.caches.size(); ++i) {
    const CacheStudy& cache = study.caches[i];
    figures.caches[i] = {.capacity = static_cast<double>(cache.capacity),
                         .hit_rate = cache.hit_rate,
                         .p50_ns = cache.decision.median.p50,
                         .p99_ns = cache.decision.median.p99,
                         .bytes = static_cast<double>(cache.resident_bytes)};
  }
  if (year == nullptr) return figures;

  // Images are collected now and then: seldom in days, so the year tells how often.
  figures.collections_per_day = static_cast<double>(year->collections.count) / year->end.day;
  figures.flushes_per_collection = each(year->collections.io.flushes, year->collections);
  figures.bytes_per_collection = each(year->collections.io.bytes, year->collections);
  const cli::SizingModel sizes{.record_sizes = calibration.record_sizes};
  figures.year_days = year->end.day;
  figures.records_per_image = static_cast<double>(year->most_records) / study.shape.images;
  figures.secrets_growth = 0;
  figures.most_secrets = 0;
  double most_bytes = 0;
  for (const Sample& sample : year->samples) {
    const auto records = static_cast<double>(sample.records);
    const double secrets = static_cast<double>(sample.secrets) / records;
    figures.secrets_growth =
        std::max(figures.secrets_growth, secrets / study.shape.secrets_per_image);
    figures.most_secrets = std::max(figures.most_secrets, static_cast<double>(sample.most_secrets));
    figures.file_bytes_per_record =
        std::max(figures.file_bytes_per_record, static_cast<double>(sample.file_bytes) / records);
    most_bytes = std::max(most_bytes, static_cast<double>(sample.store_bytes));
  }
  const double records = study.shape.images * figures.records_per_image;
  const double foretold =
      calibration.empty_bytes +
      records * cli::BytesOfRecord(sizes, study.shape.secrets_per_image * figures.secrets_growth);
  figures.disk_growth = most_bytes / foretold;
  return figures;
}

}  // namespace waybill::bench
