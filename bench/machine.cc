#include "bench/machine.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#include <fstream>
#include <sstream>

namespace waybill::bench {

namespace {

std::string CpuModel() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

// The type of the file system, found by its device number in /proc/self/mountinfo.
std::string FileSystem(const std::filesystem::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "unknown";
  const std::string device = fmt::format("{}:{}", major(status.st_dev), minor(status.st_dev));
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string id, parent, number, word;
    fields >> id >> parent >> number;
    if (number != device) continue;
    while (fields >> word && word != "-") {
    }
    fields >> word;
    return word;
  }
  return "unknown";
}

std::string Compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

constexpr bool IsSanitised() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
  return true;
#endif
#endif
  return false;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> MachineFacts(
    const std::filesystem::path& scratch) {
  const benchmark::CPUInfo& cpu = benchmark::CPUInfo::Get();
  std::string caches;
  for (const auto& cache : cpu.caches) {
    if (cache.type == "Instruction") continue;
    caches += fmt::format(", L{} {} KiB", cache.level, cache.size / 1024);
  }
  struct utsname kernel {};
  uname(&kernel);
  const double load = cpu.load_avg.empty() ? 0 : cpu.load_avg.front();
  return {{"machine", fmt::format("{}, {} CPUs{}, {} {}", CpuModel(), cpu.num_cpus, caches,
                                  kernel.sysname, kernel.release)},
          {"load", fmt::format("{:.1f} before the run", load)},
          {"compiler", fmt::format("{}, {}", Compiler(), WAYBILL_BUILD_TYPE)},
          {"LMDB", mdb_version(nullptr, nullptr, nullptr)},
          {"disk", FileSystem(scratch)}};
}

std::vector<std::string> MachineWarnings(const std::filesystem::path& scratch) {
  std::vector<std::string> warnings;
#ifndef __OPTIMIZE__
  warnings.emplace_back("this build is not optimised: its figures say nothing");
#endif
#ifndef NDEBUG
  warnings.emplace_back("this build checks its assertions: it is slower than a release");
#endif
  if (IsSanitised()) warnings.emplace_back("this build is sanitised: its figures say nothing");
  if (FileSystem(scratch) == "tmpfs") {
    warnings.emplace_back(
        "the store lies in memory: durable writes cost nothing there; set TMPDIR to a disk");
  }
  const benchmark::CPUInfo& cpu = benchmark::CPUInfo::Get();
  if (!cpu.load_avg.empty() && cpu.load_avg.front() > cpu.num_cpus / 2.0) {
    warnings.push_back(fmt::format("the machine is busy (load {:.1f} on {} CPUs)",
                                   cpu.load_avg.front(), cpu.num_cpus));
  }
  return warnings;
}

}  // namespace waybill::bench
