// Facts about the machine, and warnings that make a run's figures worthless.

#ifndef WAYBILL_BENCH_MACHINE_H_
#define WAYBILL_BENCH_MACHINE_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace waybill::bench {

// The seed of the data set, machine, compiler, build type, libraries, and the file system that
// holds `scratch`, with the time of a flush there.
std::vector<std::pair<std::string, std::string>> MachineFacts(const std::filesystem::path& scratch);
std::vector<std::string> MachineWarnings(const std::filesystem::path& scratch);

// Throws if `scratch` lies in memory, where a durable write costs nothing.
void RequireDisk(const std::filesystem::path& scratch);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_MACHINE_H_
