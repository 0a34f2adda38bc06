#include "store/recovery/store_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

namespace waybill::internal {

namespace {

struct Texts {
  const char* name;
  const char* removed;
  const char* replaced;
  const char* truncated;
};

constexpr std::array<Texts, 3> kTexts = {
    {{"data.mdb", "data.mdb was removed", "data.mdb was replaced", "data.mdb was truncated"},
     {"lock.mdb", "lock.mdb was removed", "lock.mdb was replaced", "lock.mdb was truncated"},
     {"owner.lock", "owner.lock was removed", "owner.lock was replaced", ""}}};
constexpr std::size_t kLockFile = 1;
// Its size is not compared: opening may make its line shorter.
constexpr std::size_t kOwnerLock = 2;

struct NameLookup {
  FileId id;
  std::int64_t bytes = 0;
};

// lstat, but without the times: from Linux 6.13 on, a file whose times were asked for takes a new
// one with its next write, which made a commit a quarter slower on ext4. Sets errno.
bool LookUp(const char* path, NameLookup& found) {
  struct statx st {};
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO | STATX_SIZE, &st) != 0) {
    return false;
  }
  found = {{makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino},
           static_cast<std::int64_t>(st.stx_size)};
  return true;
}

}  // namespace

StoreFiles::StoreFiles(const std::filesystem::path& directory, const FileId& data,
                       const FileId& lock, const FileId* owner)
    : count_(owner != nullptr ? 3 : 2) {
  const std::array<const FileId*, 3> ids = {&data, &lock, owner};
  for (std::size_t i = 0; i < count_; ++i) {
    files_[i].path = (directory / kTexts[i].name).string();
    files_[i].id = *ids[i];
  }
}

StoreFiles::Look StoreFiles::LookAgain() const {
  for (std::size_t i = 0; i < count_; ++i) {
    const File& file = files_[i];
    const Texts& texts = kTexts[i];
    // Loaded before lstat: another thread may see the file grow meanwhile.
    std::int64_t seen = file.bytes.load(std::memory_order_acquire);
    NameLookup found;
    if (!LookUp(file.path.c_str(), found)) {
      if (errno == ENOENT || errno == ENOTDIR) return {State::kChanged, texts.removed};
      return {State::kUnknown, "", file.path.c_str(), errno};
    }
    if (found.id != file.id) return {State::kChanged, texts.replaced};
    if (i == kOwnerLock) continue;
    if (found.bytes < seen) return {State::kChanged, texts.truncated};
    while (seen < found.bytes &&
           !file.bytes.compare_exchange_weak(seen, found.bytes, std::memory_order_release,
                                             std::memory_order_relaxed)) {
    }
  }
  return {};
}

void StoreFiles::ExtendLockFile() const {
  const File& file = files_[kLockFile];
  NameLookup found;
  if (!LookUp(file.path.c_str(), found) || found.id != file.id) return;
  const std::int64_t bytes = file.bytes.load(std::memory_order_relaxed);
  // By name: a descriptor of our own would drop LMDB's locks when it is closed.
  if (found.bytes < bytes) static_cast<void>(!truncate(file.path.c_str(), bytes));
}

}  // namespace waybill::internal
