#include "bench/sizing/study.h"

#include <algorithm>
#include <stdexcept>

#include "bench/measure.h"
#include "bench/scratch.h"
#include "bench/sizing/store_side.h"
#include "store/base/image_name.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

constexpr std::uint32_t kRecords = 1000;
constexpr std::uint32_t kMoreRecords = 10'000;
constexpr std::uint32_t kSecrets[] = {0, 1, 2, 4, 8, 16, 32, 64, 100};

// The last one, with the medians of all.
ReplayResult MedianOf(std::vector<ReplayResult> rounds) {
  const auto median = [&rounds](const auto& value_of) {
    std::vector<double> values;
    for (const ReplayResult& round : rounds) values.push_back(value_of(round));
    return Median(values);
  };
  const Times decision{median([](const ReplayResult& round) { return round.decision.p50; }),
                       median([](const ReplayResult& round) { return round.decision.p99; })};
  const double start = median([](const ReplayResult& round) { return round.start_seconds; });
  ReplayResult last = std::move(rounds.back());
  last.decision = decision;
  last.start_seconds = start;
  return last;
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

}  // namespace

StoreSize MeasureStore(const std::filesystem::path& directory, std::uint32_t records,
                       std::uint32_t secrets) {
  const std::filesystem::path path = directory / "calibration";
  NodeState node({});
  StoreSize size{.records = static_cast<double>(records)};
  {
    StoreSide side(path, Mode::kStrict, node);
    for (std::uint32_t i = 0; i < records; ++i) {
      const ImageId image{i, i + 1};
      const std::string text = ImageText(image);
      ImagePulledRecord record;
      record.image_ref = RefText(image.ref);
      record.last_updated = node.now();
      ImagePullCredentials& entry = record.credential_mapping[std::string(*ImageName(text))];
      for (std::uint32_t secret = 0; secret < secrets; ++secret) {
        entry.kubernetes_secrets.push_back(SecretText({i * secrets + secret, secret}));
      }
      entry.node_pods_accessible = secrets == 0;
      Must(side.store().Call(PutImage{.record = record}));
      node.Add(image);
    }
    side.List(false);
    size.bytes = static_cast<double>(side.UsedBytes());
    std::vector<double> starts;
    for (int i = 0; i < 9; ++i) starts.push_back(side.Restart());
    size.start_seconds = Median(starts);
    std::vector<double> recoveries;
    for (int i = 0; i < 5; ++i) recoveries.push_back(side.Recover());
    size.recovery_seconds = Median(recoveries);
  }
  std::filesystem::remove_all(path);
  std::filesystem::remove(path.string() + ".witness");
  return size;
}

Calibration Calibrate(const std::filesystem::path& directory) {
  Calibration found;
  cli::SizingModel& model = found.model;
  model.empty_bytes = MeasureStore(directory, 0, 0).bytes;
  StoreSize few;
  for (const std::uint32_t secrets : kSecrets) {
    const StoreSize size = MeasureStore(directory, kRecords, secrets);
    found.record_sizes.push_back(
        {static_cast<double>(secrets), (size.bytes - model.empty_bytes) / kRecords});
    if (secrets == 1) few = size;
  }
  const StoreSize many = MeasureStore(directory, kMoreRecords, 1);
  const auto per_byte = [&](double StoreSize::*seconds) {
    return (many.*seconds - few.*seconds) / (many.bytes - few.bytes);
  };
  model.start_seconds_per_byte = per_byte(&StoreSize::start_seconds);
  model.recovery_seconds_per_byte = per_byte(&StoreSize::recovery_seconds);
  model.recovery_base_seconds =
      std::max(0.0, few.recovery_seconds - few.bytes * model.recovery_seconds_per_byte);
  return found;
}

cli::SizingModel Calibration::Model() const {
  cli::SizingModel with_sizes = model;
  with_sizes.record_sizes = record_sizes;
  return with_sizes;
}

