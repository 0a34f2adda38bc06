#include "store/disk/lmdb/room_ahead.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace waybill::lmdb {

namespace {

constexpr std::uint64_t kMinStepBytes = std::uint64_t{128} << 10;
constexpr std::uint64_t kMaxStepBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kStepShare = 16;
// So much is left when more is made. A small commit takes up to some ten pages.
constexpr std::uint64_t kMinLeftBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kFreeShare = 4;
constexpr std::uint64_t kTryAgainAfter = 64;  // commits

// Less of this: what is free on the file system beside what others may need, and what the process
// may write (beyond that limit a write ends it by SIGXFSZ).
std::uint64_t MayTake(int fd, std::uint64_t begin, std::uint64_t bytes) {
  struct statvfs fs {};
  if (fstatvfs(fd, &fs) == 0) {
    bytes = std::min<std::uint64_t>(bytes, fs.f_bavail * fs.f_frsize / kFreeShare);
  }
  struct rlimit limit {};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur > begin ? limit.rlim_cur - begin : 0);
  }
  return bytes;
}

std::uint64_t SizeOf(int fd) {
  struct stat st {};
  return fstat(fd, &st) == 0 ? static_cast<std::uint64_t>(st.st_size) : 0;
}

}  // namespace

RoomAhead::RoomAhead(const Env& env) : env_(env) {
  mdb_filehandle_t fd = -1;
  if (mdb_env_get_fd(env.get(), &fd) == MDB_SUCCESS) fd_ = fd;
}

std::uint64_t RoomAhead::Fill(std::uint64_t begin, std::uint64_t end) const {
  const std::array<char, 16384> zeros{};
  while (begin < end) {
    const std::size_t bytes = std::min<std::uint64_t>(zeros.size(), end - begin);
    const ssize_t written = pwrite(fd_, zeros.data(), bytes, static_cast<off_t>(begin));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    begin += static_cast<std::uint64_t>(written);
  }
  return begin;
}

// LMDB leaves holes where a page was given up before it was written. They read as zeros already.
bool RoomAhead::FillHoles() {
  const auto size = static_cast<off_t>(end_);
  for (off_t at = 0; at < size;) {
    const off_t hole = lseek(fd_, at, SEEK_HOLE);
    if (hole < 0 || hole >= size) return true;
    const off_t data = lseek(fd_, hole, SEEK_DATA);
    const off_t end = data > hole ? std::min(data, size) : size;
    const auto begin = static_cast<std::uint64_t>(hole);
    const auto bytes = static_cast<std::uint64_t>(end - hole);
    if (MayTake(fd_, begin, bytes) < bytes) return false;
    if (Fill(begin, begin + bytes) < begin + bytes) return false;
    at = end;
  }
  return true;
}

// fdatasync and fsync succeed on ext4 if the journal was broken off meanwhile, but then no later
// change of an inode begins.
Result<void> SyncWithSize(int fd, const std::filesystem::path& path) {
  struct stat st {};
  if (fsync(fd) != 0) return internal::SystemError(errno, "sync", path);
  if (fstat(fd, &st) != 0) return internal::SystemError(errno, "look at", path);
  // The same mode again. A security module may forbid even that.
  if (fchmod(fd, st.st_mode & 07777U) != 0 && (errno == EROFS || errno == EIO)) {
    return internal::SystemError(errno, "sync", path);
  }
  if (fsync(fd) != 0) return internal::SystemError(errno, "sync", path);
  return {};
}

void RoomAhead::Make(const Env::Info& info, std::uint64_t pages) {
  const std::uint64_t used = (info.last_page + 1) * info.page_size;
  const std::uint64_t left =
      std::clamp(2 * growth_, kMinLeftBytes, kMaxStepBytes) + pages * info.page_size;
  if (off_ || fd_ < 0 || info.page_size == 0) return;
  if (begun_ && used + left <= end_) return;
  if (!begun_) {
    begun_ = true;
    end_ = SizeOf(fd_);
    used_ = used;
    if (!FillHoles()) end_ = 0;
    if (used + left <= end_) return;
  }
  if (wait_ > 0) {
    --wait_;
    return;
  }
  const std::uint64_t step = std::clamp(used / kStepShare, kMinStepBytes, kMaxStepBytes);
  const std::uint64_t map_end = info.map_bytes / info.page_size * info.page_size;
  const std::uint64_t begin = SizeOf(fd_);
  const std::uint64_t wanted = std::min(used + left + step, map_end);
  if (begin == 0 || wanted <= begin) return;
  const std::uint64_t bytes = MayTake(fd_, begin, wanted - begin) / info.page_size * info.page_size;
  const std::uint64_t end = Fill(begin, begin + bytes);
  if (end < wanted) wait_ = kTryAgainAfter;
  if (end == begin) return;
  if (!SyncWithSize(fd_, env_.directory() / "data.mdb")) {
    off_ = true;
    return;
  }
  end_ = end;
}

Result<void> RoomAhead::Settle(const Env::Info& info) {
  const std::uint64_t used = (info.last_page + 1) * info.page_size;
  growth_ = std::max(used > used_ ? used - used_ : 0, growth_ - growth_ / 8);
  used_ = std::max(used_, used);
  if (used <= end_) return {};
  // It may have left holes, which later commits would fill.
  end_ = SizeOf(fd_);
  const bool filled = FillHoles();
  if (auto r = SyncWithSize(fd_, env_.directory() / "data.mdb"); !r) return r;
  if (!filled) end_ = 0;
  return {};
}

}  // namespace waybill::lmdb
