// What the programs of ./dev bench have in common: their command lines, and how they end.

#ifndef WAYBILL_BENCH_PROGRAM_H_
#define WAYBILL_BENCH_PROGRAM_H_

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/machine.h"

namespace waybill::bench {

struct Options {
  bool quick = false;                // a tiny run, also in memory
  std::string json;                  // the file to write; empty: none
  std::vector<std::size_t> records;  // sizes of the stores; empty: the program's own
};

struct TextOption {
  std::string flag;
  std::string help;
  std::string* value;
};

struct CommandLine {
  std::string about;
  std::string records_help = {};  // empty: there is no --records
  std::size_t max_records = 1'000'000;
  std::vector<TextOption> texts = {};
};

// Reads the arguments, runs `program`, and returns what main() has to. What `program` throws
// becomes a message and 1.
int RunProgram(int argc, char** argv, const CommandLine& line,
               const std::function<int(const Options&)>& program);

// Warns of a quick run. Throws if one that is not quick would have its stores in memory, where a
// durable write costs nothing.
Machine MachineOf(const Options& options, const std::filesystem::path& scratch);

// Replaces the file; an empty path: nothing. Throws if it can't be written.
void WriteText(const std::string& path, const std::string& text);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_PROGRAM_H_
