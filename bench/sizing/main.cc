// waybill_sizing: how large a store, its map, and a cache in front of it must be. See README.md.

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/program.h"
#include "bench/scratch.h"
#include "bench/sizing/study.h"
#include "bench/sizing/trace.h"

namespace waybill::bench {
namespace {

struct Flags {
  std::vector<std::string> presets;
  std::array<std::optional<double>, cli::kShapeFields.size()> fields;  // instead of the preset's
  StudyOptions study;
  double days = 0;
  bool quick = false;
  std::string json;
  std::filesystem::path plots;
  std::string model;
  std::string trace;
};

// So that each preset makes thousands of decisions, and takes seconds.
double DaysOf(const cli::NodeShape& shape, const Flags& flags) {
  if (flags.days > 0) return flags.days;
  if (flags.quick) return 0.25;
  return shape.pod_starts_per_day * shape.containers_per_pod < 5000 ? 7 : 1;
}

void Declare(CLI::App& app, Flags& flags) {
  app.add_option("--preset", flags.presets, "edge, default, dense or ci; may be repeated")
      ->check([](const std::string& name) {
        return cli::FindPreset(name) == nullptr ? "there is no preset " + name : std::string();
      });
  app.add_option("--days", flags.days, "simulated days")->check(CLI::Range(0.01, 3650.0));
  app.add_option("--seed", flags.study.seed, "of the traces");
  app.add_option("--rounds", flags.study.rounds, "replays of each side")->check(CLI::Range(1, 99));
  app.add_option("--year-days", flags.study.year_days, "also how entries grow over so many days")
      ->check(CLI::Range(7.0, 3650.0));
  app.add_flag("--quick", flags.quick, "a quarter of a day: shows that it works");
  app.add_option("--json", flags.json, "write the figures to this file, too");
  app.add_option("--plots", flags.plots, "write a plot to this directory");
  app.add_option("--record-model", flags.model,
                 "write what waybill advise knows; needs --year-days");
  app.add_option("--write-trace", flags.trace,
                 "write the first preset's life as a trace for waybill advise, and end");
  for (std::size_t i = 0; i < cli::kShapeFields.size(); ++i) {
    const cli::ShapeField& field = cli::kShapeFields[i];
    app.add_option(std::string(field.flag), flags.fields[i], std::string(field.unit))
        ->check(CLI::Range(field.least, field.most))
        ->group("Instead of the preset's");
  }
}

cli::NodeShape ShapeOf(const Flags& flags, const std::string& preset) {
  cli::NodeShape shape = *cli::FindPreset(preset);
  for (std::size_t i = 0; i < flags.fields.size(); ++i) {
    if (flags.fields[i]) shape.*cli::kShapeFields[i].value = *flags.fields[i];
  }
  return shape;
}

Findings Measure(const Flags& flags, const std::filesystem::path& directory) {
  Findings run{.machine = Machine(directory),
               .seed = flags.study.seed,
               .rounds = flags.study.rounds,
               .calibration = {},
               .studies = {}};
  std::fprintf(stderr, "calibrating…\n");
  run.calibration = Calibrate(directory);
  for (const std::string& name : flags.presets) {
    const cli::NodeShape shape = ShapeOf(flags, name);
    StudyOptions options = flags.study;
    options.directory = directory;
    options.days = DaysOf(shape, flags);
    std::fprintf(stderr, "%s: %g days, and %g…\n", name.c_str(), options.days, options.year_days);
    run.studies.push_back(StudyNode(shape, options));
  }
  run.machine.End();
  return run;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Sizes a store, its map and a cache in front of it by simulated nodes.");
  Declare(app, flags);
  CLI11_PARSE(app, argc, argv);
  if (flags.presets.empty()) {
    for (const cli::NodeShape& preset : cli::kPresets) flags.presets.emplace_back(preset.name);
  }
  if (!flags.trace.empty()) {
    const cli::NodeShape shape = ShapeOf(flags, flags.presets.front());
    WriteText(flags.trace, TraceText(shape, flags.study.seed, DaysOf(shape, flags)));
    return 0;
  }
  if (flags.quick) flags.study.rounds = 1;
  const Scratch scratch;
  const Findings run = Measure(flags, scratch.path());
  std::fputs(TextOf(run).c_str(), stdout);
  WriteText(flags.json, JsonOf(run));
  if (!flags.plots.empty()) WriteText(flags.plots / "sizing.svg", PlotOfCaches(run));
  if (!flags.model.empty()) WriteText(flags.model, ModelOf(run));
  return 0;
}

}  // namespace
}  // namespace waybill::bench

int main(int argc, char** argv) {
  try {
    return waybill::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
