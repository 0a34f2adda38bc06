// Power cuts on a real ext4: FS_IOC_SHUTDOWN aborts its journal without writing it, as when the
// power fails, and the next mount replays it. A child pulls images until then; afterwards each pull
// that the store acknowledged is there, and the store trusts itself.
//
// Only where WAYBILL_POWER_CUT_DEVICE names a block device, which is made anew, and
// WAYBILL_POWER_CUT_MOUNT a directory: crash/power_cuts_on_ext4 makes both (`./dev power-cuts`).
// WAYBILL_POWER_CUTS: how many.

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tests/support/draw.h"
#include "tests/support/store_fixture.h"

// The kernel has had it as an ext4 ioctl for years; linux/fs.h has it since 6.12.
#ifndef FS_IOC_SHUTDOWN
#define FS_IOC_SHUTDOWN _IOR('X', 125, std::uint32_t)
#endif

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(power_cut_ext4)

namespace {

namespace fs = std::filesystem;

// Of FS_IOC_SHUTDOWN: the journal is not written first.
constexpr std::uint32_t kNoLogFlush = 2;
constexpr std::uint64_t kMostPulls = 60;  // of a life
constexpr std::uint64_t kLivesOfDisk = 25;

// When the power fails.
enum class When : std::uint8_t {
  kBetweenCommits,  // as soon as a pull is acknowledged
  kAtAnyTime,       // while the next one is written, or the mark is flushed
};

// What survives: the memory that a child shares with this process.
struct Seen {
  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<bool> failed_before_cut{false};
  std::atomic<bool> cut{false};
};

ImagePullCredentials CredentialsOf(std::uint64_t pull) {
  ImagePullCredentials credentials;
  // Records of several sizes, so that commits take different numbers of pages.
  for (std::uint64_t i = 0; i <= pull % 3 * 30; ++i) {
    credentials.kubernetes_secrets.push_back(
        {"uid", "ns", "secret-" + std::to_string(i), "hash-" + std::to_string(pull)});
  }
  return credentials;
}
std::string RefOf(std::uint64_t pull) { return "sha256:pull-" + std::to_string(pull); }

class Machine {
 public:
  Machine(std::string device, fs::path mount_point, std::uint64_t seed)
      : device_(std::move(device)), mount_point_(std::move(mount_point)), draw_(seed) {
    void* const memory =
        mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BOOST_REQUIRE(memory != MAP_FAILED);
    seen_ = new (memory) Seen;
  }
  ~Machine() {
    umount2(mount_point_.c_str(), MNT_DETACH);
    munmap(seen_, sizeof(Seen));
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Until the power fails once. What is wrong afterwards; empty: nothing.
  std::string OneLife() {
    if (lives_of_disk_ == kLivesOfDisk) {
      NewDisk();
    } else {
      Mount();
    }
    ++lives_of_disk_;
    clock_.Reboot();
    std::string wrong = Judge();
    if (wrong.empty()) {
      LiveAndCut();
    } else {
      lives_of_disk_ = kLivesOfDisk;
    }
    if (umount(mount_point_.c_str()) != 0) Fail("umount");
    return wrong;
  }
  std::uint64_t acknowledged() const { return acknowledged_; }
  std::uint64_t undone() const { return undone_; }

 private:
  NodeStoreOptions Options() {
    NodeStoreOptions options = OptionsIn(mount_point_, Mode::kStrict);
    options.clock = clock_.AsClock();
    options.boot_clock = clock_.AsBootClock();
    return options;
  }

  [[noreturn]] void Fail(const char* what) {
    throw std::runtime_error(std::string(what) + " " + mount_point_.string() + ": " +
                             std::strerror(errno));
  }
  void Mount() {
    if (mount(device_.c_str(), mount_point_.c_str(), "ext4", 0, "") != 0) Fail("mount");
  }
  void NewDisk() {
    const std::string make = "mkfs.ext4 -q -F " + device_ + " > /dev/null 2>&1";
    if (std::system(make.c_str()) != 0) Fail("mkfs.ext4");  // NOLINT(concurrency-mt-unsafe)
    Mount();
    lives_of_disk_ = 0;
    pulls_ = 0;
    Must(Must(NodeStore::Open(Options()))->Close());
    sync();
  }

  std::string Judge() {
    auto opened = NodeStore::Open(Options());
    if (!opened) return opened.error().ToString();
    const OpeningReport& report = (*opened)->recovery_report();
    undone_ += report.commit_undone ? 1 : 0;
    if (report.distrustful) return "distrustful: " + report.distrust_reason;
    for (std::uint64_t pull = 1; pull <= pulls_; ++pull) {
      const auto record = (*opened)->GetRecord({.image_ref = RefOf(pull)});
      if (!record) {
        return "pull " + std::to_string(pull) + " of " + std::to_string(pulls_) +
               " was acknowledged, and is lost" + (report.commit_undone ? " (taken back)" : "");
      }
    }
    if (auto closed = (*opened)->Close(); !closed) return closed.error().ToString();
    return "";
  }

  void LiveAndCut() {
    const auto when = draw_.OneIn(2) ? When::kBetweenCommits : When::kAtAnyTime;
    const std::uint64_t count = 1 + draw_.Below(kMostPulls);
    const std::uint64_t microseconds = draw_.Below(150'000);
    seen_->acknowledged.store(0);
    seen_->failed_before_cut.store(false);
    seen_->cut.store(false);
    const pid_t child = fork();
    if (child < 0) Fail("fork");
    if (child == 0) {
      Live(when, count, microseconds);
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (seen_->failed_before_cut) throw std::runtime_error("a pull failed before the power did");
    // One that was under way when the power failed may be there, too: it is done again.
    pulls_ += seen_->acknowledged.load();
    acknowledged_ += seen_->acknowledged.load();
  }

  // In the child.
  void Live(When when, std::uint64_t count, std::uint64_t microseconds) {
    const int directory = open(mount_point_.c_str(), O_RDONLY | O_DIRECTORY);
    const auto cut = [&] {
      std::uint32_t how = kNoLogFlush;
      seen_->cut.store(true);
      ioctl(directory, FS_IOC_SHUTDOWN, &how);
      kill(getpid(), SIGKILL);
    };
    auto opened = NodeStore::Open(Options());
    if (!opened) return;
    std::thread later;
    if (when == When::kAtAnyTime) {
      later = std::thread([&] {
        usleep(static_cast<useconds_t>(microseconds));
        cut();
      });
    }
    for (std::uint64_t done = 1;; ++done) {
      const std::uint64_t pull = pulls_ + done;
      const std::string name = "registry.example/pull-" + std::to_string(pull);
      const auto recorded = (*opened)->RecordImagePulled({.image = name, .image_ref = RefOf(pull)},
                                                         CredentialsOf(pull));
      if (!recorded) {
        if (!seen_->cut) seen_->failed_before_cut.store(true);
        if (later.joinable()) later.join();
        return;
      }
      seen_->acknowledged.store(done);
      if (when == When::kBetweenCommits && done == count) cut();
    }
  }

  const std::string device_;
  const fs::path mount_point_;
  Draw draw_;
  FakeClock clock_;
  Seen* seen_ = nullptr;
  std::uint64_t lives_of_disk_ = kLivesOfDisk;
  std::uint64_t pulls_ = 0;  // acknowledged, on this disk
  std::uint64_t acknowledged_ = 0;
  std::uint64_t undone_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(loses_nothing_that_was_acknowledged) {
  const char* const device = std::getenv("WAYBILL_POWER_CUT_DEVICE");
  const char* const mount_point = std::getenv("WAYBILL_POWER_CUT_MOUNT");
  if (device == nullptr || mount_point == nullptr) {
    BOOST_TEST_MESSAGE("skipped: needs a disk of its own; ./dev power-cuts plays it");
    return;
  }
  const std::uint64_t cuts = NumberFromEnv("WAYBILL_POWER_CUTS", 500);
  const std::uint64_t seed = NumberFromEnv("WAYBILL_SEED", 20261123);
  Machine machine(device, mount_point, seed);
  std::uint64_t lost = 0;
  // The last life judges the cut before it.
  for (std::uint64_t life = 0; life <= cuts; ++life) {
    const std::string wrong = machine.OneLife();
    if (wrong.empty()) continue;
    ++lost;
    BOOST_TEST_MESSAGE("cut " << life << ": " << wrong);
  }
  BOOST_TEST_MESSAGE(cuts << " power cuts (seed " << seed << "), " << machine.acknowledged()
                          << " pulls acknowledged, " << machine.undone() << " commits taken back, "
                          << lost << " cuts that lost something");
  BOOST_TEST(lost == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
