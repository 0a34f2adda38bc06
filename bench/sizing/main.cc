// waybill_sizing: how large a store, its map, and a cache in front of it must be. See README.md.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/scratch.h"
#include "bench/sizing/report.h"
#include "bench/sizing/trace_events.h"

namespace waybill::bench {
namespace {

struct Flags {
  std::vector<std::string> presets;
  std::vector<std::pair<const cli::ShapeField*, double>> fields;
  StudyOptions study;
  double days = 0;
  bool year = false;
  double year_days = 365;
  bool quick = false;
  bool list_presets = false;
  std::string json;
  std::string text;
  std::filesystem::path plots;
  std::string model;
  std::string trace;
};

void Write(const std::string& path, const std::string& content) {
  if (path.empty()) return;
  std::ofstream out(path);
  if (!(out << content << std::flush)) throw std::runtime_error("cannot write " + path);
}

// So that each preset makes thousands of decisions, and takes seconds.
double DaysOf(const cli::NodeShape& shape, const Flags& flags) {
  if (flags.days > 0) return flags.days;
  if (flags.quick) return 0.25;
  return shape.pod_starts_per_day * shape.containers_per_pod < 5000 ? 7 : 1;
}

void Declare(CLI::App& app, Flags& flags, std::vector<double>& values) {
  app.add_option("--preset", flags.presets, "edge, default, dense or ci; may be repeated")
      ->check([](const std::string& name) {
        return cli::FindPreset(name) == nullptr ? "there is no preset " + name : std::string();
      });
  app.add_option("--days", flags.days, "simulated days")->check(CLI::Range(0.01, 3650.0));
  app.add_option("--seed", flags.study.seed, "of the traces");
  app.add_option("--rounds", flags.study.rounds, "replays of each side")->check(CLI::Range(1, 99));
  app.add_flag("--flush", flags.study.flushing, "wait for each flush, below TMPDIR");
  app.add_flag("--year", flags.year, "also how entries grow over a year");
  app.add_option("--year-days", flags.year_days, "of that year")->check(CLI::Range(7.0, 3650.0));
  app.add_flag("--quick", flags.quick, "a quarter of a day: shows that it works");
  app.add_flag("--list-presets", flags.list_presets, "print the presets, with units, and end");
  app.add_option("--json", flags.json, "write the figures to this file, too");
  app.add_option("--text", flags.text, "write the table to this file, too");
  app.add_option("--plots", flags.plots, "write plots to this directory");
  app.add_option("--record-model", flags.model,
                 "write what waybill advise knows; needs all presets and --year");
  app.add_option("--write-trace", flags.trace,
                 "write the first preset's life as a trace for waybill advise, and end");
  for (std::size_t i = 0; i < cli::kShapeFields.size(); ++i) {
    const cli::ShapeField& field = cli::kShapeFields[i];
    app.add_option(std::string(field.flag), values[i], std::string(field.unit))
        ->check(CLI::Range(field.least, field.most))
        ->group("Instead of the preset's");
  }
}

cli::NodeShape ShapeOf(const Flags& flags, const std::string& preset) {
  cli::NodeShape shape = *cli::FindPreset(preset);
  for (const auto& [field, value] : flags.fields) shape.*field->value = value;
  return shape;
}

Run Measure(const Flags& flags, const std::filesystem::path& directory) {
  const Load load;
  Run run{.facts = MachineFacts(directory), .warnings = {}, .seed = flags.study.seed};
  for (const std::string& warning : MachineWarnings(directory)) {
    // Flushes are not waited for.
    if (warning.find("lies in memory") == std::string::npos || flags.study.flushing) {
      run.warnings.push_back(warning);
    }
  }
  run.rounds = flags.study.rounds;
  run.flushing = flags.study.flushing;
  run.clock_nanoseconds = ClockNanoseconds();
  std::fprintf(stderr, "calibrating…\n");
  run.calibration = Calibrate(directory);
  for (const std::string& name : flags.presets) {
    const cli::NodeShape shape = ShapeOf(flags, name);
    StudyOptions options = flags.study;
    options.directory = directory;
    options.days = DaysOf(shape, flags);
    std::fprintf(stderr, "%s: %g days…\n", name.c_str(), options.days);
    run.studies.push_back(StudyNode(shape, options));
    if (!flags.year) continue;
    std::fprintf(stderr, "%s: %g days of a year…\n", name.c_str(), flags.year_days);
    run.years.push_back({shape, StudyYear(shape, options, flags.year_days)});
  }
  const Load::Report report = load.End();
  for (auto& [name, value] : run.facts) {
    if (name == "load") value = report.text;
  }
  run.warnings.insert(run.warnings.end(), report.warnings.begin(), report.warnings.end());
  return run;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Sizes a store, its map and a cache in front of it by simulated nodes.");
  std::vector<double> values(cli::kShapeFields.size());
  Declare(app, flags, values);
  CLI11_PARSE(app, argc, argv);
  if (flags.list_presets) {
    std::fputs(PresetsText().c_str(), stdout);
    return 0;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const cli::ShapeField& field = cli::kShapeFields[i];
    if (app.count(std::string(field.flag)) > 0) flags.fields.emplace_back(&field, values[i]);
  }
  if (flags.presets.empty()) {
    for (const cli::NodeShape& preset : cli::kPresets) flags.presets.emplace_back(preset.name);
  }
  if (!flags.trace.empty()) {
    const cli::NodeShape shape = ShapeOf(flags, flags.presets.front());
    Write(flags.trace, TraceText(shape, flags.study.seed, DaysOf(shape, flags)));
    return 0;
  }
  if (!flags.model.empty() &&
      (!flags.year || !flags.fields.empty() || flags.presets.size() != cli::kPresets.size())) {
    throw std::runtime_error("--record-model needs --year and the four presets as they are");
  }
  if (flags.quick) flags.study.rounds = 1;
  const Scratch scratch;
  const Run run = Measure(flags, scratch.path());
  const std::string text = TextOf(run);
  std::fputs(text.c_str(), stdout);
  Write(flags.text, text);
  Write(flags.json, JsonOf(run));
  if (!flags.plots.empty()) {
    Write(flags.plots / "sizing.svg", PlotOfCaches(run));
    if (flags.year) Write(flags.plots / "sizing-year.svg", PlotOfYears(run));
  }
  if (!flags.model.empty()) Write(flags.model, ModelOf(run));
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
