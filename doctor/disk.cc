// The checks of the disk that records and the store are on.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/checks.h"
#include "store/base/try.h"

namespace waybill::doctor {
namespace {

// What a guard needs to begin, and a store to go on: docs/operations.md, "A full disk".
constexpr std::uint64_t kNeeded = std::uint64_t{1} << 20;
constexpr std::uint64_t kShort = std::uint64_t{100} << 20;

// docs/limits.md has what was tried. What is not here, nobody tried.
struct Kind {
  Verdict verdict;
  std::string_view because;
  std::string_view next;
  std::string_view types;  // with blanks around each
};
constexpr Kind kKinds[] = {
    {Verdict::kOk, "", "", " ext2 ext3 ext4 xfs "},
    {Verdict::kWarn,
     ", which copies on write: a full disk may end every process that has the store open by SIGBUS",
     "move it to ext4 or xfs, or see that the disk never fills", " btrfs zfs bcachefs "},
    {Verdict::kWarn, ", in memory: a reboot loses it", "move it to a disk", " tmpfs ramfs "},
    {Verdict::kFail, ", which does not lock and map files as a disk does",
     "move it to a local disk",
     " nfs nfs4 cifs smb3 smbfs 9p virtiofs vboxsf lustre ceph afs prl_fs vmhgfs fuse "},
    {Verdict::kUnknown, ", on which waybill was never tried", "move it to ext4 or xfs", ""},
};

struct Place {
  std::string what;
  std::string path;  // the node's
};

std::vector<Place> Places(const Node& node) {
  std::vector<Place> places = {{"the kubelet's directory", node.kubelet_directory}};
  if (!node.store.empty()) places.push_back({"the store", node.store});
  return places;
}

// \040 is a blank, as the kernel writes it.
std::string Unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 3 < text.size();
    plain += is_escape ? static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8)) : text[i];
    if (is_escape) i += 3;
  }
  return plain;
}

}  // namespace

Result<std::string> FileSystemOf(const Node& node, const std::string& path) {
  const std::string real = TRY(node.RealPath(path));
  const std::string table = TRY(node.files.Read("/proc/self/mountinfo", std::size_t{16} << 20));
  std::string found;
  std::size_t longest = 0;
  for (const std::string& line : LinesOf(table)) {
    // 36 35 98:0 /root /mount/point options - type source options
    const auto words = WordsOf(line);
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 5 || words.end() - dash < 2) continue;
    const std::string mount = Unescaped(words[4]);
    const bool is_above = mount == "/" || real == mount || real.starts_with(mount + "/");
    if (!is_above || mount.size() < longest) continue;
    longest = mount.size();
    found = *(dash + 1);
  }
  if (!found.empty()) return found;
  return Error{
      ErrorCode::kNotFound, "/proc/self/mountinfo does not say what " + path + " is on", {}};
}

Result<void> DiskFileSystemCheck(const Node& node, Report& report) {
  std::string good;
  for (const Place& place : Places(node)) {
    const auto found = FileSystemOf(node, place.path);
    const std::string* const type = report.See(found);
    if (type == nullptr) continue;
    // fuse.sshfs, fuseblk.
    const std::string name = type->starts_with("fuse") ? " fuse " : " " + *type + " ";
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds) - 1, [&](const Kind& one) {
      return one.types.find(name) != std::string_view::npos;
    });
    if (good.find(*type) == std::string::npos) good += (good.empty() ? "" : ", ") + *type;
    if (kind->verdict == Verdict::kOk) continue;
    report.Add(
        {.verdict = kind->verdict,
         .seen = place.what + ", " + place.path + ", is on " + *type + std::string(kind->because),
         .next = std::string(kind->next)});
  }
  return report.Ok(good);
}

Result<void> DiskSpaceCheck(const Node& node, Report& report) {
  const std::string next = "make room: docs/operations.md, A full disk";
  std::string good;
  for (const Place& place : Places(node)) {
    const auto real = node.files.Resolve(place.path);
    const auto found = real ? node.kernel.space(*real) : real.error();
    const DiskSpace* const space = report.See(found);
    if (space == nullptr) continue;
    const std::string mib = std::to_string(space->available >> 20) + " MiB";
    if (space->available < kNeeded || (space->inodes != 0 && space->inodes_free < 10)) {
      report.Fail("the disk of " + place.path + " is full: no pull is recorded", next);
    } else if (space->available < kShort) {
      report.Warn(mib + " are free for " + place.path, next);
    } else if (good.empty()) {
      good = mib + " free; a pull writes some KiB of records";
    }
  }
  // A start of the node can fill it.
  const auto settings = node.settings.value_or(KubeletSettings());
  const std::string flag = node.KubeletFlag("serialize-image-pulls");
  const auto serially = flag.empty() ? settings.pulls_serially : flag == "true";
  const std::string advice = " in the kubelet's configuration, and restart it";
  if (serially == true && settings.pulls_at_once > 1) {
    report.Fail("maxParallelImagePulls is " + std::to_string(settings.pulls_at_once) +
                    " and serializeImagePulls is on: such a kubelet does not start",
                "take one of them out" + advice);
  } else if (serially == false && settings.pulls_at_once == 0) {
    report.Warn("the kubelet pulls as many images at a time as pods ask for",
                "set maxParallelImagePulls" + advice);
  }
  return report.Ok(good);
}

}  // namespace waybill::doctor
