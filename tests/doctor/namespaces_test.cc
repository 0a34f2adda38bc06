// Real user namespaces beside the host IDs that a store gave to pods.

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "doctor/checks.h"
#include "tests/support/forked_child.h"
#include "tests/support/temp_dir.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(namespaces)

namespace {

using doctor::PodIds;

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

BOOST_AUTO_TEST_CASE(real_namespaces_are_compared) {
  // Of the pool's end, which nothing else on this machine is likely to use.
  constexpr std::uint32_t kFirst = 65533U * 65536U;
  const testing::TempDir store;
  const auto look = [&](const std::vector<PodIds>& ids) {
    doctor::Kernel kernel = doctor::ThisKernel();
    kernel.read_store = [&](const std::filesystem::path&) -> Result<doctor::StoreFacts> {
      return doctor::StoreFacts{.host_ids = ids};
    };
    const auto node =
        doctor::Node::Find({.store = store.path().string(),
                            .cri = "unix:///nowhere",
                            .node_json = R"({"status":{"nodeInfo":{"kubeletVersion":"v1.36.3"}}})"},
                           kernel);
    BOOST_REQUIRE(node);
    std::string lines;
    for (const doctor::Finding& finding : doctor::Examine(**node)) {
      if (finding.check != "userns-pool") continue;
      lines += std::string(doctor::VerdictName(finding.verdict)) + " " + finding.seen + "\n";
    }
    return lines;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::vector<PodIds> pod = {{.pod = "pod-a", .first = kFirst, .length = 65536}};
  if (geteuid() != 0 || has(look(pod), "other user IDs than the host's")) {
    BOOST_TEST_MESSAGE("left out: not the host's root");
    return;
  }
  testing::Shared<Progress> progress;
  const testing::Child child([&] { return LiveInNamespaces(*progress); });
  progress->Await(kUnshared);
  if (progress->step != kLeftOut) {
    BOOST_TEST(!has(look(pod), "process"));
    BOOST_TEST(WriteMaps(progress->child, "0 " + std::to_string(kFirst) + " 65536\n"));
    progress->step = kMapped;
    progress->Await(kReady);
  }
  if (progress->step == kLeftOut) {
    BOOST_TEST_MESSAGE("left out: may not make user namespaces");
    return;
  }
  // The nested map says 5: as the host sees it, and so as the store has it, it is another ID.
  BOOST_TEST(!has(look(pod), "process"));
  const std::string first = std::to_string(kFirst);
  const std::string its = "process " + std::to_string(progress->child) + " has host IDs " + first;
  BOOST_TEST(has(look({}), its));
  BOOST_TEST(has(look({{.pod = "pod-b", .first = kFirst + 5, .length = 65536}}), its));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
