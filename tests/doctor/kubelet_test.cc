// The kubelet of a recorded node, with one thing wrong each time.

#include <boost/test/unit_test.hpp>

#include "tests/doctor/recorded_node.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(kubelet)

namespace {

using testing::ExpectOnly;
using testing::RecordedNode;

constexpr const char* kConfig = "/var/lib/kubelet/config.yaml";
constexpr const char* kRecords = "/var/lib/kubelet/image_manager/pulled";

bool SaysOf(const RecordedNode& node, const std::string& check, const std::string& words) {
  for (const doctor::Finding& finding : node.Examine()) {
    if (finding.check == check && finding.seen.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_is_wrong) {
  const RecordedNode node;
  const doctor::Findings findings = node.Examine();
  BOOST_TEST(testing::Wrong(findings) == "");
  BOOST_TEST((doctor::ProtectionBy(findings) == doctor::Protection::kYes));
  // Each check says something.
  for (const doctor::Check& check : doctor::Checks()) {
    bool spoke = false;
    for (const doctor::Finding& finding : findings) spoke = spoke || finding.check == check.name;
    BOOST_TEST(spoke, check.name << " said nothing");
  }
}

BOOST_AUTO_TEST_CASE(all_releases_that_are_known) {
  for (const char* version : {"v1.33.5", "v1.34.2", "v1.35.4+k3s1", "v1.36.3", "v1.37.0-rc.1"}) {
    RecordedNode node;
    node.RunsKubelet(version, "--feature-gates=KubeletEnsureSecretPulledImages=true");
    BOOST_TEST(testing::Wrong(node.Examine()) == "");
    BOOST_TEST(SaysOf(node, "kubelet-version", version));
  }
}

BOOST_AUTO_TEST_CASE(a_release_before_the_feature) {
  RecordedNode node;
  node.RunsKubelet("v1.32.9");
  ExpectOnly(node, "kubelet-version", "fail", "v1.32.9 verifies nothing");
}

BOOST_AUTO_TEST_CASE(a_release_that_is_not_known_yet) {
  RecordedNode node;
  node.RunsKubelet("v1.38.0");
  ExpectOnly(node, "kubelet-version", "warn", "v1.38.0 is newer");
}

BOOST_AUTO_TEST_CASE(the_nodes_own_answer_comes_first) {
  RecordedNode node;
  node.options.node_json = R"({"status":{"nodeInfo":{"kubeletVersion":"v1.31.1"}}})";
  ExpectOnly(node, "kubelet-version", "fail", "v1.31.1");
}

BOOST_AUTO_TEST_CASE(go_says_what_the_linker_does_not) {
  RecordedNode node;
  node.Write("/usr/bin/kubelet", "ELF\npath\tx\nmod\tk8s.io/kubernetes\tv1.36.1\th1:\n");
  BOOST_TEST(SaysOf(node, "kubelet-version", "v1.36.1"));
  node.Write("/usr/bin/kubelet", "ELF\npath\tx\ndep\tk8s.io/kubernetes\tv1.35.2\th1:\n");
  BOOST_TEST(SaysOf(node, "kubelet-version", "v1.35.2"));
}

BOOST_AUTO_TEST_CASE(a_release_across_the_end_of_what_is_read_at_once) {
  RecordedNode node;
  const std::string version("\0v1.36.7\0", 9);
  for (const std::size_t before : {(1U << 20) - 4, (1U << 20) - 1, (1U << 20) + 3}) {
    node.Write("/usr/bin/kubelet", std::string(before, 'x') + version + std::string(5000, 'y'));
    BOOST_TEST(SaysOf(node, "kubelet-version", "v1.36.7"));
  }
}

BOOST_AUTO_TEST_CASE(a_program_that_names_two_releases) {
  RecordedNode node;
  node.Write("/usr/bin/kubelet", std::string("\0v1.36.3\0v1.35.0\0", 17));
  const doctor::Findings findings = node.Examine();
  BOOST_TEST((doctor::ProtectionBy(findings) == doctor::Protection::kNotKnown));
  BOOST_TEST(testing::Wrong(findings).find("names several releases") != std::string::npos);
}

// --- The gate ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(off_by_default_in_1_33_and_1_34) {
  for (const char* version : {"v1.33.0", "v1.34.2"}) {
    RecordedNode node;
    node.RunsKubelet(version);
    ExpectOnly(node, "kubelet-gate", "fail", "is off by default in " + std::string(version));
    BOOST_TEST((doctor::ProtectionBy(node.Examine()) == doctor::Protection::kNo));
  }
}

BOOST_AUTO_TEST_CASE(off_by_configuration) {
  RecordedNode node;
  node.Append(kConfig, "featureGates:\n  KubeletEnsureSecretPulledImages: false\n");
  ExpectOnly(node, "kubelet-gate", "fail", "off by its configuration");
}

BOOST_AUTO_TEST_CASE(off_by_command_line_which_wins) {
  RecordedNode node;
  node.Append(kConfig, "featureGates:\n  KubeletEnsureSecretPulledImages: true\n");
  node.RunsKubelet("v1.36.3", "--feature-gates=Other=true,KubeletEnsureSecretPulledImages=0");
  ExpectOnly(node, "kubelet-gate", "fail", "off by its command line");
  node.RunsKubelet("v1.36.3",
                   "--feature-gates KubeletEnsureSecretPulledImages=false "
                   "--feature-gates KubeletEnsureSecretPulledImages=true");
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
}

BOOST_AUTO_TEST_CASE(off_by_a_drop_in_which_wins_over_the_file) {
  RecordedNode node;
  node.Append(kConfig, "featureGates:\n  KubeletEnsureSecretPulledImages: true\n");
  node.Write("/etc/kubelet.d/10-a/20.conf",
             "featureGates:\n  KubeletEnsureSecretPulledImages: false\n");
  node.Write("/etc/kubelet.d/30.txt", "not: [yaml");
  node.RunsKubelet("v1.36.3", "--config-dir=/etc/kubelet.d");
  ExpectOnly(node, "kubelet-gate", "fail", "off by its configuration");
  // A null takes away what was said before it.
  node.Write("/etc/kubelet.d/50.conf", "featureGates:\n  KubeletEnsureSecretPulledImages: null\n");
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
}

BOOST_AUTO_TEST_CASE(off_by_what_is_said_of_all_gates_of_its_stage) {
  RecordedNode node;
  node.Append(kConfig, "featureGates:\n  AllBeta: false\n");
  // UserNamespacesSupport is locked from 1.36 on, and beta before.
  ExpectOnly(node, "kubelet-gate", "fail", "AllBeta");
  node.Append(kConfig, "  KubeletEnsureSecretPulledImages: true\n");
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
}

BOOST_AUTO_TEST_CASE(on_by_all_alpha) {
  RecordedNode node;
  node.RunsKubelet("v1.34.2", "--feature-gates=AllAlpha=true,RuntimeClassInImageCriApi=false");
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
}

// --- The policy ----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(never_verify) {
  RecordedNode node;
  node.Append(kConfig, "imagePullCredentialsVerificationPolicy: NeverVerify\n");
  ExpectOnly(node, "kubelet-policy", "fail", "NeverVerify: the kubelet verifies nothing");
  BOOST_TEST((doctor::ProtectionBy(node.Examine()) == doctor::Protection::kNo));
}

BOOST_AUTO_TEST_CASE(an_allowlist_that_holds_a_whole_registry) {
  RecordedNode node;
  node.Append(kConfig,
              "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
              "preloadedImagesVerificationAllowlist: [registry.example/*, registry.example/a/*]\n");
  ExpectOnly(node, "kubelet-policy", "warn", "all images of registry.example/* are open");
}

BOOST_AUTO_TEST_CASE(a_policy_with_which_no_kubelet_starts) {
  RecordedNode unknown;
  unknown.Append(kConfig, "imagePullCredentialsVerificationPolicy: Sometimes\n");
  ExpectOnly(unknown, "kubelet-policy", "fail", "Sometimes is no policy");
  RecordedNode pattern;
  pattern.Append(kConfig,
                 "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
                 "preloadedImagesVerificationAllowlist: [\"*\"]\n");
  ExpectOnly(pattern, "kubelet-policy", "fail", "does not start");
  RecordedNode beside;
  beside.Append(kConfig, "preloadedImagesVerificationAllowlist: [registry.example/a]\n");
  ExpectOnly(beside, "kubelet-policy", "fail", "does not start");
}

BOOST_AUTO_TEST_CASE(a_configuration_that_can_not_be_read) {
  RecordedNode node;
  node.Append(kConfig, "featureGates: [\n");
  const doctor::Findings findings = node.Examine();
  BOOST_TEST((doctor::ProtectionBy(findings) == doctor::Protection::kNotKnown));
  BOOST_TEST(testing::Wrong(findings).find("unknown kubelet-gate: /var/lib/kubelet/config.yaml") !=
             std::string::npos);
}

// --- Its directory and records -------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_kubelet_with_another_directory) {
  RecordedNode node;
  node.Write("/data/kubelet/image_manager/pulled/x", "");
  node.RunsKubelet("v1.36.3", "--root-dir=/data/kubelet");
  node.options.kubelet_directory = "/var/lib/kubelet";
  ExpectOnly(node, "kubelet-directory", "fail", "keeps its files in /data/kubelet");
}

