// What the programs of ./dev bench have in common: their command lines, and how they begin and end.

#ifndef WAYBILL_BENCH_PROGRAM_H_
#define WAYBILL_BENCH_PROGRAM_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/scratch.h"

namespace waybill::bench {

struct Program {
  std::string name;
  std::string about;
  std::vector<std::size_t> records;  // sizes of the stores
  std::size_t quick_records;
  std::string text_flag = {};
  std::string text_help = {};
};

struct Run {
  bool quick;  // tiny, also in memory
  const std::vector<std::size_t>& records;
  const std::string& text;  // of the text flag
  const Scratch& scratch;
  Figures& figures;
};

// Reads the arguments, runs `measure`, writes what it found, and returns what main() has to. What
// `measure` throws becomes a message and 1. One that is not quick must be on a disk: in memory a
// durable write costs nothing.
int RunProgram(int argc, char** argv, const Program& program,
               const std::function<void(const Run&)>& measure);

// Replaces the file; an empty path: nothing. Throws if it can't be written.
void WriteText(const std::string& path, const std::string& text);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_PROGRAM_H_
