// The runtime of a recorded node, and who checks credentials.

#include <boost/test/unit_test.hpp>

#include "tests/doctor/recorded_node.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(runtime)

using testing::ExpectOnly;
using testing::RecordedNode;

namespace {

const std::string kRecord = "/var/lib/kubelet/image_manager/pulled/sha256-0";
const std::string kDefaultHosts = "/etc/containerd/certs.d/_default/hosts.toml";
const std::string kHex = "40a41701be082a898c7b030a05e0017df00899c437ab7e1946f82b618f8eeb1e";

// A record of an image of `name` under `ref`.
void HasRecord(RecordedNode& node, const std::string& name,
               const std::string& ref = "sha256:" + kHex) {
  node.Write(kRecord, R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
                      R"("lastUpdatedTime":"2026-11-26T10:00:00Z","imageRef":")" +
                          ref + R"(","credentialMapping":{")" + name +
                          R"(":{"kubernetesSecrets":[{"uid":"u","namespace":"n","name":"s",)"
                          R"("credentialHash":"h"}]}}})");
}

// CRI-O in the place of containerd.
void RunsCrio(RecordedNode& node) {
  node.Answer("version.json", R"({"runtimeName":"cri-o","runtimeVersion":"1.33.1"})");
}

std::string SeenBy(const RecordedNode& node, const std::string& check) {
  std::string seen;
  for (const doctor::Finding& finding : node.Examine()) {
    if (finding.check == check) seen += finding.seen + "\n";
  }
  return seen;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_a_sound_node_says) {
  RecordedNode node;
  HasRecord(node, "registry.example.com/team/app");
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
  BOOST_TEST(SeenBy(node, "runtime-version") ==
             "containerd v2.4.2, handlers runc, second, 6 images, 1 pinned\n");
  BOOST_TEST(SeenBy(node, "runtime-image-refs") == "image refs are image IDs with sha256:\n");
  BOOST_TEST(SeenBy(node, "credentials-mirrors") ==
             "no other host serves images of registry.example.com\n");
}

BOOST_AUTO_TEST_CASE(a_runtime_whose_pulls_are_not_understood) {
  RecordedNode node;
  node.Answer("version.json", R"({"runtimeName":"docker","runtimeVersion":"26.1.5"})");
  const std::string wrong = testing::Wrong(node.Examine());
  for (const char* line :
       {"warn runtime-version: docker 26.1.5 is not a runtime whose pulls are understood",
        "unknown runtime-guest-pulls: ", "unknown runtime-short-names: ",
        "unknown credentials-mirrors: "}) {
    BOOST_TEST(wrong.find(line) != std::string::npos, line);
  }
}

// --- Who checks credentials ----------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_open_mirror) {
  RecordedNode node;
  HasRecord(node, "registry.example.com/team/app");
  node.Write(kDefaultHosts, "\n[host.\"http://127.0.0.1:30020\"]\n");
  ExpectOnly(node, "credentials-mirrors", "fail",
             "images of registry.example.com may come from 127.0.0.1:30020 "
             "(/etc/containerd/certs.d/_default/hosts.toml, line 2): it is on this node");
  BOOST_TEST((doctor::ProtectionBy(node.Examine()) == doctor::Protection::kNo));
}

BOOST_AUTO_TEST_CASE(a_mirror_that_is_shown_the_nodes_credentials) {
  RecordedNode node;
  HasRecord(node, "registry.example.com/team/app");
  node.Write("/etc/containerd/certs.d/registry.example.com/hosts.toml",
             "[host.\"https://m.example.com\".header]\nAuthorization = \"Basic eDp5\"\n");
  ExpectOnly(node, "credentials-mirrors", "fail", "m.example.com");
  BOOST_TEST(SeenBy(node, "credentials-mirrors").find("eDp5") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_mirror_of_which_nothing_is_known) {
  RecordedNode node;
  HasRecord(node, "registry.example.com/team/app");
  node.Write("/etc/containerd/certs.d/registry.example.com/hosts.toml",
             "[host.\"https://m.example.com\"]\n");
  ExpectOnly(node, "credentials-mirrors", "warn",
             "nothing says whether it asks pods for credentials");
  // Not that of a registry that nothing names.
  HasRecord(node, "other.example.com/app");
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
}

BOOST_AUTO_TEST_CASE(a_mirror_that_digests_alone_come_from) {
  RecordedNode node;
  HasRecord(node, "registry.example.com/team/app");
  node.Write(kDefaultHosts, "[host.\"https://m.example.com\"]\ncapabilities = [\"pull\"]\n");
  ExpectOnly(node, "credentials-mirrors", "warn", "m.example.com");
}

BOOST_AUTO_TEST_CASE(an_intent_names_a_registry) {
  RecordedNode node;
  node.Write("/var/lib/kubelet/image_manager/pulling/sha256-0",
             R"({"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
             R"("image":"registry.example.com/team/app:1"})");
  node.Write("/etc/containerd/certs.d/registry.example.com/hosts.toml", "server = \"m.test\"\n");
  ExpectOnly(node, "credentials-mirrors", "warn",
             "images of registry.example.com may come from m.test");
}

BOOST_AUTO_TEST_CASE(without_records_the_images_on_the_node_count) {
  RecordedNode node;
  node.Write("/etc/containerd/certs.d/127.0.0.1_5000_/hosts.toml", "server = \"m.test\"\n");
  ExpectOnly(node, "credentials-mirrors", "warn", "images of 127.0.0.1:5000 may come from m.test");
}

BOOST_AUTO_TEST_CASE(a_configuration_that_is_broken) {
  RecordedNode node;
  node.Write(kDefaultHosts, "server = \n");
  ExpectOnly(node, "credentials-mirrors", "unknown",
             "/etc/containerd/certs.d/_default/hosts.toml: line 1");
  BOOST_TEST((doctor::ProtectionBy(node.Examine()) == doctor::Protection::kNotKnown));
}

BOOST_AUTO_TEST_CASE(a_mirror_of_cri_o) {
  RecordedNode node;
  RunsCrio(node);
  HasRecord(node, "registry.example.com/team/app");
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
  node.Write("/etc/containers/registries.conf.d/50-mirror.conf",
             "[[registry]]\nlocation = \"registry.example.com\"\n"
             "[[registry.mirror]]\nlocation = \"m.example.com\"\ninsecure = true\n");
  ExpectOnly(node, "credentials-mirrors", "warn", "others can answer for it");
}

BOOST_AUTO_TEST_CASE(the_file_that_the_runtimes_process_names) {
  RecordedNode node;
  HasRecord(node, "registry.example.com/team/app");
  node.Write("/proc/812/cmdline",
             std::string("/usr/bin/containerd\0--config\0/opt/containerd.toml\0", 50));
  node.Write("/opt/containerd.toml",
             "[plugins.\"io.containerd.cri.v1.images\".registry]\nconfig_path = \"/opt/hosts\"\n");
  node.Write("/opt/hosts/_default/hosts.toml", "server = \"m.test\"\n");
  // A pod can have any name.
  node.Write("/proc/812/status", "Name:\tcontainerd\nPPid:\t4000\nTracerPid:\t0\n");
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
  node.Write("/proc/812/status", "Name:\tcontainerd\nPPid:\t1\nTracerPid:\t0\n");
  ExpectOnly(node, "credentials-mirrors", "warn",
             "m.test (/opt/hosts/_default/hosts.toml, line 1)");
}

BOOST_AUTO_TEST_CASE(a_process_that_takes_registries_from_elsewhere) {
  RecordedNode node;
  RunsCrio(node);
  node.Write("/proc/812/status", "PPid:\t0\nPPid:\t1\n");
  node.Write("/proc/812/cmdline",
             std::string("/usr/bin/crio\0--registries-conf=/opt/r.conf\0", 44));
  ExpectOnly(node, "credentials-mirrors", "unknown", "the flag --registries-conf");
}

// --- The runtime ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_proxy) {
  RecordedNode node;
  node.Write("/proc/812/cmdline", std::string("/usr/bin/containerd\0", 20));
  node.Write("/proc/812/status", "Name:\tcontainerd\nPPid:\t1\nTracerPid:\t0\n");
  node.Write(
      "/proc/812/environ",
      std::string("PATH=/bin\0HTTPS_PROXY=http://user:s3cret@proxy.example.com:3128/\0", 65));
  ExpectOnly(node, "runtime-proxy", "warn", "through the proxy http://proxy.example.com:3128");
  BOOST_TEST(SeenBy(node, "runtime-proxy").find("s3cret") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(records_under_another_spelling) {
  RecordedNode node;
  HasRecord(node, "registry.example.com/team/app", kHex);
  ExpectOnly(node, "runtime-image-refs", "fail", "otherwise than 1 record");
}

BOOST_AUTO_TEST_CASE(pulls_in_the_guest) {
  RecordedNode node;
  node.Write("/etc/containerd/config.toml",
             "[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.kata-qemu-snp]\n"
             "runtime_type = \"io.containerd.kata-qemu-snp.v2\"\n");
  ExpectOnly(node, "runtime-guest-pulls", "warn", "images of handler kata-qemu-snp");
}

BOOST_AUTO_TEST_CASE(short_names) {
  RecordedNode node;
  RunsCrio(node);
  node.Write("/etc/containers/registries.conf",
             "unqualified-search-registries = [\"docker.io\", \"quay.io\"]\n");
  ExpectOnly(node, "runtime-short-names", "warn", "looked for at quay.io");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
