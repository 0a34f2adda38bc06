#include "bindings/cli/node_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <system_error>
#include <utility>

#include "store/base/files.h"
#include "store/base/try.h"
#include "store/for_the_command.h"

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommand = "/opt/waybill/bin/waybill";
constexpr const char* kConfig = "/etc/waybill/config.toml";
constexpr const char* kSetAside = "/etc/waybill/config.toml.before-waybill-install";
constexpr const char* kListFile = "/opt/waybill/installed";
constexpr const char* kOnPath = "/usr/local/bin/waybill";
constexpr const char* kTmpfiles = "/etc/tmpfiles.d/waybill.conf";
constexpr const char* kUnits = "/etc/systemd/system/";
constexpr const char* kDropIn = "/etc/systemd/system/kubelet.service.d/";
constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;
constexpr std::string_view kLinkTo = "-> ";
// Behind the name of a file until it is whole; a name that nobody else gives. What a killed call
// left of such goes with the removal.
constexpr const char* kStaged = ".waybill-install";

struct Text {
  std::string_view place;
  std::string_view content;
};
// packaging/systemd and packaging/config.toml.
constexpr Text kFiles[] = {
#include "node_files.inc"
};

// The unit as a package has it, with this command.
std::string ForThisCommand(std::string_view unit) {
  std::string text(unit);
  for (const auto& [from, to] :
       {std::pair<std::string_view, std::string_view>{"/usr/bin/waybill", kCommand},
        {" file:///usr/share/doc/waybill/operations.md", ""}}) {
    for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

// As sha256sum prints it.
Result<std::string> HashOf(std::string_view bytes) {
  return internal::HexEncode(TRY(internal::Sha256(bytes)));
}

// Whatever a list says, nothing else is ever removed.
bool IsOurs(const std::string& path) {
  if (path == kCommand || path == kOnPath || path == kConfig || path == kTmpfiles) return true;
  return path.find("/..") == path.npos &&
         (path.starts_with(std::string(kUnits) + "waybill-") || path.starts_with(kDropIn));
}

Error Failed(const fs::path& path, const char* what, int error) {
  return {ErrorCode::kIo, std::string(what) + " " + path.string() + ": " + ::strerror(error),
          "the files are as they were, or as installed; mend it and say the same again, or "
          "`waybill install --remove`"};
}

}  // namespace

struct NodeFiles::File {
  std::string path;
  std::string content;  // of a link: its target
  bool is_link = false;
  bool is_program = false;

  Result<std::string> State() const {
    if (is_link) return std::string(kLinkTo) + content;
    return HashOf(content);
  }
};

fs::path NodeFiles::On(const std::string& path) const { return root_ / path.substr(1); }

std::vector<NodeFiles::File> NodeFiles::Wanted(std::string_view command,
                                               const std::optional<std::string>& config) const {
  std::vector<File> files;
  files.push_back({.path = kCommand, .content = std::string(command), .is_program = true});
  files.push_back({.path = kOnPath, .content = kCommand, .is_link = true});
  for (const Text& text : kFiles) {
    std::string path(text.place);
    if (path == kConfig && config) continue;
    files.push_back({.path = std::move(path), .content = ForThisCommand(text.content)});
  }
  if (config) files.push_back({.path = kConfig, .content = *config});
  return files;
}

Result<bool> NodeFiles::HasPackage() const {
  for (const char* units : {"/usr/lib/systemd/system/", "/lib/systemd/system/"}) {
    if (TRY(internal::Exists(On(std::string(units) + "waybill-guard.service")))) return true;
  }
  return false;
}

Result<void> NodeFiles::CheckInside() const {
  const fs::path root = fs::weakly_canonical(root_);
  for (const char* const path :
       {kListFile, kCommand, kOnPath, kConfig, kTmpfiles, kUnits, kDropIn}) {
    std::error_code error;
    const fs::path directory = fs::weakly_canonical(On(path).parent_path(), error);
    if (error) return Failed(On(path).parent_path(), "looking at", error.value());
    if (root == "/" ||
        std::mismatch(root.begin(), root.end(), directory.begin(), directory.end()).first ==
            root.end()) {
      continue;
    }
    return Error{ErrorCode::kUnsafePath,
                 On(path).parent_path().string() + " leads out of " + root.string() + ", to " +
                     directory.string() + "; nothing was changed",
                 "look at the links in it: each file is written below --root alone"};
  }
  return {};
}

Result<NodeFiles::List> NodeFiles::ReadList() const {
  const fs::path path = On(kListFile);
  List list;
  if (!TRY(internal::Exists(path))) return list;
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  std::istringstream lines(TRY(internal::ReadWholeFile(path, kMaxBytes)));
  constexpr std::string_view kHead = "waybill ";
  std::string line;
  bool sound = std::getline(lines, line) && line.starts_with(kHead) && line.size() > kHead.size();
  if (sound) list.version = line.substr(kHead.size());
  while (sound && std::getline(lines, line)) {
    const std::size_t gap = line.rfind("  ");
    sound = gap != line.npos && IsOurs(line.substr(gap + 2));
    if (sound) list.files[line.substr(gap + 2)].insert(line.substr(0, gap));
  }
  if (sound) return list;
  return Error{
      ErrorCode::kInvalidArgument,
      path.string() + " is not a list that `waybill install` wrote; nothing was changed",
      "without it no file counts as installed: remove /opt/waybill, and in /etc/systemd/system "
      "waybill-* and kubelet.service.d/10-waybill-guard.conf, then install anew"};
}

Result<void> NodeFiles::WriteList(const List& list) const {
  std::string text = "waybill " + list.version + "\n";
  for (const auto& [path, states] : list.files) {
    for (const std::string& state : states) text += state + "  " + path + "\n";
  }
  return internal::WriteFileDurably(On(kListFile), text);
}

Result<std::string> NodeFiles::StateOf(const std::string& path) const {
  const fs::path file = On(path);
  struct stat status = {};
  if (::lstat(file.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::string();
    return Failed(file, "looking at", errno);
  }
  if (S_ISLNK(status.st_mode)) {
    std::error_code error;
    const fs::path target = fs::read_symlink(file, error);
    if (error) return Failed(file, "reading", error.value());
    return std::string(kLinkTo) + target.string();
  }
  if (!S_ISREG(status.st_mode)) return std::string("neither a file nor a link");
  return HashOf(TRY(internal::ReadWholeFile(file, kMaxFileBytes)));
}

Result<void> NodeFiles::Write(const File& file) const {
  const fs::path path = On(file.path);
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return Failed(path.parent_path(), "making", error.value());
  const fs::path staged = path.string() + kStaged;
  TRY(internal::RemoveFile(staged));
  if (file.is_link) {
    if (::symlink(file.content.c_str(), staged.c_str()) != 0) return Failed(path, "making", errno);
  } else {
    TRY(internal::WriteFileDurably(staged, file.content));
    if (::chmod(staged.c_str(), file.is_program ? 0755 : 0644) != 0) {
      return Failed(path, "setting the mode of", errno);
    }
  }
  return internal::RenameDurably(staged, path);
}

Result<void> NodeFiles::TakeAway(const std::string& path) const {
  TRY(internal::RemoveFile(On(path)));
  // Directories of its own, if nothing else is in them.
  for (fs::path directory = fs::path(path).parent_path();
       directory == "/opt/waybill/bin" || directory == kInstallDirectory ||
       directory == "/etc/waybill" || directory.string() + "/" == kDropIn;
       directory = directory.parent_path()) {
    if (::rmdir(On(directory.string()).c_str()) != 0) break;
  }
  return {};
}

Result<NodeFileChanges> NodeFiles::Install(std::string_view command,
                                           const std::optional<std::string>& config,
                                           bool dry_run) const {
  TRY(CheckInside());
  const List before = TRY(ReadList());
  NodeFileChanges changes{.was = before.version};
  List list{.version = version_, .files = before.files};
  List meanwhile = list;
  std::vector<File> to_write;
  std::set<std::string> wanted;
  for (File& file : Wanted(command, config)) {
    wanted.insert(file.path);
    const std::string is = TRY(StateOf(file.path));
    const std::string state = TRY(file.State());
    const auto listed = before.files.find(file.path);
    const bool ours = listed != before.files.end() && listed->second.contains(is);
    if (is == state) {
      changes.unchanged.push_back(file.path);
      if (listed != before.files.end()) {
        changes.was_interrupted = changes.was_interrupted || listed->second.size() > 1;
        list.files[file.path] = {state};
      }
      continue;
    }
    if (!is.empty() && !ours) {
      if (file.path == kConfig && config && !TRY(internal::Exists(On(kSetAside)))) {
        changes.set_aside = kSetAside;
      } else if ((file.path == kConfig && !config) || file.path == kOnPath) {
        changes.kept.push_back(file.path);
        list.files.erase(file.path);
        continue;
      } else {
        return Error{
            ErrorCode::kUnsafePath,
            On(file.path).string() + " is not as `waybill install` left it; nothing was changed",
            "look at it, and at " + std::string(kSetAside) +
                " if there is one; move them away, and say the same again"};
      }
    }
    // Where there is no such directory (Flatcar has /opt/bin), the command has its own path only.
    if (file.path == kOnPath && ::access(On("/usr/local/bin").c_str(), W_OK) != 0) continue;
    meanwhile.files[file.path].insert(state);
    list.files[file.path] = {state};
    changes.written.push_back(file.path);
    to_write.push_back(std::move(file));
  }
  // What an older version had and this one has not.
  for (const auto& [path, states] : before.files) {
    if (wanted.contains(path)) continue;
    (states.contains(TRY(StateOf(path))) ? changes.removed : changes.kept).push_back(path);
  }
  if (dry_run) return changes;
  std::error_code error;
  fs::create_directories(On(kInstallDirectory), error);
  if (error) return Failed(On(kInstallDirectory), "making", error.value());
  TRY(WriteList(meanwhile));
  if (changes.set_aside) {
    TRY(internal::RenameDurably(On(kConfig), On(*changes.set_aside)));
  }
  for (const File& file : to_write) {
    TRY(Write(file));
  }
  for (const std::string& path : changes.removed) {
    TRY(TakeAway(path));
    list.files.erase(path);
  }
  for (const std::string& path : changes.kept) list.files.erase(path);
  // What each file was stays listed until the guard runs with what it is.
  for (auto& [path, states] : meanwhile.files) {
    if (list.files.contains(path)) list.files[path].insert(states.begin(), states.end());
  }
  TRY(WriteList(list));
  return changes;
}

Result<void> NodeFiles::Settle() const {
  List list = TRY(ReadList());
  for (auto& [path, states] : list.files) {
    if (auto is = TRY(StateOf(path)); states.contains(is)) states = {std::move(is)};
  }
  return WriteList(list);
}

Result<NodeFileChanges> NodeFiles::Remove(bool dry_run) const {
  TRY(CheckInside());
  const List list = TRY(ReadList());
  // It took the configuration over, and does not start without it.
  const bool has_package = TRY(HasPackage());
  NodeFileChanges changes{.was = list.version};
  for (const auto& [path, states] : list.files) {
    const std::string is = TRY(StateOf(path));
    if (is.empty()) continue;
    const bool ours = states.contains(is) && !(path == kConfig && has_package);
    (ours ? changes.removed : changes.kept).push_back(path);
  }
  const bool is_config_gone =
      !TRY(internal::Exists(On(kConfig))) ||
      std::count(changes.removed.begin(), changes.removed.end(), kConfig) > 0;
  if (is_config_gone && TRY(internal::Exists(On(kSetAside)))) changes.set_aside = kSetAside;
  if (dry_run || list.version.empty()) return changes;
  for (const auto& [path, states] : list.files) {
    for (const char* const end : {".tmp", ""}) {
      TRY(internal::RemoveFile(On(path + kStaged + end)));
    }
  }
  for (const std::string& path : changes.removed) {
    TRY(TakeAway(path));
  }
  if (changes.set_aside) {
    TRY(internal::RenameDurably(On(kSetAside), On(kConfig)));
  }
  TRY(TakeAway(kListFile));
  return changes;
}

}  // namespace waybill::cli