Study StudyNode(const cli::NodeShape& shape, const StudyOptions& options) {
  const ReplayOptions replay{
      .directory = options.directory / "replay", .seed = options.seed, .days = options.days};
  constexpr std::size_t kSides = cli::kCapacities.size() + 1;
  std::vector<std::vector<ReplayResult>> sides(kSides);  // the first is the store
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < kSides; ++i) {
      ReplayOptions side = replay;
      if (i > 0) side.cache = static_cast<std::size_t>(cli::kCapacities[i - 1]);
      // How fast files start depends little on the LRU.
      if (i > 0 && i + 1 < kSides) side.starts = 1;
      sides[i].push_back(ReplayAnew(shape, side));
    }
  }
  Study study{.shape = shape, .days = options.days, .store = MedianOf(std::move(sides[0]))};
  for (std::size_t i = 1; i < kSides; ++i) study.files.push_back(MedianOf(std::move(sides[i])));
  if (options.year_days > 0) {
    cli::NodeShape slower = shape;
    slower.lists_per_day = std::min(4.0, shape.lists_per_day);
    ReplayOptions year = replay;
    year.days = study.year_days = options.year_days;
    study.year = ReplayAnew(slower, year);
  }
  return study;
}

cli::PresetFigures FiguresOf(const Study& study, const cli::SizingModel& sizes) {
  const cli::PresetFigures* recorded = cli::FindFigures(cli::RecordedModel(), study.shape.name);
  cli::PresetFigures figures = recorded == nullptr ? cli::PresetFigures() : *recorded;
  const ReplayResult& store = study.store;
  const auto of = [](const Operations& operations, double days) {
    const auto count = static_cast<double>(operations.count);
    const auto each = [&](std::uint64_t sum) {
      return count == 0 ? 0 : static_cast<double>(sum) / count;
    };
    return cli::OperationFigures{
        .per_day = count / days,
        .flushes = each(operations.io.flushes),
        .bytes = each(operations.io.bytes),
    };
  };
  figures.name = study.shape.name;
  figures.days = study.days;
  figures.decisions_per_day = static_cast<double>(store.decisions) / study.days;
  figures.pulls = of(store.pulls, study.days);
  figures.failed_pulls = of(store.failed_pulls, study.days);
  figures.write_backs = of(store.write_backs, study.days);
  figures.lists = of(store.lists, study.days);
  const auto disk_bytes = static_cast<double>(store.end.store_bytes);
  figures.resident_share = static_cast<double>(store.resident_bytes) / disk_bytes;
  figures.decision_p50_ns = store.decision.p50;
  figures.decision_p99_ns = store.decision.p99;
  figures.start_base_seconds =
      std::max(0.0, store.start_seconds - disk_bytes * sizes.start_seconds_per_byte);
  for (std::size_t i = 0; i < study.files.size(); ++i) {
    const ReplayResult& files = study.files[i];
    figures.cache_hit_rates[i] = files.hit_rate;
    figures.cache_bytes[i] = static_cast<double>(files.resident_bytes);
    figures.cache_hit_ns = files.decision.p50;
    figures.file_start_seconds_per_record =
        files.start_seconds / static_cast<double>(std::max<std::uint64_t>(1, store.end.records));
  }
  if (!study.year) return figures;

  const ReplayResult& year = *study.year;
  // Images are collected now and then: seldom in days, so the year tells how often.
  figures.collections = of(year.collections, study.year_days);
  figures.year_days = study.year_days;
  figures.records_per_image = static_cast<double>(year.most_records) / study.shape.images;
  figures.secrets_growth = static_cast<double>(year.end.secrets) /
                           static_cast<double>(year.end.records) / study.shape.secrets_per_image;
  // The file does not shrink: it is as large as the most records made it.
  const double foretold =
      sizes.empty_bytes +
      static_cast<double>(year.most_records) *
          cli::BytesOfRecord(sizes, study.shape.secrets_per_image * figures.secrets_growth);
  figures.disk_growth = static_cast<double>(year.end.store_bytes) / foretold;
  return figures;
}

}  // namespace waybill::bench
