#include "bench/machine.h"

#include <fcntl.h>
#include <flatbuffers/base.h>
#include <fmt/format.h>
#include <lmdb.h>
#include <openssl/crypto.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <stdexcept>

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

struct Mount {
  std::string type = "unknown";
  std::string options = {};
};

// Found by its device number in /proc/self/mountinfo.
Mount MountOf(const std::filesystem::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  const std::string device = fmt::format("{}:{}", major(status.st_dev), minor(status.st_dev));
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string id, parent, number, root, point, word;
    Mount mount;
    fields >> id >> parent >> number >> root >> point >> mount.options;
    if (number != device) continue;
    while (fields >> word && word != "-") {
    }
    fields >> mount.type;
    return mount;
  }
  return {};
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

std::string Compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

long Cpus() { return ::sysconf(_SC_NPROCESSORS_ONLN); }

double LoadNow() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

std::string Commit() {
  const char* const commit = std::getenv("WAYBILL_COMMIT");
  return commit == nullptr || *commit == '\0' ? "not given" : commit;
}

std::string Today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm day{};
  gmtime_r(&now, &day);
  char text[16];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d", &day));
}

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double SecondsOfProcessor(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime);
}

// Above that they may have changed the figures. The kernel's own threads are among them.
constexpr double kShareOfOthers = 0.2;

bool InMemory(const std::filesystem::path& path) {
  const std::string type = MountOf(path).type;
  return type == "tmpfs" || type == "ramfs";
}

}  // namespace

Machine::Machine(const std::filesystem::path& scratch)
    : load_before_(LoadNow()), began_(TicksNow()) {
  std::string caches;
  int level = 0;
  for (const int name : {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE}) {
    ++level;
    if (const long bytes = ::sysconf(name); bytes > 0) {
      caches += fmt::format(", L{} {} KiB", level, bytes / 1024);
    }
  }
  struct utsname kernel {};
  uname(&kernel);
  const Mount mount = MountOf(scratch);
  facts = {{"commit", Commit()},
           {"date", Today()},
           {"seed", std::to_string(kSeed)},
           {"machine", fmt::format("{}, {} CPUs{}, {} {}", CpuModel(), Cpus(), caches,
                                   kernel.sysname, kernel.release)},
           {"load", fmt::format("{:.1f} before the run", load_before_)},
           {"compiler", fmt::format("{}, {}", Compiler(), WAYBILL_BUILD_TYPE)},
           {"libraries", Libraries()},
           {"disk", fmt::format("{} ({}); a write of 4 KiB with its flush takes {:.0f} us",
                                mount.type, mount.options, FlushNanoseconds(scratch) / 1000)}};
#ifndef __OPTIMIZE__
  warnings.emplace_back("this build is not optimised: its figures say nothing");
#endif
#ifndef NDEBUG
  warnings.emplace_back("this build checks its assertions: it is slower than a release");
#endif
#ifdef WAYBILL_SANITISED
  warnings.emplace_back("this build is sanitised: its figures say nothing");
#endif
  if (load_before_ > static_cast<double>(Cpus()) / 2) {
    warnings.push_back(
        fmt::format("the machine is busy (load {:.1f} on {} CPUs)", load_before_, Cpus()));
  }
}

Machine::Ticks Machine::TicksNow() {
  std::ifstream in("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0, stolen = 0;
  in >> cpu >> user >> nice >> system >> idle >> wait >> irq >> softirq >> stolen;
  const double busy = user + nice + system + irq + softirq + stolen;
  return {.all = busy + idle + wait,
          .busy = busy,
          .own = (SecondsOfProcessor(RUSAGE_SELF) + SecondsOfProcessor(RUSAGE_CHILDREN)) *
                 static_cast<double>(::sysconf(_SC_CLK_TCK))};
}

void Machine::End() {
  const Ticks now = TicksNow();
  const double all = now.all - began_.all;
  const double others = (now.busy - began_.busy) - (now.own - began_.own);
  const double share = all > 0 ? std::clamp(others / all, 0.0, 1.0) : 0;
  for (auto& [name, value] : facts) {
    if (name != "load") continue;
    value += fmt::format(", {:.1f} after it; others took {:.0f} % of the CPUs meanwhile", LoadNow(),
                         share * 100);
  }
  if (share > kShareOfOthers) {
    warnings.push_back(
        fmt::format("the machine was busy (others took {:.0f} % of the CPUs)", share * 100));
  }
}

std::string Machine::Fact(std::string_view name) const {
  for (const auto& [known, value] : facts) {
    if (known == name) return value;
  }
  return "unknown";
}

void RequireDisk(const std::filesystem::path& scratch) {
  if (InMemory(scratch)) {
    throw std::runtime_error(scratch.string() +
                             " lies in memory, where a durable write costs nothing; set TMPDIR to "
                             "a directory on a disk");
  }
}

}  // namespace waybill::bench
