// waybill advise: how large a store and its map must be, and whether a cache in front would pay.
// Needs no store: it answers from the recorded model (sizing_model.h).

#include <algorithm>
#include <cmath>
#include <utility>

#include "bindings/cli/command.h"
#include "bindings/cli/sizing_model.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

// Beyond this many times the simulated node, or below that part of it, figures are extrapolated.
constexpr double kFarFromSimulated = 10;

// A flag of the command that takes the place of a preset's value.
struct Override {
  std::string_view flag;
  double NodeShape::*value;
  const char* placeholder;
  const char* help;
};
constexpr Override kOverrides[] = {
    {"--pods", &NodeShape::pods, "N", "pods that run at the same time"},
    {"--images", &NodeShape::images, "N", "image refs on the node"},
    {"--tenants", &NodeShape::tenants, "N", "namespaces with a pull Secret"},
    {"--secrets-per-image", &NodeShape::secrets_per_image, "N", "Secrets that open an image, mean"},
};
constexpr std::uint64_t kMostPullsPerDay = 1'000'000;

std::string Notes() {
  std::string text =
      "Needs no store. Answers from simulated nodes; what no flag states is the preset's:";
  for (const NodeShape& p : kPresets) {
    text +=
        fmt::format("\n  {:<8} {:.0f} pods, {:.0f} images, {:.0f} tenants, {:g} Secrets an image",
                    p.name, p.pods, p.images, p.tenants, p.secrets_per_image);
  }
  return text;
}

class AdviseCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    std::vector<std::pair<std::string, const NodeShape*>> presets;
    for (const NodeShape& preset : kPresets) presets.emplace_back(preset.name, &preset);
    flags.Choice("--preset", &preset_, presets, "the kind of node (default)");
    for (std::size_t i = 0; i < std::size(kOverrides); ++i) {
      const Override& one = kOverrides[i];
      const auto* const field =
          std::find_if(kShapeFields.begin(), kShapeFields.end(),
                       [&](const ShapeField& shape) { return shape.value == one.value; });
      flags.Value(std::string(one.flag), &values_[i], one.placeholder, one.help,
                  Number{static_cast<std::uint64_t>(std::ceil(field->least)),
                         static_cast<std::uint64_t>(field->most)});
    }
    flags.Value("--pulls-per-day", &pulls_, "N", "pulls of images, new or again",
                Number{0, kMostPullsPerDay});
  }

  Result<ExitCode> Run(Output& out) override {
    const SizingModel& model = RecordedModel();
    auto question = TRY(Question());
    const PresetFigures* figures = FindFigures(model, question.shape.name);
    if (figures == nullptr) {
      return Error{ErrorCode::kInternal, "the recorded model lacks a preset"};
    }
    const SizingAdvice advice = Advise(model, *figures, question);
    WriteJson(model, question, advice, out);
    if (!out.json()) WriteText(model, question, *figures, advice, out);
    return ExitCode::kYes;
  }

 private:
  Result<SizingQuestion> Question() const {
    SizingQuestion question{.shape = *preset_};
    NodeShape& shape = question.shape;
    for (std::size_t i = 0; i < std::size(kOverrides); ++i) {
      if (values_[i]) shape.*kOverrides[i].value = *values_[i];
    }
    question.pulls_per_day = pulls_;
    // More pods start more often.
    shape.pod_starts_per_day *= shape.pods / preset_->pods;
    if (shape.secrets_per_image > shape.tenants) {
      return BadFlag("--secrets-per-image",
                     fmt::format("{:g} Secrets an image are more than {:.0f} tenants have",
                                 shape.secrets_per_image, shape.tenants),
                     "state --tenants, too");
    }
    return question;
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
                   {"backupBytes", whole(a.backup_bytes)},
                   {"records", whole(a.records)},
                   {"secretsPerRecord", a.secrets_per_record},
                   {"bytesPerRecord", whole(a.bytes_per_record)},
                   {"residentBytes", whole(a.resident_bytes)},
                   {"flushesPerDay", whole(a.flushes_per_day)},
                   {"writtenBytesPerDay", whole(a.written_bytes_per_day)},
                   {"startSeconds", a.start_seconds},
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

  const NodeShape* preset_ = FindPreset("default");
  std::optional<double> values_[std::size(kOverrides)];
  std::optional<double> pulls_;
};

}  // namespace

Command AdviseCommand() {
  return {.name = "advise",
          .task = kTaskPlan,
          .summary = "say how large a node's store and map must be",
          .notes = Notes(),
          .examples = R"(waybill advise)",
          .call = New<AdviseCall>};
}

}  // namespace waybill::cli
