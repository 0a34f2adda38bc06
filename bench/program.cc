#include "bench/program.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>

namespace waybill::bench {

int RunProgram(int argc, char** argv, const CommandLine& line,
               const std::function<int(const Options&)>& program) {
  CLI::App app(line.about);
  Options options;
  app.add_flag("--quick", options.quick, "a tiny run: shows that it works, measures nothing");
  app.add_option("--json", options.json, "write the figures to this file, too");
  if (!line.records_help.empty()) {
    app.add_option("--records", options.records, line.records_help)
        ->delimiter(',')
        ->check(CLI::Range(std::size_t{10}, line.max_records));
  }
  for (const TextOption& text : line.texts) {
    app.add_option(text.flag, *text.value, text.help);
  }
  CLI11_PARSE(app, argc, argv);
  try {
    return program(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}

Machine MachineOf(const Options& options, const std::filesystem::path& scratch) {
  if (!options.quick) RequireDisk(scratch);
  Machine machine(scratch);
  if (options.quick) machine.warnings.emplace_back("a quick run measures nothing");
  return machine;
}

void WriteText(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  std::ofstream out(path);
  if (!(out << text << std::flush)) throw std::runtime_error("cannot write " + path);
}

}  // namespace waybill::bench
