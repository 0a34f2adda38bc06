#include "guard/session.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "guard/record_files.h"

namespace waybill::guard {
namespace {

constexpr std::size_t kMaxMarkBytes = 4096;

// A folder as it is now; null if there is none.
nlohmann::json FolderMark(const std::filesystem::path& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return nullptr;
  return {static_cast<std::uint64_t>(st.st_dev),
          static_cast<std::uint64_t>(st.st_ino),
          st.st_mtim.tv_sec,
          st.st_mtim.tv_nsec,
          st.st_ctim.tv_sec,
          st.st_ctim.tv_nsec};
}

// pulled/ and pulling/ as they are now.
std::string FoldersOf(const std::filesystem::path& image_manager) {
  return nlohmann::json{FolderMark(image_manager / "pulled"), FolderMark(image_manager / "pulling")}
      .dump();
}

std::string MarkOf(const std::string& folders, const std::string& store_uuid,
                   std::uint64_t commit_sequence) {
  const nlohmann::json mark = {
      {"store", store_uuid}, {"commit", commit_sequence}, {"folders", folders}};
  return mark.dump() + "\n";
}

struct flock Whole() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

Result<bool> Session::Runs(const std::filesystem::path& image_manager) {
  auto lock = internal::OpenFile(image_manager / kOwnFolder / "lock", O_RDONLY);
  if (!lock) {
    return lock.error().code == ErrorCode::kNotFound ? Result<bool>(false) : lock.error();
  }
  struct flock whole = Whole();
  if (::fcntl(lock->get(), F_OFD_GETLK, &whole) != 0) {
    return internal::SystemError(errno, "see who holds", image_manager / kOwnFolder / "lock");
  }
  return whole.l_type != F_UNLCK;
}

Result<Session> Session::Begin(const std::filesystem::path& image_manager) {
  const std::filesystem::path own = image_manager / kOwnFolder;
  if (auto made = internal::MakePrivateDirectory(own); !made) return made.error();
  if (auto safe = internal::CheckPrivateDirectory(own); !safe) return safe.error();
  const std::filesystem::path path = own / "lock";
  auto lock = internal::OpenFile(path, O_RDWR | O_CREAT);
  if (!lock) return lock.error();
  struct flock whole = Whole();
  if (::fcntl(lock->get(), F_OFD_SETLK, &whole) != 0) {
    if (errno != EAGAIN && errno != EACCES) return internal::SystemError(errno, "lock", path);
    return Error{ErrorCode::kOwned,
                 "another guard runs on this kubelet directory: it holds " + path.string() +
                     "; nothing was changed",
                 "one guard is enough: stop that one first"};
  }
  return Session(image_manager, std::move(*lock));
}

Result<bool> Session::TakeMark(const std::string& store_uuid, std::uint64_t commit_sequence) {
  Capture();
  const std::filesystem::path path = image_manager_ / kOwnFolder / "session";
  auto mark = internal::ReadWholeFile(path, kMaxMarkBytes);
  if (auto removed = internal::RemoveFile(path); !removed) return removed.error();
  if (auto synced = internal::SyncDirectory(path.parent_path()); !synced) return synced.error();
  if (!mark) return false;
  const auto left = nlohmann::json::parse(*mark, nullptr, false);
  // Other commands may have changed the store since; the kubelet has not.
  return left.is_object() && left.value("store", "") == store_uuid &&
         left.value("folders", "") == folders_ &&
         left.value("commit", std::uint64_t{0}) <= commit_sequence;
}

Result<void> Session::LeaveMark(const std::string& store_uuid,
                                std::uint64_t commit_sequence) const {
  return internal::WriteFileDurably(image_manager_ / kOwnFolder / "session",
                                    MarkOf(folders_, store_uuid, commit_sequence));
}

void Session::Capture() { folders_ = FoldersOf(image_manager_); }

bool Session::InPlace() const {
  const std::filesystem::path path = image_manager_ / kOwnFolder / "lock";
  auto held = internal::FileIdOf(lock_, path);
  auto there = internal::FileIdOf(path);
  return held && there && *held == *there;
}

}  // namespace waybill::guard
