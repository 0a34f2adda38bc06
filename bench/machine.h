// Facts about the machine, and warnings that make a run's figures worthless.

#ifndef WAYBILL_BENCH_MACHINE_H_
#define WAYBILL_BENCH_MACHINE_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace waybill::bench {

// The commit as ./dev gives it (WAYBILL_COMMIT), the day, the seed of the data set, machine, load,
// compiler, build type, libraries, and the file system that holds `scratch`, with the time of a
// flush there.
std::vector<std::pair<std::string, std::string>> MachineFacts(const std::filesystem::path& scratch);
std::vector<std::string> MachineWarnings(const std::filesystem::path& scratch);

// How busy the machine was while figures were made: begins where it is made.
class Load {
 public:
  Load();

  struct Report {
    std::string text;
    std::vector<std::string> warnings;  // others took so much that the figures may be theirs
  };
  // What it was before, what it is now, which contains the run's own, and what others took.
  Report End() const;

 private:
  struct Ticks {
    double all = 0;   // of all CPUs
    double busy = 0;  // of all programs, the kernel and other virtual machines
    double own = 0;
  };
  static Ticks TicksNow();

  double before_;
  Ticks began_;
};

// Throws if `scratch` lies in memory, where a durable write costs nothing.
void RequireDisk(const std::filesystem::path& scratch);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_MACHINE_H_
