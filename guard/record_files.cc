#include "guard/record_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "store/base/sha256.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::guard {

using internal::Fd;
using internal::SystemError;

namespace {

// More exchanges than a single other writer, the kubelet, can cause.
constexpr int kMaxExchanges = 64;
// More are synced again at the next look.
constexpr std::size_t kMaxOnDisk = 20'000;

// No kubelet can parse it, but a person who opens it learns what it is for.
constexpr std::string_view kMarkerContent =
    "This file belongs to waybill guard. No kubelet can parse it, so its cache never counts as "
    "complete, and it sees records that the guard puts back. The guard removes it when it stops.\n";

Result<void> Rename(const std::filesystem::path& from, const std::filesystem::path& to,
                    unsigned flags) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0) return {};
  return SystemError(errno, "rename " + from.string() + " to", to);
}

// All zero: it can't be read.
Sha256Digest DigestOf(const std::filesystem::path& path) {
  const auto content = internal::ReadKubeletBytes(path, kMaxRecordFileBytes);
  const auto digest = content ? internal::Sha256(content->content) : Result<Sha256Digest>();
  return digest ? *digest : Sha256Digest();
}

bool IsIt(const std::filesystem::path& path, const Sha256Digest& digest, const FileWas& was) {
  if (was.inode == 0) return digest == was.digest;
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0 && st.st_ino == was.inode;
}

}  // namespace

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

Result<void> RecordFiles::SyncOnce(const std::string& name, Sync sync) const {
  const std::filesystem::path path = name.empty() ? path_ : path_ / name;
  internal::ChangeLook look;
  const bool is_seen = internal::LookAtChange(path.c_str(), look);
  if (is_seen && std::ranges::find(on_disk_, look) != on_disk_.end()) return {};
  auto there = TRY(sync(path));
  if (there && synced_) synced_(path);
  if (on_disk_.size() > kMaxOnDisk) on_disk_.clear();
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
  if (made) return true;
  if (error == EEXIST) return false;
  return SystemError(error, "make", path_ / name);
}

Result<bool> RecordFiles::Replace(const std::string& name, const FileWas& was,
                                  std::string_view content) const {
  auto staged = TRY(Stage(name, content));
  const std::filesystem::path place = path_ / name;
  FileWas expected = was;
  Sha256Digest ours = TRY(internal::Sha256(content));
  // The exchange must return what we expected. If not, the kubelet wrote meanwhile: its file goes
  // back, and that exchange must return ours.
  bool replaced = true;
  for (int turn = 0; turn < kMaxExchanges; ++turn) {
    if (auto exchanged = Rename(staged, place, RENAME_EXCHANGE); !exchanged) {
      static_cast<void>(internal::RemoveFile(staged));
      if (exchanged.error().code == ErrorCode::kNotFound) return false;
      return exchanged.error();
    }
    if (told_) told_(name);
    const Sha256Digest out = DigestOf(staged);
    if (IsIt(staged, out, expected)) break;
    replaced = false;
    expected = {std::exchange(ours, out)};
  }
  TRY(internal::RemoveFile(staged));
  return replaced;
}

Result<bool> RecordFiles::Remove(const std::string& name, const FileWas& was) const {
  const std::filesystem::path place = path_ / name;
  const std::filesystem::path scratch = Scratch(name);
  TRY(MakeScratch());
  if (auto taken = Rename(place, scratch, 0); !taken) {
    if (taken.error().code == ErrorCode::kNotFound) return false;
    return taken.error();
  }
  const bool removed = IsIt(scratch, DigestOf(scratch), was);
  if (!removed) {
    // If the kubelet has written a new file since, that one is newer than the one taken out.
    auto back = Rename(scratch, place, RENAME_NOREPLACE);
    if (back && told_) told_(name);
    struct stat st {};
    if (!back && ::lstat(place.c_str(), &st) != 0) return back.error();
  }
  TRY(internal::RemoveFile(scratch));
  return removed;
}

Result<void> RecordFiles::PutMarker() const {
  TRY(Create(std::string(kMarkerName), kMarkerContent));
  return SyncFolder();
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

Result<std::filesystem::path> RecordFiles::Stage(const std::string& name,
                                                 std::string_view content) const {
  const std::filesystem::path path = Scratch(name);
  TRY(MakeScratch());
  TRY(internal::RemoveFile(path));
  auto file = TRY(internal::OpenFile(path, O_WRONLY | O_CREAT | O_EXCL));
  auto written = internal::PWriteAll(file, content, 0, path);
  if (written) written = internal::SyncFile(file, path);
  if (!written) {
    static_cast<void>(internal::RemoveFile(path));
    return written.error();
  }
  if (synced_) synced_(path);
  return path;
}

Result<void> RecordFiles::SyncFolder() const {
  return SyncOnce("", [](const std::filesystem::path& path) -> Result<bool> {
    TRY(internal::SyncDirectory(path));
    return true;
  });
}

}  // namespace waybill::guard
