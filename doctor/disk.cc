// The checks of the disk that records and the store are on.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/checks.h"

namespace waybill::doctor {
namespace {

// What a guard needs to begin, and a store to go on: docs/operations.md, "A full disk".
constexpr std::uint64_t kNeeded = std::uint64_t{1} << 20;
constexpr std::uint64_t kShort = std::uint64_t{100} << 20;

// docs/limits.md has what was tried. What is not here, nobody tried.
enum class Kind : std::uint8_t { kGood, kCopyOnWrite, kInMemory, kRemote };
const std::map<std::string, Kind, std::less<>> kKinds = {
    {"ext2", Kind::kGood},
    {"ext3", Kind::kGood},
    {"ext4", Kind::kGood},
    {"xfs", Kind::kGood},
    {"btrfs", Kind::kCopyOnWrite},
    {"zfs", Kind::kCopyOnWrite},
    {"bcachefs", Kind::kCopyOnWrite},
    {"tmpfs", Kind::kInMemory},
    {"ramfs", Kind::kInMemory},
    {"nfs", Kind::kRemote},
    {"nfs4", Kind::kRemote},
    {"cifs", Kind::kRemote},
    {"smb3", Kind::kRemote},
    {"smbfs", Kind::kRemote},
    {"9p", Kind::kRemote},
    {"virtiofs", Kind::kRemote},
    {"vboxsf", Kind::kRemote},
    {"lustre", Kind::kRemote},
    {"ceph", Kind::kRemote},
    {"afs", Kind::kRemote},
    {"prl_fs", Kind::kRemote},
    {"vmhgfs", Kind::kRemote},
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

}  // namespace

std::string FileSystemOf(const Node& node, const std::string& path) {
  const auto table = node.files.Read("/proc/self/mountinfo", std::size_t{16} << 20);
  std::string found;
  std::size_t longest = 0;
  for (const std::string& line : LinesOf(table.value_or(""))) {
    // 36 35 98:0 /root /mount/point options - type source options
    const auto words = WordsOf(line);
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 5 || words.end() - dash < 2) continue;
    const std::string& mount = words[4];
    const bool is_above = mount == "/" || path == mount || path.starts_with(mount + "/");
    if (!is_above || mount.size() < longest) continue;
    longest = mount.size();
    found = *(dash + 1);
  }
  return found;
}

Findings DiskFileSystemCheck(const Node& node) {
  Findings findings;
  std::string good;
  for (const Place& place : Places(node)) {
    const std::string type = FileSystemOf(node, place.path);
    const std::string on = place.what + ", " + place.path + ", is on " + type;
    const auto kind = kKinds.find(type.starts_with("fuse") ? "9p" : type);
    if (const auto real = node.files.Resolve(place.path); !real) {
      findings.push_back(Unknown(real.error()));
      continue;
    }
    if (type.empty()) {
      findings.push_back(
          Unknown("/proc/self/mountinfo does not say what " + place.path + " is on"));
    } else if (kind == kKinds.end()) {
      findings.push_back(
          Unknown(on + ", on which waybill was never tried", "move it to ext4 or xfs"));
    } else if (kind->second == Kind::kCopyOnWrite) {
      findings.push_back(Warn(on + ", which copies on write: a full disk may end every process "
                                   "that has the store open by SIGBUS",
                              "move it to ext4 or xfs, or see that the disk never fills"));
    } else if (kind->second == Kind::kInMemory) {
      findings.push_back(
          Warn(place.what + ", " + place.path + ", is in memory (" + type + "): a reboot loses it",
               "move it to a disk"));
    } else if (kind->second == Kind::kRemote) {
      findings.push_back(Fail(on + ", which does not lock and map files as a disk does",
                              "move it to a local disk"));
    } else if (good.find(type) == std::string::npos) {
      good += (good.empty() ? "" : ", ") + type;
    }
  }
  if (findings.empty()) findings.push_back(Ok(good));
  return findings;
}

Findings DiskSpaceCheck(const Node& node) {
  Findings findings;
  const std::string next = "make room: docs/operations.md, A full disk";
  std::string good;
  for (const Place& place : Places(node)) {
    const auto real = node.files.Resolve(place.path);
    const auto space = real ? node.kernel.space(*real) : real.error();
    if (!space) {
      findings.push_back(Unknown(space.error()));
      continue;
    }
    const std::string mib = std::to_string(space->available >> 20) + " MiB";
    if (space->available < kNeeded || (space->inodes != 0 && space->inodes_free < 10)) {
      findings.push_back(Fail("the disk of " + place.path + " is full: no pull is recorded", next));
    } else if (space->available < kShort) {
      findings.push_back(Warn(mib + " are free for " + place.path, next));
    } else if (good.empty()) {
      good = mib + " free; a pull writes some KiB of records";
    }
  }
  // A start of the node can fill it.
  const auto& settings = node.settings;
  const auto at_once = settings ? settings->Number("maxParallelImagePulls").value_or(0) : 0;
  std::string serial =
      node.kubelet() == nullptr ? "" : node.kubelet()->Flag("serialize-image-pulls");
  if (serial.empty() && settings) serial = settings->Text("serializeImagePulls").value_or("");
  const std::string advice = " in the kubelet's configuration, and restart it";
  if (serial == "true" && at_once > 1) {
    findings.push_back(Fail("maxParallelImagePulls is " + std::to_string(at_once) +
                                " and serializeImagePulls is on: such a kubelet does not start",
                            "take one of them out" + advice));
  } else if (serial == "false" && at_once == 0) {
    findings.push_back(Warn("the kubelet pulls as many images at a time as pods ask for",
                            "set maxParallelImagePulls" + advice));
  }
  if (findings.empty()) findings.push_back(Ok(good));
  return findings;
}

}  // namespace waybill::doctor
