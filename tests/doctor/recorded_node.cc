#include "tests/doctor/recorded_node.h"

#include <algorithm>
#include <ctime>
#include <stdexcept>

#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFixtures = WAYBILL_FIXTURES "/cri/containerd-2.4.2/";

std::string WithZeros(std::string words) {
  std::ranges::replace(words, ' ', '\0');
  return words + '\0';
}

}  // namespace

RecordedNode::RecordedNode() : facts_(doctor::StoreFacts{.schema_version = kNewestSchema}) {
  options.root = dir_ / "root";
  options.cri = (dir_ / "cri").string();
  options.waybill_version = "0.1.0";
  fs::create_directories(options.cri);
  kernel = {.space = [this](const fs::path& path) -> Result<doctor::DiskSpace> {
              const bool is_full = full_.contains("/" + fs::relative(path, options.root).string());
              return doctor::DiskSpace{
                  .available = is_full ? 4096 : static_cast<std::uint64_t>(free_mib_) << 20,
                  .inodes = 1000,
                  .inodes_free = 900};
            },
            .is_locked = [this](const fs::path& path) -> Result<bool> {
              return locked_.contains("/" + fs::relative(path, options.root).string());
            },
            .was_used = [this](const fs::path&) { return used_; },
            .now = [] { return Timestamp{.seconds = ::time(nullptr)}; },
            .read_store = [this](const fs::path&) { return facts_; }};
  const std::string guard = "/var/lib/kubelet/image_manager/waybill-guard";
  Make(
      {{"kubelet", "v1.36.3"},
       {"process 812", "/usr/bin/containerd"},
       {"/var/lib/kubelet/image_manager/pulled/sha256-" + std::string(64, 'a'),
        R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
        R"("lastUpdatedTime":"2026-11-26T10:00:00Z","imageRef":"sha256:x","credentialMapping":{}})"},
       {guard + "/status.json",
        R"({"version":"0.1.0","store":"/var/lib/waybill","since":"2026-11-26T09:00:00Z",)"
        R"("kubeletRanBefore":false,"runtimeError":""})"},
       {guard + "/lock"},
       {"lock " + guard + "/lock"},
       {"/var/lib/kubelet/pods/b7c1/userns",
        R"({"uidMappings":[{"hostId":131072,"containerId":0,"length":65536}]})"},
       {"/var/lib/waybill/data.mdb"},
       {"/proc/sys/user/max_user_namespaces", "63432\n"},
       {"/proc/sys/kernel/osrelease", "6.12.48+deb13-amd64\n"},
       {"ids self", "0 0 4294967295\n"},
       {"/proc/self/mountinfo",
        "26 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "41 26 8:2 / /var rw,relatime shared:2 - xfs /dev/sda2 rw\n"},
       {"/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nkubelet:x:999:999::/:/sbin/nologin\n"},
       {"/etc/subuid", "kubelet:65536:7208960\n"},
       {"/etc/subgid", "kubelet:65536:7208960\n"},
       {"/usr/bin/getsubids"},
       {"/var/lib/kubelet/config.yaml",
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"},
       {"cri/version.json", R"({"runtimeName":"containerd","runtimeVersion":"v2.4.2"})"},
       {"cri/images.json", ReadFile(std::string(kFixtures) + "images.json")},
       {"cri/info.json", ReadFile(std::string(kFixtures) + "info.json")}});
}

fs::path RecordedNode::At(const std::string& path) const { return options.root / path.substr(1); }

void RecordedNode::Write(const std::string& path, const std::string& content) {
  fs::create_directories(At(path).parent_path());
  fs::remove_all(At(path));
  WriteFile(At(path), content);
}

void RecordedNode::Make(const std::vector<Change>& changes) {
  for (const auto& [where, what] : changes) {
    const std::size_t blank = std::min(where.find(' '), where.size());
    const std::string verb = where.substr(0, blank);
    const std::string name = where.substr(std::min(blank + 1, where.size()));
    const std::string path = where.substr(std::min<std::size_t>(1, where.size()));
    if (where.starts_with('/')) {
      Write(where, what);
    } else if (where.starts_with("+/")) {
      Write(path, (fs::exists(At(path)) ? ReadFile(At(path)) : "") + what);
    } else if (where.starts_with("-/")) {
      fs::remove_all(At(path));
    } else if (where.starts_with("=/")) {
      fs::remove_all(At(path));
      fs::create_directories(At(path).parent_path());
      fs::create_symlink(what, At(path));
    } else if (where.starts_with("cri/")) {
      WriteFile(fs::path(options.cri).parent_path() / where, what);
    } else if (where == "kubelet") {
      RunsKubelet(what);
    } else if (verb == "process") {
      Write("/proc/" + name + "/cmdline", WithZeros(what));
      Write("/proc/" + name + "/status", "Name:\tx\nPPid:\t1\nNSpid:\t" + name + "\n");
      Write("/proc/" + name + "/environ", WithZeros("PATH=/bin"));
    } else if (verb == "ids") {
      Write("/proc/" + name + "/uid_map", what);
      Write("/proc/" + name + "/gid_map", what);
    } else if (verb == "free" && name.empty()) {
      free_mib_ = std::stoll(what);
    } else if (verb == "free") {
      full_.insert(name);
    } else if (verb == "newer") {
      fs::last_write_time(
          At(name), fs::file_time_type::clock::now() + std::chrono::hours(24 * std::stoi(what)));
    } else if (where == "store error") {
      facts_ = Error{ErrorCode::kDamaged, what, ""};
    } else if (where == "store owned") {
      facts_ = Error{ErrorCode::kOwned, what, "look again"};
    } else if (where == "store distrusts") {
      facts_->distrusted_because = what;
    } else if (where == "store witness") {
      facts_->witness_in_store = true;
    } else if (where == "store copy") {
      facts_->copy_of = what;
    } else if (verb == "gave") {
      facts_->host_ids.push_back(
          {name, std::stoull(what), std::stoull(what.substr(what.find(' ')))});
    } else if (where == "options kubelet-dir") {
      options.kubelet_directory = what;
    } else if (where == "options kubelet-config") {
      options.kubelet_config.push_back(what);
    } else if (where == "options store") {
      options.store = what;
    } else if (where == "options cri") {
      options.cri = what;
    } else if (where == "options node") {
      options.node_json = what;
    } else if (verb == "lock") {
      locked_.insert(name);
    } else if (verb == "unlock") {
      locked_.erase(name);
    } else if (where == "used") {
      used_ = true;
    } else {
      throw std::runtime_error("no such change: " + where);
    }
  }
}

void RecordedNode::RunsKubelet(const std::string& version_and_flags) {
  const std::size_t end = std::min(version_and_flags.find(' '), version_and_flags.size());
  Make({{"process 4242",
         "/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml" + version_and_flags.substr(end)},
        // What Go makes of `-X k8s.io/component-base/version.gitVersion=…`.
        {"/usr/bin/kubelet", std::string("\x7f"
                                         "ELF\0",
                                         5) +
                                 version_and_flags.substr(0, end) + std::string("\0go", 3)},
        {"=/proc/4242/exe", "/usr/bin/kubelet"}});
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

}  // namespace waybill::testing
