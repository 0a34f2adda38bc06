// Which process is the kubelet, and when it began.

#include "guard/kubelet_process.h"

#include <time.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>

#include "tests/support/kubelet_dir.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(kubelet_process)

struct Proc {
  TempDir scratch;
  std::filesystem::path root = scratch.path() / "kubelet";
  std::filesystem::path proc = scratch.path() / "proc";

  Proc() { std::filesystem::create_directories(root); }
  void Add(const std::string& pid, const std::string& name, const std::string& started) const {
    std::filesystem::create_directories(proc / pid);
    WriteFile(proc / pid / "cmdline", name + '\0' + "--root-dir=" + root.string() + '\0');
    WriteFile(
        proc / pid / "stat",
        pid + " (ku) S (b) S 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 30 0 " + started + " 31 32\n");
  }
};

BOOST_FIXTURE_TEST_CASE(a_kubelet_is_told_by_its_process, Proc) {
  BOOST_TEST(!guard::KubeletFinder(root, proc)().has_value());
  Add("12", "/usr/bin/other", "100");
  BOOST_TEST(!guard::KubeletFinder(root, proc)().has_value());
  Add("13", "/usr/bin/kubelet", "4250");
  const auto kubelet = guard::KubeletFinder(root, proc)();
  BOOST_TEST_REQUIRE(kubelet.has_value());
  BOOST_TEST(kubelet->began.has_value());
  BOOST_TEST(guard::KubeletFinder(root, proc)()->life == kubelet->life);
  // Another one has the same number.
  Add("13", "/usr/bin/kubelet", "4251");
  BOOST_TEST(guard::KubeletFinder(root, proc)()->life != kubelet->life);
}

// One finder, as the guard has.
BOOST_FIXTURE_TEST_CASE(only_what_is_seen_to_be_gone_is_gone, Proc) {
  Add("13", "/usr/bin/kubelet", "4250");
  guard::KubeletFinder finder(root, proc);
  const auto first = finder();
  BOOST_TEST_REQUIRE(first.has_value());
  std::filesystem::remove(proc / "13" / "cmdline");
  BOOST_TEST(finder()->life == first->life);
  const std::filesystem::path stat = proc / "13" / "stat";
  std::filesystem::remove(stat);
  std::filesystem::create_directory(stat);  // there, and not to be read
  BOOST_TEST(finder()->life == first->life);
  std::filesystem::remove(stat);
  Add("13", "/usr/bin/kubelet", "5250");
  const auto second = finder();
  BOOST_TEST(second->life != first->life);
  const std::int64_t tick = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
  BOOST_TEST(std::abs(*second->began - *first->began - 1000 * tick) < 9'000'000'000);
  Add("14", "/usr/bin/kubelet", "6250");
  std::filesystem::remove_all(proc / "13");
  BOOST_TEST(finder()->life != second->life);
  std::filesystem::remove_all(proc / "14");
  BOOST_TEST(!finder().has_value());
}

BOOST_FIXTURE_TEST_CASE(what_can_not_be_read_tells_no_beginning, Proc) {
  for (const std::string stat : {"", ")", "13 (kubelet)", "13 (kubelet) S 1 2 3", "13 (kubelet"}) {
    Add("13", "kubelet", "4250");
    WriteFile(proc / "13" / "stat", stat);
    BOOST_TEST_REQUIRE(guard::KubeletFinder(root, proc)().has_value());
    BOOST_TEST(!guard::KubeletFinder(root, proc)()->began.has_value());
  }
  Add("13", "kubelet", "-1");
  BOOST_TEST(!guard::KubeletFinder(root, proc)()->began.has_value());
}

// The system's own: this process is one that began.
BOOST_AUTO_TEST_CASE(a_real_process_began_before_now) {
  const TempDir scratch;
  const std::filesystem::path root = scratch.path() / "kubelet";
  const std::string pid = std::to_string(::getpid());
  std::filesystem::create_directories(root);
  std::filesystem::create_directories(scratch.path() / "proc" / pid);
  WriteFile(scratch.path() / "proc" / pid / "cmdline",
            std::string("kubelet") + '\0' + "--root-dir=" + root.string() + '\0');
  WriteFile(scratch.path() / "proc" / pid / "stat", ReadFile("/proc/self/stat"));
  const auto kubelet = guard::KubeletFinder(root, scratch.path() / "proc")();
  BOOST_TEST_REQUIRE(kubelet.has_value());
  BOOST_TEST_REQUIRE(kubelet->began.has_value());
  BOOST_TEST(*kubelet->began > 0);
  BOOST_TEST(*kubelet->began <= (std::int64_t{::time(nullptr)} + 1) * 1'000'000'000);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
