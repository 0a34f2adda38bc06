#include "tests/doctor/recorded_node.h"

#include <boost/test/unit_test.hpp>
#include <ctime>
#include <stdexcept>

#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFixtures = WAYBILL_FIXTURES "/cri/containerd-2.4.2/";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("the node has no " + from);
  return text.replace(at, from.size(), to);
}

}  // namespace

RecordedNode::RecordedNode() {
  options.root = dir_ / "root";
  options.cri = (dir_ / "cri").string();
  fs::create_directories(options.cri);
  kernel = {.space = [](const fs::path&) -> Result<doctor::DiskSpace> {
              return doctor::DiskSpace{.total = std::uint64_t{100} << 30,
                                       .available = std::uint64_t{40} << 30,
                                       .inodes = 1000,
                                       .inodes_free = 900};
            },
            .maps_ids = [](const fs::path&) -> Result<bool> { return true; },
            .is_locked = [this](const fs::path& path) -> Result<bool> {
              return locked.contains(fs::relative(path, options.root).string());
            },
            .was_used = [](const fs::path&) { return false; },
            .now = [] { return Timestamp{.seconds = ::time(nullptr)}; },
            .read_store = [](const fs::path&) -> Result<doctor::StoreFacts> {
              return doctor::StoreFacts{.schema_version = kNewestSchema};
            }};
  RunsKubelet("v1.36.3");
  Write("/var/lib/kubelet/image_manager/pulled/sha256-" + std::string(64, 'a'),
        R"({"kind":"ImagePulledRecord","lastUpdatedTime":"2026-11-26T10:00:00Z"})");
  Write("/var/lib/kubelet/image_manager/waybill-guard/status.json",
        R"({"version":"0.1.0","store":"/var/lib/waybill","since":"2026-11-26T09:00:00Z",)"
        R"("kubeletRanBefore":false,"runtimeError":"","holes":{"record-lost":2}})");
  Write("/var/lib/kubelet/image_manager/waybill-guard/lock", "");
  locked.insert("var/lib/kubelet/image_manager/waybill-guard/lock");
  Write("/var/lib/kubelet/pods/b7c1/userns",
        R"({"uidMappings":[{"hostId":131072,"containerId":0,"length":65536}]})");
  Write("/var/lib/waybill/data.mdb", "");
  options.waybill_version = "0.1.0";
  Write("/proc/sys/user/max_user_namespaces", "63432\n");
  Write("/proc/sys/kernel/osrelease", "6.12.48+deb13-amd64\n");
  Maps("self", "0 0 4294967295\n");
  Write("/proc/self/mountinfo",
        "26 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "41 26 8:2 / /var rw,relatime shared:2 - xfs /dev/sda2 rw\n");
  Write("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nkubelet:x:999:999::/:/sbin/nologin\n");
  Write("/etc/subuid", "kubelet:65536:7208960\n");
  Write("/etc/subgid", "kubelet:65536:7208960\n");
  Write("/usr/bin/getsubids", "");
  Write("/var/lib/kubelet/config.yaml",
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n");
  Answer("version.json", R"({"runtimeName":"containerd","runtimeVersion":"v2.4.2"})");
  Answer("images.json", ReadFile(std::string(kFixtures) + "images.json"));
  Answer("info.json", ReadFile(std::string(kFixtures) + "info.json"));
}

fs::path RecordedNode::At(const std::string& path) const { return options.root / path.substr(1); }

void RecordedNode::Write(const std::string& path, const std::string& content) {
  fs::create_directories(At(path).parent_path());
  WriteFile(At(path), content);
}

void RecordedNode::Append(const std::string& path, const std::string& content) {
  Write(path, ReadFile(At(path)) + content);
}

void RecordedNode::Replace(const std::string& path, const std::string& from,
                           const std::string& to) {
  Write(path, Replaced(ReadFile(At(path)), from, to));
}

void RecordedNode::Remove(const std::string& path) { fs::remove_all(At(path)); }

void RecordedNode::Link(const std::string& path, const std::string& to) {
  fs::create_directories(At(path).parent_path());
  fs::create_symlink(to, At(path));
}

void RecordedNode::Answer(const std::string& name, const std::string& content) {
  WriteFile(fs::path(options.cri) / name, content);
}

std::string RecordedNode::AnswerOf(const std::string& name) const {
  return ReadFile(fs::path(options.cri) / name);
}

void RecordedNode::RunsKubelet(const std::string& version, const std::string& flags) {
  std::string words = "/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml ";
  if (!flags.empty()) words += flags + " ";
  for (char& c : words) {
    if (c == ' ') c = '\0';
  }
  Write("/proc/4242/cmdline", words);
  // What Go makes of `-X k8s.io/component-base/version.gitVersion=…`.
  Write("/usr/bin/kubelet", std::string("\x7f"
                                        "ELF\0",
                                        5) +
                                version + std::string("\0go", 3));
  Remove("/proc/4242/exe");
  Link("/proc/4242/exe", "/usr/bin/kubelet");
}

void RecordedNode::Maps(const std::string& pid, const std::string& ids) {
  Write("/proc/" + pid + "/uid_map", ids);
  Write("/proc/" + pid + "/gid_map", ids);
}

doctor::Findings RecordedNode::Examine() const {
  const auto node = doctor::Node::Find(options, kernel);
  if (!node) throw std::runtime_error(node.error().ToString());
  return doctor::Examine(**node);
}

std::string Wrong(const doctor::Findings& findings) {
  std::string wrong;
  for (const doctor::Finding& finding : findings) {
    if (finding.verdict == doctor::Verdict::kOk) continue;
    wrong += std::string(doctor::VerdictName(finding.verdict)) + " " + finding.check + ": " +
             finding.seen + "\n";
  }
  return wrong;
}

void ExpectOnly(const RecordedNode& node, const std::string& check, const std::string& verdict,
                const std::string& words) {
  const doctor::Findings findings = node.Examine();
  std::size_t named = 0;
  for (const doctor::Finding& finding : findings) {
    if (finding.verdict == doctor::Verdict::kOk) continue;
    BOOST_TEST(finding.check == check);
    BOOST_TEST(doctor::VerdictName(finding.verdict) == verdict);
    BOOST_TEST(!finding.next.empty());
    BOOST_TEST(finding.seen.find('\n') == std::string::npos);
    if (finding.seen.find(words) != std::string::npos) ++named;
  }
  BOOST_TEST(named == 1U, "no line, or more than one, has \"" << words << "\":\n"
                                                              << Wrong(findings));
}

}  // namespace waybill::testing
