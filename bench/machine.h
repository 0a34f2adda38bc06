// Facts about the machine, and warnings that make a run's figures worthless.

#ifndef WAYBILL_BENCH_MACHINE_H_
#define WAYBILL_BENCH_MACHINE_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace waybill::bench {

// What figures were made on, from where this is made to End.
class Machine {
 public:
  // Warns of a build or a place that make the figures worthless.
  explicit Machine(const std::filesystem::path& scratch);

  // The commit as ./dev gives it (WAYBILL_COMMIT), the day, the seed of the data set, machine,
  // load, compiler, build type, libraries, and the file system that holds `scratch`, with the time
  // of a flush there.
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<std::string> warnings;
  bool in_memory = false;  // `scratch` is

  // Adds to the load what it is now, which contains the run's own.
  void End();
  // "unknown": there is no such fact.
  std::string Fact(std::string_view name) const;
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_MACHINE_H_
