// Waybill and the disk of a recorded node, with one thing wrong each time; and the command itself.

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/doctor/recorded_node.h"
#include "tests/support/run_command.h"
#include "tests/support/tree.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(store_and_disk)

namespace {

using testing::ExpectOnly;
using testing::RecordedNode;

constexpr const char* kStatus = "/var/lib/kubelet/image_manager/waybill-guard/status.json";
constexpr const char* kGuardsLock = "var/lib/kubelet/image_manager/waybill-guard/lock";

RecordedNode& Reads(RecordedNode& node, Result<doctor::StoreFacts> facts) {
  node.kernel.read_store = [facts](const std::filesystem::path&) { return facts; };
  return node;
}

// A kubelet with a directory and a guard of its own.
void AddKubelet(RecordedNode& node, const std::string& directory, const std::string& store) {
  node.Write("/proc/5555/cmdline",
             std::string("kubelet\0--root-dir=", 19) + directory + std::string(1, '\0'));
  node.Write(directory + "/image_manager/waybill-guard/status.json",
             R"({"store":")" + store + R"("})");
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_store) {
  RecordedNode node;
  node.Remove("/var/lib/waybill");
  node.Remove("/var/lib/kubelet/image_manager/waybill-guard");
  node.locked.clear();
  ExpectOnly(node, "waybill-store", "warn", "there is none");
}

BOOST_AUTO_TEST_CASE(a_damaged_store) {
  RecordedNode node;
  ExpectOnly(Reads(node, Error{ErrorCode::kDamaged, "page 7 is damaged", ""}), "waybill-store",
             "fail", "page 7");
}

BOOST_AUTO_TEST_CASE(a_store_of_a_newer_schema) {
  RecordedNode node;
  ExpectOnly(Reads(node, Error{ErrorCode::kNewerSchema, "this store is of schema version 9", ""}),
             "waybill-store", "fail", "version 9");
}

BOOST_AUTO_TEST_CASE(a_store_that_distrusts_itself) {
  RecordedNode node;
  ExpectOnly(Reads(node, doctor::StoreFacts{.distrusted_because = "the store was lost"}),
             "waybill-trust", "warn", "the store was lost");
}

BOOST_AUTO_TEST_CASE(a_witness_beside_the_store) {
  RecordedNode node;
  ExpectOnly(Reads(node, doctor::StoreFacts{.witness_in_store = true}), "waybill-witness", "warn",
             "lost with it");
}

BOOST_AUTO_TEST_CASE(a_copied_store) {
  RecordedNode node;
  ExpectOnly(Reads(node, doctor::StoreFacts{.copy_of = "/mnt/old"}), "waybill-witness", "warn",
             "/mnt/old");
}

BOOST_AUTO_TEST_CASE(a_former_store_left_its_witness) {
  RecordedNode node;
  node.Remove("/var/lib/waybill");
  node.locked.clear();
  const std::string witness = "/var/lib/kubelet/image_manager/waybill-guard/witness";
  node.Write(witness, "");
  const std::string wrong = testing::Wrong(node.Examine());
  BOOST_TEST(wrong.find("warn waybill-witness: a former store left its witness " + witness) !=
                 std::string::npos,
             wrong);
  // Not if that one is only elsewhere.
  node.Write("/srv/waybill/data.mdb", "");
  node.Replace(kStatus, R"("store":"/var/lib/waybill")", R"("store":"/srv/waybill")");
  BOOST_TEST(testing::Wrong(node.Examine()).find("waybill-witness") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_former_store_left_nothing_but_its_mark) {
  RecordedNode node;
  node.Remove("/var/lib/waybill");
  node.Remove("/var/lib/kubelet/image_manager/waybill-guard");
  node.locked.clear();
  BOOST_TEST(testing::Wrong(node.Examine()).find("waybill-witness") == std::string::npos);
  node.kernel.was_used = [](const std::filesystem::path& path) {
    return path.filename() == "kubelet";
  };
  const std::string wrong = testing::Wrong(node.Examine());
  BOOST_TEST(
      wrong.find("warn waybill-witness: waybill was used on /var/lib/kubelet") != std::string::npos,
      wrong);
}

BOOST_AUTO_TEST_CASE(an_old_backup) {
  RecordedNode node;
  const std::string backup = "/var/lib/waybill/backup/v7-00000000000000000012-1767225600.mdb";
  node.Write(backup, "");
  node.kernel.now = [] { return Timestamp{.seconds = ::time(nullptr) + 40 * 24 * 3600}; };
  ExpectOnly(node, "waybill-backup", "warn", "knows no image since");
}

BOOST_AUTO_TEST_CASE(no_guard_runs) {
  RecordedNode node;
  node.locked.clear();
  ExpectOnly(node, "waybill-guard", "fail", "does not run");
  BOOST_TEST((doctor::ProtectionBy(node.Examine()) == doctor::Protection::kNo));
}

BOOST_AUTO_TEST_CASE(a_guard_that_came_after_the_kubelet) {
  RecordedNode node;
  node.Replace(kStatus, R"("kubeletRanBefore":false)", R"("kubeletRanBefore":true)");
  ExpectOnly(node, "waybill-guard", "warn", "after the kubelet");
}

BOOST_AUTO_TEST_CASE(a_guard_beside_waybill_inside) {
  RecordedNode node;
  node.Write("/var/lib/kubelet/waybill/owner.lock", "");
  node.locked.insert("var/lib/kubelet/waybill/owner.lock");
  ExpectOnly(node, "waybill-owner", "fail", "beside a kubelet that has waybill inside");
  node.locked.erase(kGuardsLock);
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
}

BOOST_AUTO_TEST_CASE(a_store_that_two_kubelets_name) {
  RecordedNode node;
  AddKubelet(node, "/data/kubelet", "/var/lib/waybill");
  ExpectOnly(node, "waybill-owner", "fail", "/var/lib/kubelet and /data/kubelet share one store");
}

BOOST_AUTO_TEST_CASE(another_store_than_the_guards) {
  RecordedNode node;
  node.Write("/srv/waybill/data.mdb", "");
  node.options.store = "/srv/waybill";
  ExpectOnly(node, "waybill-owner", "fail", "has its store in /var/lib/waybill");
}

BOOST_AUTO_TEST_CASE(a_guard_of_another_version) {
  RecordedNode node;
  node.Replace(kStatus, R"("version":"0.1.0")", R"("version":"0.0.9")");
  ExpectOnly(node, "waybill-versions", "warn", "the guard that runs is 0.0.9");
}

BOOST_AUTO_TEST_CASE(a_library_of_another_version) {
  RecordedNode node;
  node.Write("/usr/lib/x86_64-linux-gnu/libwaybill.so.0.2.0", "");
  ExpectOnly(node, "waybill-versions", "warn", "is 0.2.0, this command 0.1.0");
  // One of its own version is there, too.
  node.Write("/usr/lib/x86_64-linux-gnu/libwaybill.so.0.1.0", "");
  BOOST_TEST(testing::Wrong(node.Examine()) == "");
}

// --- The disk ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_store_in_memory) {
  RecordedNode node;
  node.Append("/proc/self/mountinfo",
              "50 41 0:40 / /var/lib/waybill rw - tmpfs tmpfs rw,size=65536k\n");
  ExpectOnly(node, "disk-file-system", "warn", "/var/lib/waybill, is in memory");
}

BOOST_AUTO_TEST_CASE(a_kubelet_directory_on_a_network) {
  RecordedNode node;
  node.Append("/proc/self/mountinfo",
              "50 41 0:40 / /var/lib/kubelet rw - nfs4 server:/x rw,vers=4.2\n");
  ExpectOnly(node, "disk-file-system", "fail", "is on nfs4");
}

BOOST_AUTO_TEST_CASE(a_full_disk) {
  RecordedNode node;
  const auto store = node.At("/var/lib/waybill");
  node.kernel.space = [store](const std::filesystem::path& path) -> Result<doctor::DiskSpace> {
    const bool is_full = std::filesystem::equivalent(path, store);
    return doctor::DiskSpace{.total = 1U << 30, .available = is_full ? 4096U : 1U << 29};
  };
  ExpectOnly(node, "disk-space", "fail", "the disk of /var/lib/waybill is full");
}

BOOST_AUTO_TEST_CASE(a_disk_that_fills) {
  RecordedNode node;
  node.kernel.space = [](const std::filesystem::path&) -> Result<doctor::DiskSpace> {
    return doctor::DiskSpace{.total = 1U << 30, .available = 50U << 20};
  };
  const doctor::Findings findings = node.Examine();
  BOOST_TEST(testing::Wrong(findings).find("warn disk-space: 50 MiB are free") !=
             std::string::npos);
}

// --- The command ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(the_command_says_it_and_changes_nothing) {
  RecordedNode node;
  node.RunsKubelet("v1.34.2");
  node.Remove("/var/lib/waybill");
  const auto before = testing::TreeOf(node.options.root);
  const std::vector<std::string> arguments = {"doctor", "--root", node.options.root.string(),
                                              "--cri", node.options.cri};
  const auto text = testing::RunWaybill(arguments);
  BOOST_TEST(text.exit_code == 1);
  BOOST_TEST(text.err == "");
  BOOST_TEST(text.out.starts_with(
      "this node DOES NOT keep one tenant's images from another: kubelet-gate"));
  BOOST_TEST(text.out.find("  fail     kubelet-gate") != std::string::npos);
  // A screen.
  BOOST_TEST(std::count(text.out.begin(), text.out.end(), '\n') <= 50);

