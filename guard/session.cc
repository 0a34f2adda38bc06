#include "guard/session.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <utility>

#include "guard/record_files.h"
#include "migrations/kubelet/kubelet_records.h"
#include "store/base/go_json.h"
#include "store/base/json_value.h"
#include "store/base/try.h"
#include "waybill/values.h"

namespace waybill::guard {
namespace {

// The names under which the mark has the folders: the second one if something was left, since an
// older waybill would not record that.
constexpr const char* kFolders = "folders";
constexpr const char* kFoldersWithLeft = "foldersWithLeft";

// A folder as it is now; null if there is none.
internal::Json FolderMark(const std::filesystem::path& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return nullptr;
  return {static_cast<std::uint64_t>(st.st_dev),
          static_cast<std::uint64_t>(st.st_ino),
          st.st_mtim.tv_sec,
          st.st_mtim.tv_nsec,
          st.st_ctim.tv_sec,
          st.st_ctim.tv_nsec};
}

std::string FoldersOf(const std::vector<std::filesystem::path>& stamped) {
  internal::Json marks = internal::Json::array();
  for (const std::filesystem::path& path : stamped) marks.push_back(FolderMark(path));
  return marks.Text();
}

std::string MarkOf(const std::string& folders, const std::string& store_uuid,
                   std::uint64_t commit_sequence, const Left& left) {
  internal::Json mark = {{"store", store_uuid}, {"commit", commit_sequence}};
  mark[left.empty() ? kFolders : kFoldersWithLeft] = folders;
  if (!left.empty()) {
    internal::Json records = internal::Json::array();
    for (const ImagePulledRecord& record : left.records) {
      records.push_back(EncodePulledRecord(record));
    }
    mark["records"] = std::move(records);
    mark["pulls"] = left.pulls;
  }
  return mark.Text() + "\n";
}

// What the mark says was left; nullopt: it can't be read.
std::optional<Left> LeftIn(const internal::Json& mark) {
  Left left;
  for (const auto& [key, take] : {std::pair<const char*, std::function<bool(const std::string&)>>{
                                      "records",
                                      [&](const std::string& text) {
                                        auto record = DecodePulledRecord(text);
                                        if (!record) return false;
                                        left.records.push_back(*std::move(record));
                                        return true;
                                      }},
                                  {"pulls", [&](const std::string& text) {
                                     left.pulls.push_back(text);
                                     return !text.empty();
                                   }}}) {
    const internal::Json* const all = mark.Find(key);
    if (all == nullptr || !all->is_array() || all->size() > kMaxLeft) return std::nullopt;
    for (const auto& one : *all) {
      if (!one.is_string() || !take(one.text())) return std::nullopt;
    }
  }
  return left;
}

struct flock Whole() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

Result<bool> IsLocked(const std::filesystem::path& path) {
  auto lock = internal::OpenFile(path, O_RDONLY);
  if (!lock) {
    return lock.error().code == ErrorCode::kNotFound ? Result<bool>(false) : lock.error();
  }
  struct flock whole = Whole();
  if (::fcntl(lock->get(), F_OFD_GETLK, &whole) != 0) {
    return internal::SystemError(errno, "see who holds", path);
  }
  return whole.l_type != F_UNLCK;
}

Result<bool> Session::Runs(const std::filesystem::path& own) { return IsLocked(own / "lock"); }

Result<Session> Session::Begin(const std::filesystem::path& own,
                               std::vector<std::filesystem::path> stamped) {
  TRY(internal::MakePrivateDirectory(own));
  TRY(internal::CheckPrivateDirectory(own));
  const std::filesystem::path path = own / "lock";
  auto lock = TRY(internal::OpenFile(path, O_RDWR | O_CREAT));
  struct flock whole = Whole();
  if (::fcntl(lock.get(), F_OFD_SETLK, &whole) != 0) {
    if (errno != EAGAIN && errno != EACCES) return internal::SystemError(errno, "lock", path);
    return Error{ErrorCode::kOwned,
                 "another guard runs on this kubelet directory: it holds " + path.string() +
                     "; nothing was changed",
                 "one guard is enough: stop that one first"};
  }
  return Session(own, std::move(stamped), std::move(lock));
}

Result<bool> Session::TakeMark(const std::string& store_uuid, std::uint64_t commit_sequence,
                               Left& left) {
  Capture();
  left = {};
  const std::filesystem::path path = own_ / "session";
  auto text = internal::ReadWholeFile(path, kMaxMarkBytes);
  TRY(internal::RemoveFile(path));
  TRY(internal::SyncDirectory(path.parent_path()));
  if (!text) return false;
  const auto mark = internal::Json::Parse(*text);
  if (!mark.is_object()) return false;
  const bool has_left = mark.contains(kFoldersWithLeft);
  // Other commands may have changed the store since; the kubelet has not.
  const bool fits = mark.TextAt("store") == store_uuid &&
                    mark.TextAt(has_left ? kFoldersWithLeft : kFolders) == folders_ &&
                    mark.NumberAt("commit") <= commit_sequence;
  if (!fits || !has_left) return fits;
  auto read = LeftIn(mark);
  if (!read) return false;
  left = *std::move(read);
  return true;
}

bool Session::FitsMark(const Left& left) {
  if (left.records.size() > kMaxLeft || left.pulls.size() > kMaxLeft) return false;
  // Escaped once more, a byte is at most six.
  std::size_t bytes = 4096;
  for (const ImagePulledRecord& record : left.records) {
    bytes += 2 * EncodePulledRecord(record).size() + 8;
  }
  for (const std::string& image : left.pulls) {
    if (ValidUtf8Prefix(image) != image.size()) return false;
    bytes += 6 * image.size() + 8;
  }
  return bytes <= kMaxMarkBytes;
}

Result<void> Session::LeaveMark(const std::string& store_uuid, std::uint64_t commit_sequence,
                                const Left& left) const {
  return internal::WriteFileDurably(own_ / "session",
                                    MarkOf(folders_, store_uuid, commit_sequence, left));
}

void Session::Capture() { folders_ = FoldersOf(stamped_); }

bool Session::InPlace(const std::filesystem::path& own) const {
  const std::filesystem::path path = own / "lock";
  auto held = internal::FileIdOf(lock_, path);
  auto there = internal::FileIdOf(path);
  return held && there && *held == *there;
}

}  // namespace waybill::guard
