// The checks of the disk that records and the store are on.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/checks.h"
#include "doctor/text.h"
#include "store/base/files.h"

namespace waybill::doctor {
namespace {

// What a guard needs to begin, and a store to go on: docs/operations.md, "A full disk".
constexpr std::uint64_t kNeeded = std::uint64_t{1} << 20;
constexpr std::uint64_t kShort = std::uint64_t{100} << 20;

struct Place {
  std::string what;
  std::string path;  // the node's
};

std::vector<Place> Places(const Node& node) {
  std::vector<Place> places = {{"the kubelet's directory", node.kubelet_directory()}};
  if (!node.store().empty()) places.push_back({"the store", node.store()});
  return places;
}

// Of the mount that a path is on, by /proc's table: the longest mount point above it.
std::string FileSystemOf(const std::string& table, const std::string& path) {
  std::string found;
  std::size_t longest = 0;
  for (std::size_t at = 0; at < table.size();) {
    const std::size_t end = std::min(table.find('\n', at), table.size());
    const std::string line = table.substr(at, end - at);
    at = end + 1;
    // 36 35 98:0 /root /mount/point options - type source options
    std::vector<std::string> words;
    for (std::size_t word = 0; word < line.size();) {
      const std::size_t stop = std::min(line.find(' ', word), line.size());
      words.push_back(line.substr(word, stop - word));
      word = stop + 1;
    }
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 2) continue;
    const std::string& mount = words[4];
    const bool is_above = mount == "/" || path == mount || path.starts_with(mount + "/");
    if (!is_above || mount.size() < longest) continue;
    longest = mount.size();
    found = *(dash + 1);
  }
  return found;
}

}  // namespace

Findings DiskFileSystemCheck(const Node& node) {
  const auto table = node.Read("/proc/self/mountinfo", std::size_t{16} << 20);
  if (!table) return {Unknown(table.error())};
  Findings findings;
  std::string good;
  for (const Place& place : Places(node)) {
    const std::string type = FileSystemOf(*table, place.path);
    if (type == "tmpfs" || type == "ramfs") {
      findings.push_back(
          Warn(place.what + ", " + place.path + ", is in memory (" + type + "): a reboot loses it",
               "move it to a disk"));
    } else if (type == "nfs" || type == "nfs4" || type == "cifs" || type == "ceph" ||
               type.starts_with("fuse")) {
      findings.push_back(Fail(place.what + ", " + place.path + ", is on " + type +
                                  ", which does not lock and map files as a disk does",
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
  std::string good;
  for (const Place& place : Places(node)) {
    const auto real = node.Resolve(place.path);
    if (!real) continue;
    const auto space = node.kernel().space(*real);
    if (!space) {
      findings.push_back(Unknown(space.error()));
      continue;
    }
    const std::string next = "make room: docs/operations.md, A full disk";
    if (space->available < kNeeded || (space->inodes != 0 && space->inodes_free < 10)) {
      findings.push_back(Fail("the disk of " + place.path + " is full: no pull is recorded", next));
    } else if (space->available < kShort) {
      findings.push_back(Warn(Bytes(space->available) + " are free for " + place.path, next));
    } else if (good.empty()) {
      good = Bytes(space->available) + " free; a pull writes some KiB of records";
    }
  }
  if (findings.empty()) findings.push_back(Ok(good.empty() ? "nothing to write to" : good));
  return findings;
}

}  // namespace waybill::doctor
