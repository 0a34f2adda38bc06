#include "bench/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>

namespace waybill::bench {

int RunProgram(int argc, char** argv, const Program& program,
               const std::function<void(const Run&)>& measure) {
  CLI::App app(program.about +
               " Stores are made below TMPDIR, or below /var/tmp, which must be a disk.");
  bool quick = false;
  std::string json;
  std::string text;
  std::vector<std::size_t> records;
  app.add_flag("--quick", quick, "a tiny run: shows that it works, measures nothing");
  app.add_option("--json", json, "write the figures to this file, too");
  app.add_option("--records", records,
                 fmt::format("sizes of the stores ({})", fmt::join(program.records, ",")))
      ->delimiter(',')
      ->check(CLI::Range(std::size_t{10}, std::size_t{1'000'000}));
  if (!program.text_flag.empty()) app.add_option(program.text_flag, text, program.text_help);
  CLI11_PARSE(app, argc, argv);
  try {
    if (records.empty() && quick) records = {program.quick_records};
    if (records.empty()) records = program.records;
    const Scratch scratch;
    Machine machine(scratch.path());
    if (quick) machine.warnings.emplace_back("a quick run measures nothing");
    if (!quick && machine.in_memory) {
      throw std::runtime_error(scratch.path().string() +
                               " lies in memory, where a durable write costs nothing; set TMPDIR "
                               "to a directory on a disk");
    }
    Figures figures({.name = program.name,
                     .again = fmt::format("./dev bench {} --records {}{}", program.name,
                                          fmt::join(records, ","), quick ? " --quick" : ""),
                     .machine = std::move(machine)});
    measure({quick, records, text, scratch, figures});
    figures.PrintFoot();
    WriteText(json, figures.Json());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}

void WriteText(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  std::ofstream out(path);
  if (!(out << text << std::flush)) throw std::runtime_error("cannot write " + path);
}

}  // namespace waybill::bench
