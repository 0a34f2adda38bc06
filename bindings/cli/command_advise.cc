// waybill advise: how large a store and its map must be, and whether a cache in front would pay.
// Needs no store: it answers from the recorded model (sizing_model.h), and of a node that has a
// trace, a store or a kubelet directory from what that says (node_advice.h).

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/kubelet_config.h"
#include "bindings/cli/node_advice.h"
#include "bindings/cli/sizing_model.h"
#include "sizing/curves.h"
#include "sizing/lru.h"
#include "store/base/trace.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

// Beyond this many times the simulated node, or below that part of it, figures are extrapolated.
constexpr double kFarFromSimulated = 10;

// What is asked about where nothing else says.
constexpr const NodeShape& kDefault = kPresets[1];
static_assert(kDefault.name == "default");

// The first of kShapeFields are flags of the command, too, in place of a preset's value.
constexpr const char* kOverrides[] = {
    "pods that run at the same time",
    "image refs on the node",
    "namespaces with a pull Secret",
    "Secrets that open an image, mean",
};
constexpr std::uint64_t kMostPullsPerDay = 1'000'000;

std::string Notes() {
  std::string text =
      "Answers come from simulated nodes. What no flag, trace or store states is taken from\n"
      "the preset that is most like the node:";
  for (const NodeShape& p : kPresets) {
    text +=
        fmt::format("\n  {:<8} {:.0f} pods, {:.0f} images, {:.0f} tenants, {:g} Secrets an image",
                    p.name, p.pods, p.images, p.tenants, p.secrets_per_image);
  }
  return text;
}

const ShapeField& FieldOf(std::string_view flag) {
  return *std::find_if(kShapeFields.begin(), kShapeFields.end(),
                       [&](const ShapeField& field) { return field.flag == flag; });
}

// How many times as much.
double Ratio(double value, double before) { return before <= 0 ? 1 : value / before; }

// The preset whose node is most like this one.
const NodeShape* Nearest(const std::vector<sizing::Fitted>& shape) {
  const NodeShape* nearest = &kDefault;
  double least = std::numeric_limits<double>::infinity();
  for (const NodeShape& preset : kPresets) {
    double distance = 0;
    for (const sizing::Fitted& one : shape) {
      if (one.flag != "--images" && one.flag != "--tenants" && one.flag != "--pod-starts-per-day") {
        continue;
      }
      const double its = preset.*FieldOf(one.flag).value;
      distance += std::abs(std::log(std::max(one.value, 1.0) / its));
    }
    if (distance < least) {
      least = distance;
      nearest = &preset;
    }
  }
  return nearest;
}

class AdviseCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.Value("--trace", &trace_, "FILE|-",
                "a node's history, of waybill guard --trace or waybill trace import", Length());
    store_.DeclareOptional(flags);
    flags.Excludes("--trace", {"--store"});
    std::vector<std::pair<std::string, const NodeShape*>> presets;
    presets.reserve(kPresets.size());
    for (const NodeShape& preset : kPresets) presets.emplace_back(preset.name, &preset);
    flags.Choice("--preset", &preset_, presets, "the kind of node (default)");
    for (std::size_t i = 0; i < std::size(kOverrides); ++i) {
      const ShapeField& field = kShapeFields[i];
      flags.Value(std::string(field.flag), &values_[i], "N", kOverrides[i],
                  Number{static_cast<std::uint64_t>(std::ceil(field.least)),
                         static_cast<std::uint64_t>(field.most)});
    }
    flags.Value("--pulls-per-day", &pulls_, "N", "pulls of images, new or again",
                Number{0, kMostPullsPerDay});
    flags.Value("--curves", &curves_, "PREFIX",
                "write PREFIX.svg, PREFIX.csv and PREFIX.json: what a cache and an image\n"
                "disk of each size would have missed",
                Length());
    flags.Needs("--curves", {"--trace"});
    DeclareImageGc(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    if (trace_ || !store_.store.empty()) return RunOfNode(out);
    if (preset_ == nullptr) preset_ = &kDefault;
    const SizingModel& model = RecordedModel();
    auto question = TRY(Question());
    const PresetFigures& figures = *TRY(FiguresOf(question.shape));
    const SizingAdvice advice = Advise(model, figures, question);
    WriteJson(model, question, advice, out);
    if (!out.json()) WriteText(model, question, figures, advice, out);
    return ExitCode::kYes;
  }

 private:
  using Values = std::array<std::optional<double>, std::size(kOverrides)>;

  // The kubelet's fields of its image garbage collection, by the names of its old flags.
  void DeclareImageGc(Flags& flags) {
    const auto percent = [&](const char* name, std::uint64_t* target, const char* help) {
      flags.Value(name, target, "PERCENT", help, Number{0, 100}, kSeldom);
    };
    percent("--image-gc-high-threshold", &gc_.high_percent,
            "imageGCHighThresholdPercent of the kubelet; 85");
    percent("--image-gc-low-threshold", &gc_.low_percent, "imageGCLowThresholdPercent; 80");
    flags.Value("--image-minimum-gc-age", &minimum_age_, "TIME", "imageMinimumGCAge; 2m",
                ParseDuration, kSeldom);
    flags.Value("--image-maximum-gc-age", &maximum_age_, "TIME", "imageMaximumGCAge; 0: none",
                ParseDuration, kSeldom);
    for (const char* const name : {"--image-gc-high-threshold", "--image-gc-low-threshold",
                                   "--image-minimum-gc-age", "--image-maximum-gc-age"}) {
      flags.Needs(name, {"--trace"}, "only a trace says which images were used when");
    }
    DeclareKubeletConfig(flags, "the four fields of image garbage collection");
    flags.Needs("--kubelet-config", {"--trace"}, "only a trace says which images were used when");
    flags.Check([this]() -> Result<void> {
      gc_.min_age_ms = std::chrono::milliseconds(minimum_age_).count();
      gc_.max_age_ms = std::chrono::milliseconds(maximum_age_).count();
      if (gc_.low_percent <= gc_.high_percent) return {};
      return BadFlag(
          "--image-gc-low-threshold",
          fmt::format("{} % is above the high threshold, {} %", gc_.low_percent, gc_.high_percent),
          "a kubelet refuses that, too");
    });
  }

  static Result<const PresetFigures*> FiguresOf(const NodeShape& shape) {
    const PresetFigures* const figures = FindFigures(RecordedModel(), shape.name);
    if (figures != nullptr) return figures;
    return Error{ErrorCode::kInternal, "the recorded model lacks a preset"};
  }

  Result<SizingQuestion> Question() const {
    SizingQuestion question{.shape = *preset_};
    NodeShape& shape = question.shape;
    for (std::size_t i = 0; i < std::size(kOverrides); ++i) {
      if (values_[i]) shape.*kShapeFields[i].value = *values_[i];
    }
    question.pulls_per_day = pulls_;
    // More pods start more often.
    shape.pod_starts_per_day *= shape.pods / preset_->pods;
    TRY(CheckSecrets(shape));
    return question;
  }

  static Result<void> CheckSecrets(const NodeShape& shape) {
    if (shape.secrets_per_image > shape.tenants) {
      return BadFlag("--secrets-per-image",
                     fmt::format("{:g} Secrets an image are more than {:.0f} tenants have",
                                 shape.secrets_per_image, shape.tenants),
                     "state --tenants, too");
    }
    return {};
  }

  static bool IsExtrapolated(const NodeShape& shape) {
    const double scale = shape.images / FindPreset(shape.name)->images;
    return scale > kFarFromSimulated || scale < 1 / kFarFromSimulated;
  }

  static void WriteText(const SizingModel& model, const SizingQuestion& question,
                        const PresetFigures& figures, const SizingAdvice& a, Output& out) {
    const NodeShape& shape = question.shape;
    const auto text = [](std::string label, std::string value) {
      return Field{{}, std::move(label), std::move(value)};
    };
    const double saves = a.cache_saves_seconds_per_day;
    std::vector<Field> fields = {
        text("node", fmt::format("{}: {:.0f} pods, {:.0f} images, {:.0f} tenants, {:g} Secrets an "
                                 "image, {:.0f} pulls a day",
                                 shape.name, shape.pods, shape.images, shape.tenants,
                                 shape.secrets_per_image, a.pulls_per_day)),
        text("map", fmt::format("{}: --map-size {:.0f}; of it, {} for deletions",
                                BytesText(a.map_bytes), a.map_bytes, BytesText(a.reserve_bytes))),
        text("disk", fmt::format("{} at most in {:g} days, up to 2 MiB of room ahead, and as much "
                                 "again for a backup",
                                 BytesText(a.disk_bytes), a.simulated_days)),
        text("records", fmt::format("{:.0f}, of {} with {:.1f} Secrets each", a.records,
                                    BytesText(a.bytes_per_record), a.secrets_per_record)),
        text("resident", BytesText(a.resident_bytes)),
        text("writes", fmt::format("{:.0f} flushes and {} a day", a.flushes_per_day,
                                   BytesText(a.written_bytes_per_day))),
        text("start", fmt::format("{}, every page checked; files: {}", SecondsText(a.start_seconds),
                                  SecondsText(a.file_start_seconds))),
        text("recovery", fmt::format("{} after a kill within a commit, a pull in flight",
                                     SecondsText(a.recovery_seconds))),
        text("decision",
             fmt::format("{}, 99 % within {}; {:.0f} a day", SecondsText(a.decision_p50_ns / 1e9),
                         SecondsText(a.decision_p99_ns / 1e9), a.decisions_per_day)),
        text("cache",
             fmt::format("{}: {:.0f} decoded records in front {} {} of a processor a day, at "
                         "{:.0f} % hits and for {}",
                         a.cache_pays ? "would pay" : "would not pay", a.cache.capacity,
                         saves < 0 ? "cost" : "save", SecondsText(std::abs(saves)),
                         a.cache.hit_rate * 100, BytesText(a.cache.bytes))),
        text("recorded", fmt::format("{}; {}; {:g} and {:g} simulated days", model.recorded_on,
                                     model.recorded_with, figures.days, figures.year_days)),
    };
    if (IsExtrapolated(shape)) {
      fields.push_back(text("note", "far from the node that was simulated: extrapolated"));
    }
    out.WriteFields(fields);
  }

  static void WriteJson(const SizingModel& model, const SizingQuestion& question,
                        const SizingAdvice& a, Output& out) {
    const NodeShape& shape = question.shape;
    const auto whole = [](double value) { return static_cast<std::uint64_t>(std::llround(value)); };
    out.WriteJson({{"preset", shape.name},
                   {"pods", whole(shape.pods)},
                   {"images", whole(shape.images)},
                   {"tenants", whole(shape.tenants)},
                   {"secretsPerImage", shape.secrets_per_image},
                   {"pullsPerDay", whole(a.pulls_per_day)},
                   {"decisionsPerDay", whole(a.decisions_per_day)},
                   {"mapBytes", whole(a.map_bytes)},
                   {"reserveBytes", whole(a.reserve_bytes)},
                   {"simulatedDays", a.simulated_days},
                   {"diskBytes", whole(a.disk_bytes)},
                   {"backupBytes", whole(a.disk_bytes)},
                   {"records", whole(a.records)},
                   {"secretsPerRecord", a.secrets_per_record},
                   {"bytesPerRecord", whole(a.bytes_per_record)},
                   {"residentBytes", whole(a.resident_bytes)},
                   {"flushesPerDay", whole(a.flushes_per_day)},
                   {"writtenBytesPerDay", whole(a.written_bytes_per_day)},
                   {"startSeconds", a.start_seconds},
                   {"recoverySeconds", a.recovery_seconds},
                   {"fileStartSeconds", a.file_start_seconds},
                   {"decisionP50Ns", whole(a.decision_p50_ns)},
                   {"decisionP99Ns", whole(a.decision_p99_ns)},
                   {"cache",
                    {{"records", whole(a.cache.capacity)},
                     {"hitRate", a.cache.hit_rate},
                     {"bytes", whole(a.cache.bytes)},
                     {"savesSecondsPerDay", a.cache_saves_seconds_per_day},
                     {"pays", a.cache_pays}}},
                   {"extrapolated", IsExtrapolated(shape)},
                   {"recordedOn", model.recorded_on},
                   {"recordedWith", model.recorded_with}});
  }

  Result<std::optional<sizing::NodeHistory>> History() const {
    if (!trace_) return std::nullopt;
    auto reader = TraceReader::Open(*trace_);
    if (!reader) {
      // The flag is wrong, not the system.
      if (reader.error().code == ErrorCode::kNotFound) {
        reader.error().code = ErrorCode::kInvalidArgument;
      }
      return reader.error();
    }
    auto history = TRY(sizing::ReadHistory(*reader));
    if (history.events == 0) {
      return Error{ErrorCode::kInvalidArgument, InputName(*trace_) + " has no events",
                   "a trace of some days says something of a node"};
    }
    return history;
  }

  Result<NodeSource> Source(const std::optional<sizing::NodeHistory>& history) const {
    if (!history) return SourceOfStore(store_);
    const NodeShape* const preset = preset_ == nullptr ? &kDefault : preset_;
    return SourceOf(*history, InputName(*trace_), preset->containers_per_pod);
  }

  Result<ExitCode> RunOfNode(Output& out) {
    const auto history = TRY(History());
    const auto source = TRY(Source(history));
    const NodeShape& base = preset_ == nullptr ? *Nearest(source.shape) : *preset_;
    const SizingModel& model = RecordedModel();
    const PresetFigures& figures = *TRY(FiguresOf(base));
    const NodeShape fitted = Fitted(base, source);
    SizingQuestion question = TRY(QuestionOf(fitted, source, model, values_));
    if (history && !history->requests.all.empty()) {
      const auto capacity =
          static_cast<std::uint64_t>(std::llround(KubeletsCapacity(question.shape.pods)));
      const auto misses = sizing::LruMisses(history->requests, std::vector{capacity});
      question.cache_hit_rate = 1 - static_cast<double>(misses.front()) /
                                        static_cast<double>(history->requests.all.size());
    }
    const SizingAdvice advice = Advise(model, figures, question);
    std::vector<AdviceRow> rows = RowsOf(source, question, figures, advice);
    const SizingQuestion plain = TRY(QuestionOf(fitted, source, model, {}));
    Explain(RowsOf(source, plain, figures, Advise(model, figures, plain)), rows);
    std::optional<sizing::NodeCurves> curves;
    if (history) {
      const auto running = static_cast<std::size_t>(
          std::llround(question.shape.pods * question.shape.containers_per_pod));
      curves = sizing::CurvesOf(*history, gc_, running, curves_.has_value());
      AddImageDisk(*history, *curves, rows);
      curves->kubelet_records = static_cast<std::uint64_t>(std::llround(advice.cache.capacity));
      curves->node = history->node.empty()
                         ? std::filesystem::path(InputName(*trace_)).filename().string()
                         : history->node;
    }
    if (curves_ && curves->records.points.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--curves: {} says of no image that it was used or pulled; no file "
                               "was written",
                               InputName(*trace_)),
                   "take a trace of some days with uses or pulls of images"};
    }
    if (curves_) TRY(WriteCurves(*curves, *curves_));
    WriteNodeAdvice(source, fitted, question.shape, rows, out);
    return ExitCode::kYes;
  }

  // The preset with what the source says in place of its values, within the bounds of each field.
  static NodeShape Fitted(const NodeShape& base, const NodeSource& source) {
    NodeShape shape = base;
    for (const sizing::Fitted& one : source.shape) {
      const ShapeField& field = FieldOf(one.flag);
      shape.*field.value = std::clamp(one.value, field.least, field.most);
    }
    return shape;
  }

  // What the flags make of the node: twice as many tenants, if so many are stated.
  Result<SizingQuestion> QuestionOf(const NodeShape& fitted, const NodeSource& source,
                                    const SizingModel& model, const Values& values) const {
    SizingQuestion question{.shape = fitted};
    NodeShape& shape = question.shape;
    for (std::size_t i = 0; i < std::size(kOverrides); ++i) {
      if (values[i]) shape.*kShapeFields[i].value = *values[i];
    }
    const double images = Ratio(shape.images, fitted.images);
    const double tenants = Ratio(shape.tenants, fitted.tenants);
    // Each tenant uses as many images as before.
    if (!values[kSecretsPerImage]) {
      shape.secrets_per_image =
          std::clamp(shape.secrets_per_image * tenants / images, 1.0, std::max(1.0, shape.tenants));
    }
    TRY(CheckSecrets(shape));
    const double secrets = Ratio(shape.secrets_per_image, fitted.secrets_per_image);
    const auto times = [](const std::optional<Known>& known, double factor) {
      return known ? std::optional(known->value * factor) : std::nullopt;
    };
    question.records = times(source.records, images);
    question.decisions_per_day = times(source.decisions_per_day, 1);
    question.failed_pulls_per_day = times(source.failed_pulls_per_day, images);
    question.write_backs_per_day = times(source.write_backs_per_day, tenants);
    question.collections_per_day = times(source.collections_per_day, 1);
    question.pulls_per_day = pulls_;
    if (!pulls_ && source.pulls_per_day) {
      question.pulls_per_day = source.pulls_per_day->value *
                               (source.proving_part * tenants + (1 - source.proving_part) * images);
    }
    if (!source.secrets.empty()) {
      double sum = 0;
      double bytes = 0;
      for (const double count : source.secrets) {
        sum += count * secrets;
        bytes += BytesOfRecord(model, count * secrets);
      }
      const auto records = static_cast<double>(source.secrets.size());
      question.secrets_per_record = sum / records;
      question.bytes_per_record = bytes / records;
    }
    return question;
  }

  // What flags had a part in: what differs from the rows without them, `plain`.
  void Explain(const std::vector<AdviceRow>& plain, std::vector<AdviceRow>& rows) const {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < std::size(kOverrides); ++i) {
      if (!values_[i] || i == kPods) continue;
      words.push_back(fmt::format("{} {:g}", kShapeFields[i].flag, *values_[i]));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      AdviceRow& row = rows[i];
      if (pulls_ && row.key == "pullsPerDay") {
        row.from = "--pulls-per-day";
      } else if (!(row.value == plain[i].value && row.text == plain[i].text) &&
                 (row.key == "records" || row.key == "bytesPerRecord" ||
                  row.key == "pullsPerDay")) {
        row.from += "; scaled by " + InWords(words);
      }
    }
  }

  // Of kOverrides.
  static constexpr std::size_t kPods = 0;
  static constexpr std::size_t kSecretsPerImage = 3;
  static_assert(kShapeFields[kPods].value == &NodeShape::pods &&
                kShapeFields[kSecretsPerImage].value == &NodeShape::secrets_per_image);

  std::optional<std::string> trace_;
  StoreFlags store_;
  std::optional<std::string> curves_;
  sizing::ImageGc gc_;
  std::chrono::seconds minimum_age_{120};
  std::chrono::seconds maximum_age_{0};
  const NodeShape* preset_ = nullptr;  // default, or the one most like a source
  Values values_;
  std::optional<double> pulls_;
};

}  // namespace

Command AdviseCommand() {
  return {.name = "advise",
          .task = kTaskPlan,
          .summary = "say how large a node's store and map must be",
          .notes = Notes(),
          .examples = R"(waybill advise --preset dense
waybill advise --trace /var/log/waybill/node.trace --curves curves
waybill advise --trace /var/log/waybill/node.trace --tenants 50)",
          .call = New<AdviseCall>};
}

}  // namespace waybill::cli
