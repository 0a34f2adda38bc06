// `waybill userns check` where a session in a shell (fixtures/transcripts/userns-check.txt) does
// not reach: what the kernel writes of real namespaces, and the two formats by themselves.

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "bindings/cli/proc_id_maps.h"
#include "tests/support/cli_store.h"
#include "tests/support/forked_child.h"

namespace waybill::cli {

BOOST_AUTO_TEST_SUITE(userns_check)

namespace {

using testing::CliStore;

// What a child does, step by step, and what this process needs to know of it.
struct Progress {
  std::atomic<int> step{0};
  pid_t child = 0;
  pid_t nested = 0;

  void Await(int at_least) const {
    while (step.load() < at_least) usleep(1000);
  }
};
enum Step : int { kUnshared = 1, kMapped, kNestedUnshared, kReady, kLeftOut = 100 };

bool WriteMaps(pid_t pid, const std::string& map) {
  bool written = true;
  for (const char* const name : {"/uid_map", "/gid_map"}) {
    std::ofstream out("/proc/" + std::to_string(pid) + name);
    out << map << std::flush;
    written = written && out.good();
  }
  return written;
}

// False: this process may not. What follows undoes what the kernel does to a process that enters
// one.
bool EnterUserNamespace() {
  return unshare(CLONE_NEWUSER) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0 &&
         prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

// A process in a namespace whose maps this process writes, with one below it that maps ten of them.
int LiveInNamespaces(Progress& progress) {
  progress.child = getpid();
  if (!EnterUserNamespace()) {
    progress.step = kLeftOut;
    return 1;
  }
  progress.step = kUnshared;
  progress.Await(kMapped);
  // Only who has an ID in a namespace can make one below it.
  if (setgid(0) != 0 || setuid(0) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0 ||
      prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
    progress.step = kLeftOut;
    return 1;
  }
  testing::Child nested([&] {
    progress.nested = getpid();
    progress.step = EnterUserNamespace() ? kNestedUnshared : kLeftOut;
    pause();
    return 0;
  });
  progress.Await(kNestedUnshared);
  if (progress.step == kLeftOut) return 1;
  progress.step = WriteMaps(progress.nested, "0 5 10\n") ? kReady : kLeftOut;
  pause();
  return 0;
}

// Of the answer's findings, that about the process.
nlohmann::json About(const nlohmann::json& findings, pid_t pid) {
  for (const nlohmann::json& finding : findings) {
    for (const nlohmann::json& one : finding["pids"]) {
      if (one == pid) return finding;
    }
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(id_maps_are_read_as_the_kernel_writes_them) {
  const auto host = ParseIdMap("         0          0 4294967295\n");
  BOOST_TEST_REQUIRE(host.has_value());
  BOOST_TEST(IsHosts(*host));
  const auto two =
      ParseIdMap("         0       1000          1\n         1     165536      65536\n");
  BOOST_TEST_REQUIRE(two.has_value());
  BOOST_TEST((*two == IdMap{{1000, 0, 1}, {165536, 1, 65536}}));
  BOOST_TEST(!IsHosts(*two));
  BOOST_TEST((ParseIdMap("") == IdMap{}));
  BOOST_TEST(ParseIdMap("4294967294 4294967294 1\n").has_value());
  for (const std::string_view text :
       {"0 0 1", "\n", "0 0\n", "0 0 1 1\n", "0 0 x\n", "0 0 0\n", "-1 0 1\n", "0x0 0 1\n",
        "0 0 4294967296\n", "1 0 4294967295\n", "0 4294967295 1\n", "0 4294967295 0\n", "0\t0\t1\n",
        "0 0 1\n\n", "0 0 1\r\n"}) {
    BOOST_TEST(!ParseIdMap(text).has_value(), text);
  }
}

BOOST_AUTO_TEST_CASE(the_outermost_cgroup_names_the_pod) {
  const std::string_view uid = "5f0c1d9a-0000-4000-8000-00000000000a";
  for (const std::string& text :
       {"0::/kubepods/besteffort/pod" + std::string(uid) + "/abc\n",
        "3:cpu:/kubepods/pod" + std::string(uid) + "\n0::/\n",
        "0::/system.slice/kubelet/kubepods/burstable/pod" + std::string(uid) + "/x/kubepods/podz\n",
        std::string("0::/kubepods.slice/kubepods-burstable.slice/"
                    "kubepods-burstable-pod5f0c1d9a_0000_4000_8000_00000000000a.slice/"
                    "crio-1.scope/kubepods-podother.slice\n"),
        std::string("0::/kubepods.slice/kubepods-pod5f0c1d9a_0000_4000_8000_00000000000a.slice")}) {
    BOOST_TEST(PodOfCgroup(text) == uid, text);
  }
  for (const std::string_view text :
       {"", "0::/\n", "0::/user.slice/podman-1.scope\n", "0::/kubepods\n",
        "0::/kubepods/burstable\n", "0::/machine/poda/b\n", "0::/kubepods.slice/kubepods-poda\n"}) {
    BOOST_TEST(PodOfCgroup(text).empty(), text);
  }
}

BOOST_AUTO_TEST_CASE(real_namespaces_are_compared) {
  const auto self = ParseIdMap(testing::ReadFile("/proc/self/uid_map"));
  if (geteuid() != 0 || !self || !IsHosts(*self)) {
    BOOST_TEST_MESSAGE("left out: not the host's root");
    return;
  }
  // Of the pool's end, which nothing else on this machine is likely to use.
  constexpr std::uint32_t kFirst = 65533U * 65536U;
  const CliStore store;
  BOOST_TEST(store.Start().exit_code == 0);
  BOOST_TEST(store.Run("userns", {"adopt", "pod-a", std::to_string(kFirst), "65536"}).exit_code ==
             0);
  testing::Shared<Progress> progress;
  const testing::Child child([&] { return LiveInNamespaces(*progress); });
  progress->Await(kUnshared);
  if (progress->step != kLeftOut) {
    const auto unmapped = store.Json("userns", {"check"});
    BOOST_TEST(About(unmapped["notes"], progress->child)["kind"] == "notMapped");
    BOOST_TEST(unmapped["podsWithoutProcess"].size() == 1U);
    BOOST_TEST(WriteMaps(progress->child, "0 " + std::to_string(kFirst) + " 65536\n"));
    progress->step = kMapped;
    progress->Await(kReady);
  }
  if (progress->step == kLeftOut) {
    BOOST_TEST_MESSAGE("left out: may not make user namespaces");
    return;
  }
  const auto answer = store.Json("userns", {"check"});
  BOOST_TEST(answer["podsWithoutProcess"].empty());
  BOOST_TEST(About(answer["contradictions"], progress->child).is_null());
  BOOST_TEST(About(answer["notes"], progress->child).is_null());
  // Its own map says 5: as the host sees it, and so as the store has it, it is another ID.
  const auto nested = About(answer["notes"], progress->nested);
  BOOST_TEST(nested["kind"] == "nested");
  BOOST_TEST(nested["uids"][0]["hostId"] == kFirst + 5);
  BOOST_TEST(nested["uids"][0]["length"] == 10);
  BOOST_TEST(nested["pods"] == nlohmann::json{"pod-a"});
  // The store does not know it any more.
  BOOST_TEST(store.Run("userns", {"release", "pod-a"}).exit_code == 0);
  const auto unknown = store.Run("userns", {"check", "--json"});
  BOOST_TEST(unknown.exit_code == 1);
  const auto findings = nlohmann::json::parse(unknown.out)["contradictions"];
  BOOST_TEST(About(findings, progress->child)["kind"] == "unknownRange");
  BOOST_TEST(About(findings, progress->nested)["kind"] == "unknownRange");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::cli
