#include "guard/record_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "store/base/described.h"
#include "store/base/hex.h"
#include "store/base/sha256.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::guard {

using internal::Fd;
using internal::SystemError;

namespace {

// More exchanges than a single other writer, the kubelet, can cause.
constexpr int kMaxExchanges = 64;

// No kubelet can parse it, but a person who opens it learns what it is for.
constexpr std::string_view kMarkerContent =
    "This file belongs to waybill guard. No kubelet can parse it, so its cache never counts as "
    "complete, and it sees records that the guard puts back. The guard removes it when it stops.\n";

Result<void> Rename(const std::filesystem::path& from, const std::filesystem::path& to,
                    unsigned flags) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0) return {};
  return SystemError(errno, "rename " + from.string() + " to", to);
}

// Whether a file that can't be decoded is one that a later kubelet wrote, not a damaged one.
bool IsLaterFormat(const std::string& content) {
  std::map<std::string, internal::JsonText> fields;
  if (!internal::ReadForeign(content, kMaxRecordFileBytes, fields)) return false;
  std::string version;
  if (!internal::ReadForeign(fields["apiVersion"].text, kMaxRecordFileBytes, version)) return false;
  if (!fields["kind"].text.starts_with('"')) return false;
  if (fields.contains("closedByWaybill")) return false;
  if (!version.starts_with("kubelet.config.k8s.io/")) return false;
  if (version != "kubelet.config.k8s.io/v1alpha1" && version != "kubelet.config.k8s.io/v1beta1") {
    return true;
  }
  return std::ranges::any_of(fields, [](const auto& member) {
    const std::string& field = member.first;
    return field != "kind" && field != "apiVersion" && field != "lastUpdatedTime" &&
           field != "imageRef" && field != "credentialMapping" && field != "image";
  });
}

}  // namespace

std::string RecordNameOf(std::string_view ref_or_image) {
  const auto hash = internal::Sha256(ref_or_image);
  return hash ? "sha256-" + internal::HexEncode(*hash) : std::string();
}

Result<internal::KubeletPlace> FindFolder(const std::filesystem::path& named) {
  auto place = TRY(internal::FindPlace(named));
  if (place.link.empty() || !place.unsafe.empty()) return place;
  if (::access(place.path.c_str(), W_OK) == 0) return place;
  place.unsafe =
      named.string() + " is a symlink, and the guard may not write in " + place.path.string();
  place.path.clear();
  return place;
}

