#include "migrations/kubelet_files/staged_folders.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "store/base/files.h"
#include "store/base/try.h"
#include "store/opening/backup.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kStaging = "export.tmp";
// Files are synced in groups: once all are on their way to the disk, the first sync waits for most
// of the others, too.
constexpr std::size_t kFilesPerSync = 256;

// For nftw: std::filesystem's iterators end the process if memory runs out (GCC 12).
constexpr int kOpenDirectories = 16;

// Whether `path` is or contains a file. True if that is unknown.
bool HoldsFiles(const std::filesystem::path& path) {
  const auto is_file = [](const char*, const struct stat*, int type, FTW*) {
    return type == FTW_D ? 0 : 1;
  };
  return nftw(path.c_str(), is_file, kOpenDirectories, FTW_PHYS) != 0;
}

void RemoveAll(const std::filesystem::path& path) {
  const auto remove_one = [](const char* at, const struct stat*, int, FTW*) {
    std::remove(at);
    return 0;
  };
  nftw(path.c_str(), remove_one, kOpenDirectories, FTW_DEPTH | FTW_PHYS);
}

// Whether exports wrote or imports took every file in it.
bool IsKnown(const std::filesystem::path& aside, const ImportedFiles& imported) {
  const auto inside = ListDirectory(aside);
  if (!inside) return false;
  for (const std::string& name : *inside) {
    const auto folder = std::find_if(std::begin(kKubeletFolders), std::end(kKubeletFolders),
                                     [&](KubeletFolder one) { return FolderName(one) == name; });
    const auto files = ListDirectory(aside / name);
    if (folder == std::end(kKubeletFolders) || !files) return false;
    for (const std::string& file_name : *files) {
      if (!IsRecordName(file_name)) return false;
      const auto file = ReadKubeletFile(aside, *folder, file_name, OnReadError::kFail);
      if (!file) return false;
      const bool is_imported = file->identity && imported.contains({file->path, *file->identity});
      if (!is_imported && !ShowsNoKubelet(*file)) return false;
    }
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<StagedFolders>> StagedFolders::Begin(
    const std::filesystem::path& kubelet_directory, Timestamp now) {
  TRY(CheckPrivateDirectory(kubelet_directory));
  const std::filesystem::path image_manager =
      WithoutTrailingSlashes(kubelet_directory) / "image_manager";
  TRY(MakePrivateDirectory(image_manager));
  TRY(CheckPrivateDirectory(image_manager));
  std::unique_ptr<StagedFolders> staged(new StagedFolders(image_manager, now));
  TRY(staged->Lock());
  const std::filesystem::path staging = image_manager / kStaging;
  const auto found = CheckPrivateDirectory(staging);
  if (!found && found.error().code == ErrorCode::kIo) return found.error();
  const bool crashed = found.has_value();
  for (const KubeletFolder folder : kKubeletFolders) {
    const std::filesystem::path place = image_manager / FolderName(folder);
    if (crashed) {
      TRY(UndoHalfExchange(staging / FolderName(folder), place));
    }
    if (!TRY(Exists(place))) continue;
    TRY(CheckPrivateDirectory(place));
  }
  // The remains of a crash may include the kubelet's own folders, already exchanged.
  TRY(staged->PutStagingAside());
  TRY(MakePrivateDirectory(staging));
  staged->staging_ = staging;
  return staged;
}

StagedFolders::~StagedFolders() {
  if (!staging_.empty()) RemoveAll(staging_);
}

Result<void> StagedFolders::Lock() {
  lock_ = TRY(OpenDirectory(image_manager_));
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return SystemError(errno, "lock", image_manager_);
  return Error{ErrorCode::kOwned,
               "another export into " + image_manager_.string() + " is running; nothing was done",
               "wait until it has ended"};
}

Answer StagedFolders::ExistsInPlace(KubeletFolder folder) const {
  return Exists(image_manager_ / FolderName(folder));
}

Result<std::vector<std::string>> StagedFolders::NamesInPlace(KubeletFolder folder) const {
  if (!TRY(ExistsInPlace(folder))) return std::vector<std::string>();
  auto names = ListDirectory(image_manager_ / FolderName(folder));
  if (names) std::erase_if(*names, [](const std::string& name) { return !IsRecordName(name); });
  return names;
}

Result<void> StagedFolders::Open(KubeletFolder folder) {
  if (auto r = SyncWritten(); !r) return r;
  folders_.push_back(folder);
  return MakePrivateDirectory(staging_ / FolderName(folder));
}

Result<void> StagedFolders::Write(const std::string& name, std::string content) {
  std::filesystem::path path = staging_ / FolderName(folders_.back()) / name;
  auto fd = TRY(OpenFile(path, O_WRONLY | O_CREAT | O_EXCL));
  if (auto r = PWriteAll(fd, ExportedForm(std::move(content)), 0, path); !r) return r;
  unsynced_.emplace_back(std::move(fd), std::move(path));
  return unsynced_.size() < kFilesPerSync ? Result<void>() : SyncWritten();
}

Result<void> StagedFolders::SyncWritten() {
  for (const auto& [fd, path] : unsynced_) {
    static_cast<void>(sync_file_range(fd.get(), 0, 0, SYNC_FILE_RANGE_WRITE));
  }
  for (const auto& [fd, path] : unsynced_) TRY(SyncFile(fd, path));
  unsynced_.clear();
  if (folders_.empty()) return {};
  return SyncDirectory(staging_ / FolderName(folders_.back()));
}

Result<std::string> StagedFolders::Place() {
  TRY(SyncWritten());
  // From here on it may hold the kubelet's files.
  const std::filesystem::path staging = std::exchange(staging_, {});
  for (const KubeletFolder folder : folders_) {
    const std::filesystem::path staged = staging / FolderName(folder);
    const std::filesystem::path place = image_manager_ / FolderName(folder);
    auto there = TRY(Exists(place));
    TRY(there ? ExchangeDurably(staged, place) : RenameDurably(staged, place));
  }
  return PutStagingAside();
}

Result<std::string> StagedFolders::PutStagingAside() const {
  const std::filesystem::path staging = image_manager_ / kStaging;
  if (!TRY(Exists(staging))) return std::string();
  if (!HoldsFiles(staging)) {
    RemoveAll(staging);
    return std::string();
  }
  auto aside = TRY(KeptAside(image_manager_, "", now_));
  TRY(RenameDurably(staging, aside));
  return aside.string();
}

std::vector<std::string> StagedFolders::RemoveOldAside(const ImportedFiles& imported) const {
  std::vector<std::string> removed;
  for (const std::filesystem::path& aside : TooOldAside(image_manager_, "")) {
    if (!IsKnown(aside, imported)) continue;
    RemoveAll(aside);
    const auto there = Exists(aside);
    if (there.has_value() && !*there) removed.push_back(aside.string());
  }
  return removed;
}

namespace {

// The last number of a kept <beginning>[-n]; 0: none is kept.
std::uint64_t LastNumber(const std::vector<std::string>& names, const std::string& beginning) {
  std::uint64_t last = 0;
  for (const std::string& name : names) {
    if (!name.starts_with(beginning)) continue;
    const std::string rest = name.substr(beginning.size());
    std::uint64_t number = 0;
    if (rest.empty()) {
      number = 1;
    } else if (rest[0] == '-') {
      std::from_chars(rest.data() + 1, rest.data() + rest.size(), number);
    }
    last = std::max(last, number);
  }
  return last;
}

}  // namespace

Result<std::filesystem::path> KeptAside(const std::filesystem::path& directory,
                                        std::string_view prefix, Timestamp now) {
  const std::string first = std::string(prefix) + "before-export-" + TimeInNames(now.seconds);
  const auto names = TRY(ListDirectory(directory));
  for (std::uint64_t number = LastNumber(names, first) + 1;; ++number) {
    std::filesystem::path aside =
        directory / (number == 1 ? first : first + "-" + std::to_string(number));
    if (!TRY(Exists(aside))) return aside;
  }
}

std::vector<std::filesystem::path> TooOldAside(const std::filesystem::path& directory,
                                               std::string_view prefix) {
  const auto names = ListDirectory(directory);
  if (!names) return {};
  const std::string beginning = std::string(prefix) + "before-export-";
  // Ordered by the time of the rename, which the name's time may not be; within a clock tick by
  // number.
  std::vector<std::tuple<std::int64_t, std::int64_t, std::uint64_t, std::filesystem::path>> kept;
  for (const std::string& name : *names) {
    if (!name.starts_with(beginning)) continue;
    struct stat st {};
    std::filesystem::path path = directory / name;
    if (lstat(path.c_str(), &st) != 0) continue;
    const std::string without_number = name.substr(0, name.find('-', beginning.size()));
    kept.emplace_back(st.st_ctim.tv_sec, st.st_ctim.tv_nsec, LastNumber({name}, without_number),
                      std::move(path));
  }
  std::sort(kept.begin(), kept.end());
  kept.resize(kept.size() - std::min(kept.size(), kMaxKeptAside));
  std::vector<std::filesystem::path> too_old;
  too_old.reserve(kept.size());
  for (auto& one : kept) too_old.push_back(std::move(std::get<std::filesystem::path>(one)));
  return too_old;
}

}  // namespace waybill::internal