  auto with_json = arguments;
  with_json.insert(with_json.end(), {"-o", "json"});
  const auto json = nlohmann::json::parse(testing::RunWaybill(with_json).out);
  BOOST_TEST(json["protects"] == false);
  BOOST_TEST(json["findings"].size() >= doctor::Checks().size() - 5);
  auto names = arguments;
  names.push_back("-q");
  BOOST_TEST(testing::RunWaybill(names).out.starts_with("kubelet-gate\n"));
  BOOST_TEST((testing::TreeOf(node.options.root) == before));
}

BOOST_AUTO_TEST_CASE(each_check_has_its_heading) {
  const std::string page = testing::ReadFile(WAYBILL_FIXTURES "/../../docs/operations.md");
  for (const doctor::Check& check : doctor::Checks()) {
    BOOST_TEST(page.find("\n### `" + std::string(check.name) + "`\n") != std::string::npos,
               check.name);
  }
}

BOOST_AUTO_TEST_CASE(what_is_named_must_be_there) {
  const RecordedNode node;
  for (const char* flag : {"--kubelet-dir", "--store", "--kubelet-config"}) {
    const auto result =
        testing::RunWaybill({"doctor", "--root", node.options.root.string(), flag, "/nowhere"});
    BOOST_TEST(result.exit_code == 2);
    BOOST_TEST(result.err.find(std::string(flag) + ": /nowhere is not there") != std::string::npos);
  }
}

// A node that is elsewhere may hold anything: its links lead to its own files.
BOOST_AUTO_TEST_CASE(a_link_out_of_the_node) {
  RecordedNode node;
  const testing::TempDir outside;
  testing::WriteFile(outside / "config.yaml",
                     "featureGates:\n  KubeletEnsureSecretPulledImages: false\n");
  node.Remove("/var/lib/kubelet/config.yaml");
  node.Link("/var/lib/kubelet/config.yaml", (outside / "config.yaml").string());
  const std::string wrong = testing::Wrong(node.Examine());
  BOOST_TEST(wrong.find("off by its configuration") == std::string::npos);
  BOOST_TEST(wrong.find("unknown kubelet-policy") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
