// User namespaces of a recorded node, with one thing wrong each time.

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "tests/doctor/recorded_node.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(user_namespaces)

using testing::ExpectOnly;
using testing::RecordedNode;

BOOST_AUTO_TEST_CASE(turned_off) {
  RecordedNode node;
  node.Write("/proc/sys/user/max_user_namespaces", "0\n");
  ExpectOnly(node, "userns-kernel", "fail", "max_user_namespaces is 0");
}

BOOST_AUTO_TEST_CASE(an_old_kernel) {
  RecordedNode node;
  node.Write("/proc/sys/kernel/osrelease", "6.1.0-40-amd64\n");
  ExpectOnly(node, "userns-kernel", "warn", "Linux 6.1.0-40-amd64 can't map");
}

BOOST_AUTO_TEST_CASE(a_user_without_the_tool) {
  RecordedNode node;
  node.Remove("/usr/bin/getsubids");
  ExpectOnly(node, "userns-pool", "fail", "such a kubelet does not start");
}

BOOST_AUTO_TEST_CASE(a_pool_that_is_too_small) {
  RecordedNode node;
  node.Append("/var/lib/kubelet/config.yaml", "maxPods: 250\n");
  ExpectOnly(node, "userns-pool", "fail", "250");
}

BOOST_AUTO_TEST_CASE(uids_and_gids_differ) {
  RecordedNode node;
  node.Write("/etc/subgid", "kubelet:131072:7208960\n");
  ExpectOnly(node, "userns-pool", "fail", "mismatch");
}

BOOST_AUTO_TEST_CASE(a_pool_that_somebody_else_knows) {
  RecordedNode node;
  node.Write("/etc/nsswitch.conf", "passwd: files\nsubid: sss\n");
  ExpectOnly(node, "userns-pool", "unknown", "asked of a service");
}

BOOST_AUTO_TEST_CASE(a_pod_outside_the_pool) {
  RecordedNode node;
  node.Write("/etc/subuid", "kubelet:196608:7208960\n");
  node.Write("/etc/subgid", "kubelet:196608:7208960\n");
  ExpectOnly(node, "userns-mappings", "fail", "pod b7c1 begins at 131072, outside the pool");
}

BOOST_AUTO_TEST_CASE(a_pod_of_another_length) {
  RecordedNode node;
  node.Append("/var/lib/kubelet/config.yaml",
              "userNamespaces:\n  idsPerPod: 131072\nmaxPods: 50\n");
  node.Write("/etc/subuid", "kubelet:131072:7208960\n");
  node.Write("/etc/subgid", "kubelet:131072:7208960\n");
  ExpectOnly(node, "userns-mappings", "fail", "has 65536 IDs, and idsPerPod is 131072");
}

BOOST_AUTO_TEST_CASE(volumes_that_can_not_be_mapped) {
  RecordedNode node;
  node.kernel.maps_ids = [](const std::filesystem::path&) -> Result<bool> { return false; };
  ExpectOnly(node, "userns-mounts", "fail", "can't be mounted with mapped IDs");
  node.kernel.maps_ids = [](const std::filesystem::path&) -> Result<bool> {
    return Error{ErrorCode::kUnavailable, "it could not be tried: no", "be root"};
  };
  ExpectOnly(node, "userns-mounts", "unknown", "it could not be tried");
}

BOOST_AUTO_TEST_CASE(no_handler_can) {
  RecordedNode node;
  std::string info = node.AnswerOf("info.json");
  for (const std::string word = "\"user_namespaces\": true";;) {
    const auto at = info.find(word);
    if (at == std::string::npos) break;
    info.replace(at, word.size(), "\"user_namespaces\": false");
  }
  node.Answer("info.json", info);
  ExpectOnly(node, "userns-handlers", "warn", "can do it");
}

// What the probe says here must not differ between two looks, and leaves no mount behind.
BOOST_AUTO_TEST_CASE(the_probe) {
  const auto mounts = [] { return testing::ReadFile("/proc/self/mountinfo"); };
  const testing::TempDir dir;
  const std::string before = mounts();
  const auto first = doctor::ThisKernel().maps_ids(dir.path());
  const auto second = doctor::ThisKernel().maps_ids(dir.path());
  BOOST_TEST(first.has_value() == second.has_value());
  if (first && second) BOOST_TEST(*first == *second);
  BOOST_TEST(mounts() == before);
  // procfs can't be mapped.
  const auto proc = doctor::ThisKernel().maps_ids("/proc");
  BOOST_TEST((!proc || !*proc));
  // Without the right to mount it does not guess.
  if (::geteuid() != 0) BOOST_TEST(!first.has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
