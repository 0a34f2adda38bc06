// What a power cut leaves of a recorded run.

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "store/base/files.h"
#include "tests/crash/recorder.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

namespace {

using Kind = DiskEvent::Kind;
constexpr std::size_t kSector = 512;

bool ChangesDirectory(Kind kind) {
  return kind == Kind::kCreate || kind == Kind::kMakeDirectory || kind == Kind::kRename ||
         kind == Kind::kLink || kind == Kind::kRemove;
}

// Which events were surely on disk when the power failed, and which writes never will be.
struct Certainty {
  std::vector<bool> sure;
  std::vector<bool> unwritten;
};
Certainty CertaintyOf(const std::vector<DiskEvent>& log, std::size_t cut) {
  Certainty certainty{std::vector<bool>(cut), std::vector<bool>(cut)};
  std::map<std::size_t, std::vector<std::size_t>> writes;  // that wait for a sync
  std::map<std::string, std::vector<std::size_t>> names;
  const auto mark = [](std::vector<bool>& of, std::vector<std::size_t>& events) {
    for (const std::size_t event : events) of[event] = true;
    events.clear();
  };
  for (std::size_t i = 0; i < cut; ++i) {
    const DiskEvent& event = log[i];
    if (event.kind == Kind::kWrite || event.kind == Kind::kTruncate)
      writes[event.file].push_back(i);
    if (ChangesDirectory(event.kind)) names[event.directory].push_back(i);
    if (event.kind == Kind::kSynced) mark(certainty.sure, writes[event.file]);
    if (event.kind == Kind::kDirectorySynced) mark(certainty.sure, names[event.directory]);
    if (event.kind == Kind::kWritten) {
      certainty.sure[event.index] = true;
      std::erase(writes[log[event.index].file], event.index);
    }
    if (event.kind == Kind::kSyncFailed) mark(certainty.unwritten, writes[event.file]);
  }
  return certainty;
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

std::vector<DiskEvent> LogOf(const std::filesystem::path& directory) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  std::vector<DiskEvent> log;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::size_t file = 0;
  for (const auto& path : paths) {
    const std::string name = path.string().substr(directory.string().size());
    const std::string parent = name.substr(0, name.rfind('/'));
    if (std::filesystem::is_directory(path)) {
      log.push_back({.kind = Kind::kMakeDirectory, .directory = parent, .path = name});
    } else {
      ++file;
      log.push_back({.kind = Kind::kCreate, .file = file, .directory = parent, .path = name});
      log.push_back({.kind = Kind::kWrite,
                     .file = file,
                     .bytes = Must(internal::ReadWholeFile(path, kMostBytes))});
      log.push_back({.kind = Kind::kSynced, .file = file});
    }
    log.push_back({.kind = Kind::kDirectorySynced, .directory = parent});
  }
  return log;
}

void Append(std::vector<DiskEvent>& log, std::vector<DiskEvent> later) {
  const std::size_t before = log.size();
  for (DiskEvent& event : later) {
    if (event.kind == Kind::kWritten) event.index += before;
    log.push_back(std::move(event));
  }
}

KnownFiles FilesAfter(const std::vector<DiskEvent>& log) {
  Disk disk;
  KnownFiles known;
  for (const DiskEvent& event : log) {
    if (ChangesDirectory(event.kind)) disk.Name(event);
    known.next_file = std::max(known.next_file, event.file + 1);
  }
  disk.directories.erase("");
  known.files = std::move(disk.names);
  known.directories = std::move(disk.directories);
  return known;
}

void ForgetUnwritten(std::vector<DiskEvent>& log, Draw& draw) {
  const std::vector<bool> unwritten = CertaintyOf(log, log.size()).unwritten;
  std::map<std::size_t, std::string> contents;
  for (std::size_t i = 0; i < log.size(); ++i) {
    DiskEvent& event = log[i];
    if (event.kind != Kind::kWrite) continue;
    std::string& content = contents[event.file];
    if (unwritten[i]) {
      // What the sectors hold afterwards becomes what was written.
      std::string after = content;
      const std::size_t fate = draw.Below(3);
      if (fate == 0) Apply(after, event.offset, event.bytes);
      if (fate == 2) ApplyTorn(after, event, draw);
      const auto at = static_cast<std::size_t>(event.offset);
      after.resize(std::max(after.size(), at + event.bytes.size()), '\0');  // a hole
      event.bytes = after.substr(at, event.bytes.size());
    }
    Apply(content, event.offset, event.bytes);
  }
  for (DiskEvent& event : log) {
    if (event.kind == Kind::kSyncFailed) event.kind = Kind::kSynced;
  }
}

namespace {

// The lengths of files of which the journal lost what came last: of one that was synced more than
// once, what the last sync made longer, unless the journal had something later.
std::map<std::size_t, std::size_t> LengthsBefore(const std::vector<DiskEvent>& log,
                                                 std::size_t cut) {
  struct Growth {
    std::size_t now = 0;
    std::size_t at_last = 0;  // when it was synced last
    std::size_t at_last_but_one = 0;
    int syncs = 0;
  };
  std::map<std::size_t, Growth> growths;
  // What reaches the journal later takes along what it has already.
  const auto settle = [&] {
    for (auto& [file, growth] : growths) growth.at_last_but_one = growth.at_last;
  };
  const auto synced = [&](Growth& growth) {
    if (growth.now > growth.at_last) settle();
    growth.at_last_but_one = growth.at_last;
    growth.at_last = growth.now;
    ++growth.syncs;
  };
  for (std::size_t i = 0; i < cut; ++i) {
    const DiskEvent& event = log[i];
    if (event.kind == Kind::kWrite) {
      Growth& growth = growths[event.file];
      growth.now =
          std::max(growth.now, static_cast<std::size_t>(event.offset) + event.bytes.size());
    }
    if (event.kind == Kind::kTruncate) {
      growths[event.file].now = static_cast<std::size_t>(event.offset);
    }
    if (event.kind == Kind::kSynced) synced(growths[event.file]);
    if (event.kind == Kind::kDirectorySynced) settle();
    if (event.kind == Kind::kWritten) synced(growths[log[event.index].file]);
  }
  std::map<std::size_t, std::size_t> lengths;
  for (const auto& [file, growth] : growths) {
    if (growth.syncs > 1) lengths[file] = growth.at_last_but_one;
  }
  return lengths;
}

enum class Fate : std::uint8_t { kDrawn, kAll, kNone };

void Play(const std::vector<DiskEvent>& log, std::size_t cut, Draw* draw, Fate fate,
          const std::vector<bool>& kept, const std::filesystem::path& into,
          const std::map<std::size_t, std::size_t>& lengths = {}) {
  const bool all = fate == Fate::kAll;
  Disk disk;
  for (std::size_t i = 0; i < cut; ++i) {
    const DiskEvent& event = log[i];
    if (ChangesDirectory(event.kind)) {
      if (kept[i] || all) disk.Name(event);
    } else if (event.kind == Kind::kTruncate) {
      // A length changes completely or not at all.
      if (kept[i] || all || (fate == Fate::kDrawn && draw->OneIn(2))) {
        disk.contents[event.file].resize(static_cast<std::size_t>(event.offset), '\0');
      }
    } else if (event.kind == Kind::kWrite) {
      std::string& content = disk.contents[event.file];
      const std::size_t end = kept[i] || all ? 0 : fate == Fate::kNone ? 1 : draw->Below(3);
      if (end == 0) Apply(content, event.offset, event.bytes);
      if (end == 2) ApplyTorn(content, event, *draw);
    }
  }
  for (const auto& [file, length] : lengths) {
    std::string& content = disk.contents[file];
    if (content.size() > length) content.resize(length);
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

}  // namespace

void PlayKill(const std::vector<DiskEvent>& log, std::size_t cut,
              const std::filesystem::path& into) {
  Play(log, cut, nullptr, Fate::kAll, std::vector<bool>(cut), into);
}

void PlayPowerCut(const std::vector<DiskEvent>& log, std::size_t cut, Draw& draw,
                  const std::filesystem::path& into) {
  Certainty certainty = CertaintyOf(log, cut);
  KeepSomeNames(log, cut, draw, certainty.sure);
  // All of it, as after SIGKILL, unless a sync failed.
  const bool any_failed = std::any_of(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(cut),
                                      [](const auto& e) { return e.kind == Kind::kSyncFailed; });
  const Fate fate = draw.OneIn(8) && !any_failed ? Fate::kAll
                    : draw.OneIn(8)              ? Fate::kNone
                                                 : Fate::kDrawn;
  const bool breaks_journal = fate != Fate::kAll && draw.OneIn(3);
  Play(log, cut, &draw, fate, certainty.sure, into,
       breaks_journal ? LengthsBefore(log, cut) : std::map<std::size_t, std::size_t>());
}

}  // namespace waybill::testing