// Of which another container is the node.
BOOST_AUTO_TEST_CASE(a_kubelet_in_a_container) {
  RecordedNode node;
  node.Write("/proc/33/cmdline", std::string("kubelet\0--root-dir=/x\0", 22));
  node.Write("/proc/33/status", "Name:\tkubelet\nNStgid:\t33\t7\nNSpid:\t33\t7\nNSpgid:\t33\t7\n");
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
  node.Write("/proc/33/status", "Name:\tkubelet\nNSpid:\t33\n");
  BOOST_TEST(testing::Wrong(node.Examine()) != "");
}

BOOST_AUTO_TEST_CASE(a_directory_that_others_can_write) {
  RecordedNode node;
  std::filesystem::permissions(node.At(kRecords), std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  ExpectOnly(node, "kubelet-directory", "fail", "can be written by others");
}

BOOST_AUTO_TEST_CASE(no_kubelet_runs) {
  RecordedNode node;
  node.Remove("/proc/4242");
  ExpectOnly(node, "kubelet-directory", "unknown", "no kubelet runs");
}

BOOST_AUTO_TEST_CASE(a_kubelet_that_keeps_no_records) {
  RecordedNode node;
  node.Remove(kRecords);
  ExpectOnly(node, "kubelet-records", "fail", "keeps no records");
}

BOOST_AUTO_TEST_CASE(an_image_came_and_no_record) {
  RecordedNode node;
  const std::string blob = "/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/0a";
  node.Write(blob, "");
  std::filesystem::last_write_time(
      node.At(blob), std::filesystem::file_time_type::clock::now() + std::chrono::hours(24 * 300));
  ExpectOnly(node, "kubelet-records", "warn", "and an image came on");
}

// --- The rest ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(runtime_classes) {
  RecordedNode node;
  node.Append(kConfig, "featureGates:\n  RuntimeClassInImageCriApi: true\n");
  ExpectOnly(node, "kubelet-runtime-classes", "warn", "RuntimeClassInImageCriApi is on");
}

BOOST_AUTO_TEST_CASE(pulls_without_a_bound) {
  RecordedNode node;
  node.Append(kConfig, "serializeImagePulls: false\n");
  ExpectOnly(node, "kubelet-pulls", "warn", "as many at a time");
  node.Append(kConfig, "maxParallelImagePulls: 4\n");
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
  // The flag wins.
  node.RunsKubelet("v1.36.3", "--serialize-image-pulls");
  ExpectOnly(node, "kubelet-pulls", "fail", "such a kubelet does not start");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
