// Processes of a recorded node, and real ones, beside the host IDs that a store gave to pods.

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "tests/doctor/recorded_node.h"
#include "tests/support/forked_child.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(userns_processes)

namespace {

using doctor::PodIds;
using doctor::Verdict;
using testing::ExpectOnly;
using testing::RecordedNode;

constexpr const char* kCheck = "userns-processes";
const std::vector<PodIds> kTwoPods = {{.pod = "pod-a", .first = 131072, .length = 65536},
                                      {.pod = "pod-b", .first = 262144, .length = 131072}};

// A node whose store has two pods.
struct TwoPods : RecordedNode {
  TwoPods() {
    Remove("/var/lib/kubelet/pods/b7c1");
    Gave(kTwoPods);
  }
  void FileOf(const std::string& pod, const std::string& first, const std::string& length) {
    Write(
        "/var/lib/kubelet/pods/" + pod + "/userns",
        R"({"uidMappings":[{"hostId":)" + first + R"(,"containerId":0,"length":)" + length + "}]}");
  }

  void Gave(std::vector<PodIds> ids) {
    kernel.read_store = [ids = std::move(ids)](const std::filesystem::path&) {
      return Result<doctor::StoreFacts>(doctor::StoreFacts{.host_ids = ids});
    };
  }
};

// What the check says of this verdict, a line each.
std::string Says(const RecordedNode& node, Verdict verdict) {
  std::string lines;
  for (const doctor::Finding& finding : node.Examine()) {
    if (finding.check == kCheck && finding.verdict == verdict) lines += finding.seen + "\n";
  }
  return lines;
}

// Nothing contradicts; what is said all the same.
void ExpectOk(const RecordedNode& node, const std::string& notes) {
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
  BOOST_TEST(Says(node, Verdict::kOk) == "in user namespaces: " + notes + "\n");
}

void ExpectFail(const RecordedNode& node, const std::string& words) {
  ExpectOnly(node, kCheck, "fail", words);
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(as_the_store_has_it, TwoPods) {
  ExpectOk(*this, "0, none of pod pod-a, none of pod pod-b");
  Maps("1", "         0          0 4294967295\n");
  Maps("10", "         0     131072      65536\n");
  Maps("11", "0 131072 65536\n");
  ExpectOk(*this, "2, 2 as stored, none of pod pod-b");
}

// A guard takes a file over a moment later; a store that gives out no host IDs never does.
BOOST_FIXTURE_TEST_CASE(what_only_the_kubelets_files_give_contradicts_nothing, TwoPods) {
  Gave({});
  FileOf("pod-f", "524288", "65536");
  Maps("10", "0 524288 65536\n");
  Maps("11", "0 524288 1\n");
  ExpectOk(*this, "2, 1 in the kubelet's files alone, 1 with part of a pod's");
  Remove("/proc/11");
  // A pod of the store's that has them, too.
  Gave({{.pod = "pod-s", .first = 524288, .length = 65536}});
  ExpectFail(*this, "of pod pod-f and pod pod-s");
  // What the store has of a pod counts, whatever its file says.
  Gave({{.pod = "pod-f", .first = 655360, .length = 65536}});
  ExpectFail(*this, "of no pod that the store knows");
}

BOOST_FIXTURE_TEST_CASE(a_file_of_absurd_numbers_gives_nothing, TwoPods) {
  Gave({});
  Maps("10", "0 524288 65536\n");
  for (const char* const first : {"4294967296", "18446744073709551615"}) {
    FileOf("pod-f", first, "65536");
    BOOST_TEST(Says(*this, Verdict::kFail).find("of no pod that the store knows") !=
               std::string::npos);
  }
  FileOf("pod-f", "1", "18446744073709551615");
  BOOST_TEST(Says(*this, Verdict::kFail).find("of no pod that the store knows") !=
             std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(without_a_store_nothing_is_compared, TwoPods) {
  Remove("/var/lib/waybill");
  Maps("10", "0 655360 65536\n");
  BOOST_TEST(Says(*this, Verdict::kFail).empty());
  BOOST_TEST(Says(*this, Verdict::kOk).empty());
}

// Root alone, several parts, other GIDs.
BOOST_FIXTURE_TEST_CASE(what_a_container_maps_again_is_part_of_its_pods, TwoPods) {
  Maps("10", "0 131072 65536\n");
  Maps("12", "0 131072 1\n");
  Maps("13", "0 140000 1000\n1000 131072 1\n");
  Maps("14", "0 131072 65536\n");
  Write("/proc/14/gid_map", "5 131073 1\n");
  Maps("17", "0 131072 65536\n");
  Write("/proc/17/gid_map", "");
  ExpectOk(*this, "5, 1 as stored, 4 with part of a pod's, none of pod pod-b");
}

BOOST_FIXTURE_TEST_CASE(nothing_mapped_and_the_hosts_own, TwoPods) {
  Maps("15", "");
  Maps("16", "0 1000 1\n");
  ExpectOk(*this, "2, 1 outside the pool, 1 without any, none of pod pod-a, none of pod pod-b");
}

BOOST_FIXTURE_TEST_CASE(a_range_that_the_store_does_not_know, TwoPods) {
  Maps("10", "0 655360 65536\n");
  Maps("11", "0 655360 65536\n");
  ExpectFail(*this,
             "process 10 has host UIDs 655360-720895 and GIDs 655360-720895, of no pod that the "
             "store knows");
  // Other IDs are another line, up to a hundred.
  for (int pid = 12; pid < 300; ++pid) {
    Maps(std::to_string(pid), "0 " + std::to_string(7000000 + pid) + " 1\n");
  }
  const std::string lines = Says(*this, Verdict::kFail);
  BOOST_TEST(std::count(lines.begin(), lines.end(), '\n') == 100);
}

BOOST_FIXTURE_TEST_CASE(outside_the_pool_nothing_is_given_out, TwoPods) {
  Maps("10", "0 655360 65536\n");
  const std::string notes = "1, 1 outside the pool, none of pod pod-a, none of pod pod-b";
  Append("/var/lib/kubelet/config.yaml", "maxPods: 4\n");
  Write("/etc/subuid", "kubelet:65536:327680\n");
  Write("/etc/subgid", "kubelet:65536:327680\n");
  ExpectOk(*this, notes);
  // A pool that reaches there, and then with the gate off.
  Write("/etc/subuid", "kubelet:65536:655360\n");
  Write("/etc/subgid", "kubelet:65536:655360\n");
  ExpectFail(*this, "of no pod that the store knows");
  Append("/var/lib/kubelet/config.yaml", "featureGates: {UserNamespacesSupport: false}\n");
  ExpectOk(*this, notes);
}

// A rootless container of an ordinary user, whose subordinate IDs a pod has, too.
BOOST_FIXTURE_TEST_CASE(partly_of_a_pod, TwoPods) {
  Maps("10", "0 1000 1\n1 165536 65536\n");
  ExpectFail(*this, "1000-1000, …, partly of pod pod-a, partly of none");
}

BOOST_FIXTURE_TEST_CASE(of_two_pods, TwoPods) {
  Maps("10", "0 131072 196608\n");
  ExpectFail(*this, "UIDs 131072-327679 and GIDs 131072-327679, of pod pod-a and pod pod-b");
  Maps("10", "0 131072 65536\n");
  Write("/proc/10/gid_map", "0 262144 131072\n");
  ExpectFail(*this, "UIDs 131072-196607 and GIDs 262144-393215, of pod pod-a and pod pod-b");
}

BOOST_FIXTURE_TEST_CASE(of_another_length, TwoPods) {
  Maps("10", "0 131072 131072\n");
  ExpectFail(*this, "131072-262143, of another length than pod pod-a has");
  Remove("/proc/10");
  Maps("11", "0 262144 65536\n");
  ExpectFail(*this, "262144-327679, of another length than pod pod-b has");
  // Beside a process that has the whole.
  Maps("12", "0 262144 131072\n");
  ExpectOk(*this, "2, 1 as stored, 1 with part of a pod's, none of pod pod-a");
}

BOOST_FIXTURE_TEST_CASE(in_the_cgroup_of_another_pod, TwoPods) {
  Maps("10", "0 131072 65536\n");
  // By cgroupfs and by systemd, and what a container makes below its own.
  for (const std::string path :
       {"0::/kubepods/burstable/podpod-b/0123", "3:cpu:/kubepods/podpod-b\n0::/\n",
        "0::/system.slice/kubelet/kubepods/burstable/podpod-b/x/kubepods/podpod-a\n",
        "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podpod_b.slice/"
        "crio-1.scope/kubepods-podpod_a.slice\n",
        "0::/kubepods.slice/kubepods-podpod_b.slice"}) {
    BOOST_TEST_CONTEXT(path) {
      Write("/proc/10/cgroup", path);
      ExpectFail(*this, "131072-196607, of pod pod-a, in the cgroup of pod pod-b");
    }
  }
  for (const std::string path :
       {"", "0::/\n", "0::/user.slice/podman-1.scope\n", "0::/kubepods\n",
        "0::/kubepods/burstable\n", "0::/machine/poda/b\n", "0::/kubepods.slice/kubepods-poda\n",
        "0::/kubepods/podpod-a/0123\n",
        "0::/kubepods.slice/kubepods-podpod_a.slice/cri-containerd-1.scope\n"}) {
    BOOST_TEST_CONTEXT(path) {
      Write("/proc/10/cgroup", path);
      ExpectOk(*this, "1, 1 as stored, none of pod pod-b");
    }
  }
}

BOOST_FIXTURE_TEST_CASE(held_pods, TwoPods) {
  Gave({{.pod = "held", .first = 524288, .length = 65536, .in = PodIds::In::kHeld},
        {.pod = "", .first = 589824, .length = 65536, .in = PodIds::In::kHeld}});
  Maps("10", "0 524288 65536\n");
  Maps("11", "0 589824 65536\n");
  Write("/proc/11/cgroup", "0::/kubepods/podx/1\n");
  ExpectOk(*this, "2, 2 of held pods");
  Maps("11", "0 589824 131072\n");
  ExpectFail(*this, "589824-720895, of another length than a lost pod has");
  // Nobody can say whose an ID is.
  Gave({{.pod = "held", .first = 524288, .length = 65536, .in = PodIds::In::kHeld},
        {.pod = "broken", .in = PodIds::In::kHeld}});
  Maps("11", "0 720896 65536\n");
  ExpectFail(*this, "of no pod that the store knows; it does not know those of pod broken");
}

BOOST_FIXTURE_TEST_CASE(what_no_kernel_writes_is_not_compared, TwoPods) {
  Maps("10", "0 131072 65536\n");
  int pid = 20;
  for (const std::string text :
       {"garbage", "0 0 1", "\n", "0 0\n", "0 0 1 1\n", "0 0 x\n", "0 0 0\n", "-1 0 1\n",
        "0x0 0 1\n", "0 0 4294967296\n", "1 0 4294967295\n", "0 4294967295 1\n", "0 4294967295 0\n",
        "0 4294901760 65536\n", "0 0 1\n\n"}) {
    Maps(std::to_string(pid), "0 262144 131072\n");
    Write("/proc/" + std::to_string(pid++) + "/uid_map", text);
  }
  BOOST_TEST(Says(*this, Verdict::kUnknown) == "15 processes can't be read\n");
  BOOST_TEST(Says(*this, Verdict::kFail).empty());
  BOOST_TEST(Says(*this, Verdict::kOk) ==
             "in user namespaces: 1, 1 as stored, none of pod pod-b\n");
}

BOOST_FIXTURE_TEST_CASE(what_ended_meanwhile_says_nothing, TwoPods) {
  Maps("10", "0 655360 65536\n");
  Write("/proc/11/status", "");  // one whose maps are gone already
  const auto read = kernel.read_store;
  kernel.read_store = [this, read](const std::filesystem::path& path) {
    Remove("/proc/10");
    return read(path);
  };
  BOOST_TEST(testing::Wrong(Examine()) == "");
}

// There the same map has other IDs than the host's.
BOOST_FIXTURE_TEST_CASE(a_doctor_in_a_user_namespace, TwoPods) {
  Maps("10", "0 655360 65536\n");
  Maps("self", "0 131072 65536\n");
  ExpectOnly(*this, kCheck, "unknown", "this process is in a user namespace");
  Remove("/proc/self/gid_map");
  ExpectOnly(*this, kCheck, "unknown", "can't be read");
}

// --- Real ones ---

namespace {

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

}  // namespace

BOOST_FIXTURE_TEST_CASE(real_namespaces_are_compared, TwoPods) {
  // Of the pool's end, which nothing else on this machine is likely to use.
  constexpr std::uint32_t kFirst = 65533U * 65536U;
  const testing::TempDir store;
  options = {.store = store.path().string()};
  const auto look = [&](std::vector<PodIds> ids) {
    Gave(std::move(ids));
    const auto node = testing::Must(doctor::Node::Find(options, kernel));
    std::string lines;
    for (const doctor::Finding& finding : doctor::UsernsProcessesCheck(*node)) {
      lines += std::string(doctor::VerdictName(finding.verdict)) + " " + finding.seen + "\n";
    }
    return lines;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::vector<PodIds> pod = {{.pod = "pod-a", .first = kFirst, .length = 65536}};
  if (geteuid() != 0 || has(look(pod), "is in a user namespace")) {
    BOOST_TEST_MESSAGE("left out: not the host's root");
    return;
  }
  testing::Shared<Progress> progress;
  const testing::Child child([&] { return LiveInNamespaces(*progress); });
  progress->Await(kUnshared);
  if (progress->step != kLeftOut) {
    BOOST_TEST(has(look(pod), " without any"));
    BOOST_TEST(has(look(pod), "none of pod pod-a"));
    BOOST_TEST(WriteMaps(progress->child, "0 " + std::to_string(kFirst) + " 65536\n"));
    progress->step = kMapped;
    progress->Await(kReady);
  }
  if (progress->step == kLeftOut) {
    BOOST_TEST_MESSAGE("left out: may not make user namespaces");
    return;
  }
  // The nested map says 5: as the host sees it, and so as the store has it, it is another ID.
  const std::string both = look(pod);
  BOOST_TEST(has(both, "1 as stored, 1 with part of a pod's"));
  BOOST_TEST(!has(both, std::to_string(progress->child)));
  BOOST_TEST(!has(both, "none of pod"));
  // One that the store does not know.
  const std::string first = std::to_string(kFirst);
  BOOST_TEST(has(look({}), "has host UIDs " + first + "-"));
  BOOST_TEST(
      has(look({{.pod = "pod-b", .first = kFirst + 5, .length = 65536}}), "partly of pod pod-b"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
