#include "bench/machine.h"

#include <fcntl.h>
#include <flatbuffers/base.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <lmdb.h>
#include <mntent.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>

#include "bench/data_set.h"
#include "bench/measure.h"

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

// Type and options of the file system that holds `path`.
std::pair<std::string, std::string> MountOf(const std::filesystem::path& path) {
  struct stat wanted {};
  struct stat root {};
  const std::unique_ptr<FILE, int (*)(FILE*)> mounts(setmntent("/proc/self/mounts", "r"),
                                                     endmntent);
  if (mounts == nullptr || stat(path.c_str(), &wanted) != 0) return {"unknown", ""};
  while (const mntent* const mount = getmntent(mounts.get())) {
    if (stat(mount->mnt_dir, &root) == 0 && root.st_dev == wanted.st_dev) {
      return {mount->mnt_type, mount->mnt_opts};
    }
  }
  return {"unknown", ""};
}

// Appends 4 KiB to a file and flushes it, as a log does; 0: that failed.
double FlushNanoseconds(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "flush";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return 0;
  const std::string page(4096, 'w');
  std::vector<double> times;
  for (int i = 0; i < 33; ++i) {
    times.push_back(NanosecondsOf([&] {
      if (write(fd, page.data(), page.size()) < 0 || fdatasync(fd) != 0) times.clear();
    }));
  }
  close(fd);
  unlink(path.c_str());
  return Median(times);
}

std::string Libraries() {
  const unsigned xxhash = XXH_versionNumber();
  return fmt::format("{}; xxHash {}.{}.{}; FlatBuffers {}.{}.{}; {}",
                     mdb_version(nullptr, nullptr, nullptr), xxhash / 10000, xxhash / 100 % 100,
                     xxhash % 100, FLATBUFFERS_VERSION_MAJOR, FLATBUFFERS_VERSION_MINOR,
                     FLATBUFFERS_VERSION_REVISION, OpenSSL_version(OPENSSL_VERSION));
}

#ifdef __clang__
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

long Cpus() { return ::sysconf(_SC_NPROCESSORS_ONLN); }

double LoadNow() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

std::string Commit() {
  const char* const commit = std::getenv("WAYBILL_COMMIT");
  return commit == nullptr || *commit == '\0' ? "not given" : commit;
}

}  // namespace

Machine::Machine(const std::filesystem::path& scratch) {
  struct utsname kernel {};
  uname(&kernel);
  const auto [type, options] = MountOf(scratch);
  in_memory = type == "tmpfs" || type == "ramfs";
  const double load = LoadNow();
  facts = {{"commit", Commit()},
           {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))},
           {"seed", std::to_string(kSeed)},
           {"machine",
            fmt::format("{}, {} CPUs, {} {}", CpuModel(), Cpus(), kernel.sysname, kernel.release)},
           {"load", fmt::format("{:.1f} before the run", load)},
           {"compiler", fmt::format("{}, {}", kCompiler, WAYBILL_BUILD_TYPE)},
           {"libraries", Libraries()},
           {"disk", fmt::format("{} ({}); a write of 4 KiB with its flush takes {:.0f} us", type,
                                options, FlushNanoseconds(scratch) / 1000)}};
#ifndef __OPTIMIZE__
  warnings.emplace_back("this build is not optimised: its figures say nothing");
#endif
#ifndef NDEBUG
  warnings.emplace_back("this build checks its assertions: it is slower than a release");
#endif
#ifdef WAYBILL_SANITISED
  warnings.emplace_back("this build is sanitised: its figures say nothing");
#endif
  if (load > static_cast<double>(Cpus()) / 2) {
    warnings.push_back(fmt::format("the machine is busy (load {:.1f} on {} CPUs)", load, Cpus()));
  }
}

void Machine::End() {
  for (auto& [name, value] : facts) {
    if (name == "load") value += fmt::format(", {:.1f} after it", LoadNow());
  }
}

std::string Machine::Fact(std::string_view name) const {
  const auto found = std::ranges::find(facts, name, &decltype(facts)::value_type::first);
  return found == facts.end() ? "unknown" : found->second;
}

}  // namespace waybill::bench