bool IsDirectoryItself(const std::filesystem::path& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

RecordFiles::RecordFiles(std::filesystem::path image_manager, KubeletFolder folder,
                         SyncObserver synced)
    : image_manager_(std::move(image_manager)),
      folder_(folder),
      path_(image_manager_ / internal::FolderName(folder)),
      synced_(std::move(synced)) {}

void RecordFiles::MoveTo(std::filesystem::path image_manager, std::filesystem::path folder) {
  image_manager_ = std::move(image_manager);
  path_ = std::move(folder);
}

Result<void> RecordFiles::DropStaged() const {
  auto there = TRY(internal::Exists(ScratchFolder()));
  if (!there) return {};
  auto names = TRY(internal::ListDirectory(ScratchFolder()));
  for (const std::string& name : names) {
    struct stat st {};
    const std::filesystem::path path = ScratchFolder() / name;
    if (path.native().starts_with(Scratch("sha256-").native()) && ::lstat(path.c_str(), &st) == 0 &&
        S_ISREG(st.st_mode) && st.st_nlink > 1) {
      TRY(internal::RemoveFile(path));
    }
  }
  return {};
}

std::string RecordFiles::Wide() const {
  if (!distrusted_.empty()) return distrusted_;
  for (const std::filesystem::path* folder : {&image_manager_, &path_}) {
    auto place = internal::FindPlace(*folder);
    // One that can't be looked at now can't be read either.
    if (place && !place->wide.empty()) return place->wide;
  }
  return {};
}

Result<std::vector<std::string>> RecordFiles::Names() const {
  auto there = TRY(internal::Exists(path_));
  if (!there) return std::vector<std::string>();
  auto names = internal::ListDirectory(path_);
  if (!names) return names;
  // A kubelet passes over directories, too.
  std::erase_if(*names, [&](const std::string& name) {
    return !internal::IsRecordName(name) || IsDirectoryItself(path_ / name);
  });
  std::sort(names->begin(), names->end());
  // Many are of files that are gone.
  if (on_disk_.size() > 2 * names->size() + 64) on_disk_.clear();
  return names;
}

Result<std::optional<RecordFile>> RecordFiles::Read(const std::string& name) const {
  const std::filesystem::path path = path_ / name;
  RecordFile file;
  auto bytes = internal::ReadKubeletBytes(path, kMaxRecordFileBytes);
  if (!bytes) {
    if (bytes.error().code == ErrorCode::kNotFound || IsDirectoryItself(path))
      return std::optional<RecordFile>();
    file.judged.folder = folder_;
    file.judged.problem = bytes.error().message;
    // No kubelet makes links, pipes or devices.
    file.is_planted = bytes.error().code == ErrorCode::kUnsafePath;
    return file;
  }
  file.content = std::move(bytes->content);
  file.judged = internal::JudgeKubeletFile(folder_, name, file.content);
  std::string planted = std::move(bytes->planted);
  // An intent can only close.
  const bool may_open = folder_ == KubeletFolder::kPulled && !IsOwnClosing(file.judged);
  if (planted.empty() && may_open) {
    planted = Wide();
    file.in_wide = !planted.empty();
  }
  if (planted.empty()) {
    file.is_later_format = !file.readable() && IsLaterFormat(file.content);
    return file;
  }
  if (auto* record = std::get_if<ImagePulledRecord>(&file.judged.content)) {
    file.shows = std::move(*record);
  }
  file.is_planted = true;
  internal::CountAsPlanted(file.judged, planted);
  return file;
}

Result<void> RecordFiles::SyncOnce(const std::string& name, Sync sync) const {
  const std::filesystem::path path = name.empty() ? path_ : path_ / name;
  internal::ChangeLook look;
  const bool is_seen = internal::LookAtChange(path.c_str(), look);
  if (is_seen && std::ranges::find(on_disk_, look) != on_disk_.end()) return {};
  auto there = TRY(sync(path));
  if (there && synced_) synced_(path);
  if (there && is_seen && look.IsPast()) on_disk_.push_back(look);
  return {};
}

Result<void> RecordFiles::SyncFile(const std::string& name) const {
  return SyncOnce(name, [](const std::filesystem::path& path) -> Result<bool> {
    auto file = internal::OpenFile(path, O_RDONLY);
    if (!file) {
      // Something other than a file has nothing to sync, and counts as damaged.
      const ErrorCode code = file.error().code;
      if (code == ErrorCode::kNotFound || code == ErrorCode::kUnsafePath) return false;
      return file.error();
    }
    TRY(internal::SyncFile(*file, path));
    return true;
  });
}

Result<bool> RecordFiles::Create(const std::string& name, std::string_view content) const {
  auto staged = TRY(Stage(name, content));
  // The kubelet may have written its own meanwhile: a link never replaces.
  const bool made = ::link(staged.c_str(), (path_ / name).c_str()) == 0;
  const int error = errno;
  TRY(internal::RemoveFile(staged));
  if (!made) {
    if (error == EEXIST) return false;
    return SystemError(error, "make", path_ / name);
  }
  TRY(SyncFolder());
  return true;
}

Result<bool> RecordFiles::Replace(const std::string& name, const std::string& was,
                                  std::string_view content, Durable durable) const {
  auto staged = TRY(Stage(name, content, durable));
  const std::filesystem::path place = path_ / name;
  std::string expected = was;
  std::string ours(content);
  // The exchange must return what we expected. If not, the kubelet wrote meanwhile: its file goes
  // back, and that exchange must return ours.
  bool replaced = true;
  for (int turn = 0; turn < kMaxExchanges; ++turn) {
    if (auto exchanged = Rename(staged, place, RENAME_EXCHANGE); !exchanged) {
      static_cast<void>(internal::RemoveFile(staged));
      if (exchanged.error().code == ErrorCode::kNotFound) return false;
      return exchanged.error();
    }
    auto out = internal::ReadWholeFile(staged, kMaxRecordFileBytes);
    const bool as_expected = out ? *out == expected : turn == 0 && was.empty();
    if (as_expected) break;
    replaced = false;
    expected = ours;
    if (out) ours = std::move(*out);
  }
  TRY(durable == Durable::kNow ? SyncFolder() : Result<void>());
  TRY(internal::RemoveFile(staged));
  return replaced;
}

Result<bool> RecordFiles::Remove(const std::string& name, const std::string& was) const {
  const std::filesystem::path place = path_ / name;
  const std::filesystem::path scratch = Scratch(name);
  TRY(MakeScratch());
  if (auto taken = Rename(place, scratch, 0); !taken) {
    if (taken.error().code == ErrorCode::kNotFound) return false;
    return taken.error();
  }
  auto content = internal::ReadWholeFile(scratch, kMaxRecordFileBytes);
  const bool removed = content ? *content == was : was.empty();
  if (!removed) {
    // If the kubelet has written a new file since, that one is newer than the one taken out.
    auto back = Rename(scratch, place, RENAME_NOREPLACE);
    struct stat st {};
    if (!back && ::lstat(place.c_str(), &st) != 0) return back.error();
  }
  TRY(internal::RemoveFile(scratch));
  TRY(SyncFolder());
  return removed;
}

Result<void> RecordFiles::PutMarker() const {
  auto made = Create(std::string(kMarkerName), kMarkerContent);
  return made ? Result<void>() : made.error();
}

Result<void> RecordFiles::TakeMarkerAway() const {
  TRY(internal::RemoveFile(path_ / kMarkerName));
  return SyncFolder();
}

std::filesystem::path RecordFiles::ScratchFolder() const {
  return (path_.parent_path() == image_manager_ ? image_manager_ : path_) / kOwnFolder;
}

std::filesystem::path RecordFiles::Scratch(const std::string& name) const {
  return ScratchFolder() / (std::string(internal::FolderName(folder_)) + "-" + name);
}

Result<void> RecordFiles::MakeScratch() const {
  if (path_.parent_path() == image_manager_) return {};  // made by who holds the lock in it
  TRY(internal::MakePrivateDirectory(ScratchFolder()));
  return internal::CheckPrivateDirectory(ScratchFolder());
}

Result<std::filesystem::path> RecordFiles::Stage(const std::string& name, std::string_view content,
                                                 Durable durable) const {
  const std::filesystem::path path = Scratch(name);
  TRY(MakeScratch());
  TRY(internal::RemoveFile(path));
  auto file = TRY(internal::OpenFile(path, O_WRONLY | O_CREAT | O_EXCL));
  auto written = internal::PWriteAll(file, content, 0, path);
  if (written && durable == Durable::kNow) written = internal::SyncFile(file, path);
  if (!written) {
    static_cast<void>(internal::RemoveFile(path));
    return written.error();
  }
  if (synced_ && durable == Durable::kNow) synced_(path);
  return path;
}

Result<void> RecordFiles::SyncFolder() const {
  return SyncOnce("", [](const std::filesystem::path& path) -> Result<bool> {
    TRY(internal::SyncDirectory(path));
    return true;
  });
}

}  // namespace waybill::guard
