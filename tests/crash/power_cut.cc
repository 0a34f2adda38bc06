// What a power cut leaves of a recorded run.

#include <algorithm>
#include <map>
#include <set>

#include "tests/crash/recorder.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

namespace {

using Kind = DiskEvent::Kind;
constexpr std::size_t kSector = 512;

bool ChangesDirectory(Kind kind) {
  return kind == Kind::kCreate || kind == Kind::kMakeDirectory || kind == Kind::kRename ||
         kind == Kind::kLink || kind == Kind::kRemove;
}

// Which events were surely on disk when the power failed.
std::vector<bool> SureEvents(const std::vector<DiskEvent>& log, std::size_t cut) {
  std::vector<bool> sure(cut, false);
  std::set<std::size_t> files;
  std::set<std::string> directories;
  for (std::size_t i = cut; i-- > 0;) {
    const DiskEvent& event = log[i];
    if (event.kind == Kind::kSynced) files.insert(event.file);
    if (event.kind == Kind::kDirectorySynced) directories.insert(event.directory);
    if (event.kind == Kind::kWritten) sure[event.index] = true;
    if (event.kind == Kind::kWrite || event.kind == Kind::kTruncate) {
      sure[i] = sure[i] || files.contains(event.file);
    }
    if (ChangesDirectory(event.kind)) sure[i] = directories.contains(event.directory);
  }
  return sure;
}

// Of the other changes, each directory keeps those up to some point.
void KeepSomeNames(const std::vector<DiskEvent>& log, std::size_t cut, Draw& draw,
                   std::vector<bool>& sure) {
  std::map<std::string, std::vector<std::size_t>> open;
  for (std::size_t i = 0; i < cut; ++i) {
    if (ChangesDirectory(log[i].kind) && !sure[i]) open[log[i].directory].push_back(i);
  }
  for (const auto& [directory, changes] : open) {
    const std::size_t kept = draw.Below(changes.size() + 1);
    for (std::size_t i = 0; i < kept; ++i) sure[changes[i]] = true;
  }
}

void Apply(std::string& content, std::uint64_t offset, std::string_view bytes) {
  const auto at = static_cast<std::size_t>(offset);
  if (content.size() < at + bytes.size()) content.resize(at + bytes.size(), '\0');
  content.replace(at, bytes.size(), bytes);
}

// Some sectors of a write.
void ApplyTorn(std::string& content, const DiskEvent& event, Draw& draw) {
  std::size_t at = 0;
  while (at < event.bytes.size()) {
    const std::size_t room = kSector - (static_cast<std::size_t>(event.offset) + at) % kSector;
    const std::size_t size = std::min(room, event.bytes.size() - at);
    if (draw.OneIn(2)) {
      Apply(content, event.offset + at, std::string_view(event.bytes).substr(at, size));
    }
    at += size;
  }
}

struct Disk {
  std::map<std::string, std::size_t> names;  // of files
  std::set<std::string> directories{""};
  std::map<std::size_t, std::string> contents;

  void Name(const DiskEvent& event) {
    switch (event.kind) {
      case Kind::kCreate:
        names[event.path] = event.file;
        break;
      case Kind::kMakeDirectory:
        directories.insert(event.path);
        break;
      case Kind::kRename:
        names.erase(event.path);
        names[event.other_path] = event.file;
        break;
      case Kind::kLink:
        names[event.other_path] = event.file;
        break;
      case Kind::kRemove:
        names.erase(event.path);
        directories.erase(event.path);
        break;
      default:
        break;
    }
  }

  bool HasDirectory(const std::string& directory) const {
    return directory.empty() || (directories.contains(directory) &&
                                 HasDirectory(directory.substr(0, directory.rfind('/'))));
  }
};

}  // namespace

std::size_t PlaceOfMark(const std::vector<DiskEvent>& log, std::size_t meaning) {
  std::size_t at = 0;
  while (log.at(at).kind != Kind::kMark || log[at].index != meaning) ++at;
  return at;
}

void PlayPowerCut(const std::vector<DiskEvent>& log, std::size_t cut, Draw& draw,
                  const std::filesystem::path& into) {
  std::vector<bool> kept = SureEvents(log, cut);
  KeepSomeNames(log, cut, draw, kept);
  const bool all = draw.OneIn(8);  // as after SIGKILL
  const bool none = !all && draw.OneIn(8);
  Disk disk;
  for (std::size_t i = 0; i < cut; ++i) {
    const DiskEvent& event = log[i];
    if (ChangesDirectory(event.kind)) {
      if (kept[i] || all) disk.Name(event);
    } else if (event.kind == Kind::kTruncate) {
      // A length changes completely or not at all.
      if (kept[i] || all || (!none && draw.OneIn(2))) {
        disk.contents[event.file].resize(static_cast<std::size_t>(event.offset), '\0');
      }
    } else if (event.kind == Kind::kWrite) {
      std::string& content = disk.contents[event.file];
      const std::size_t fate = kept[i] || all ? 0 : none ? 1 : draw.Below(3);
      if (fate == 0) Apply(content, event.offset, event.bytes);
      if (fate == 2) ApplyTorn(content, event, draw);
    }
  }
  for (const std::string& directory : disk.directories) {  // parents sort before their children
    if (!directory.empty() && disk.HasDirectory(directory)) {
      const auto path = into / directory.substr(1);
      std::filesystem::create_directory(path);
      std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    }
  }
  for (const auto& [name, file] : disk.names) {
    if (!disk.HasDirectory(name.substr(0, name.rfind('/')))) continue;
    const auto path = into / name.substr(1);
    WriteFile(path, disk.contents[file]);
    std::filesystem::permissions(
        path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
}

}  // namespace waybill::testing
