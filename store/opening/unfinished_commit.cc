#include "store/opening/unfinished_commit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "store/base/try.h"
#include "store/disk/lmdb/room_ahead.h"
#include "store/disk/page_walk/page_check.h"
#include "store/opening/store_files.h"

namespace waybill::internal {

namespace {

constexpr off_t kPageBytes = 4096;

// What can't be read is not in the kernel's cache, so it can't be there and not on the disk.
Result<void> WriteAllBack(const Fd& file, const std::filesystem::path& path) {
  constexpr std::size_t kBytes = std::size_t{256} << 10;
  const auto bytes = std::make_unique_for_overwrite<char[]>(kBytes);
  struct stat st {};
  if (fstat(file.get(), &st) != 0) return SystemError(errno, "look at", path);
  for (off_t at = 0; at < st.st_size;) {
    // Holes stay holes: a full disk has no room for them. Without an answer all is data.
    const off_t data = lseek(file.get(), at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return {};
    at = std::max(at, data);
    const off_t hole = lseek(file.get(), at, SEEK_HOLE);
    const auto size = hole > at ? std::min(kBytes, static_cast<std::size_t>(hole - at)) : kBytes;
    ssize_t got = pread(file.get(), bytes.get(), size, at);
    if (got < 0) got = pread(file.get(), bytes.get(), kPageBytes, at);
    if (got == 0) return {};
    if (got > 0) {
      const std::string_view read(bytes.get(), static_cast<std::size_t>(got));
      if (auto r = PWriteAll(file, read, at, path); !r) return r;
    }
    at += got > 0 ? got : kPageBytes;
  }
  return {};
}

}  // namespace

bool WritesWholeSectors(const std::filesystem::path& directory) {
  if (!WritesInPlace(directory)) return false;
  struct statx file {};
  const std::filesystem::path data = directory / "data.mdb";
  return statx(AT_FDCWD, data.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &file) == 0 &&
         (file.stx_attributes & STATX_ATTR_DAX) == 0;
}

std::unique_ptr<CommitMark> MarkFor(const std::filesystem::path& directory, MarkLine line,
                                    const BootClock& boot_clock, bool flushes_twice) {
  const BootTime now = boot_clock();
  const bool once =
      !flushes_twice && now.boot_id != BootTime().boot_id && WritesWholeSectors(directory);
  line.boot_id = now.boot_id;
  return std::make_unique<CommitMark>(directory, std::move(line), once, boot_clock);
}

Result<Inspection> FindWhole(const Fd& file, const Inspection& newest, OnReadError on_error,
                             ReadSignsOf read_signs) {
  for (const int which : {0, 1}) {
    const MetaSummary& one = newest.meta[static_cast<std::size_t>(which)];
    const MetaSummary& other = newest.meta[static_cast<std::size_t>(1 - which)];
    if (!one.valid || !one.rooted) continue;
    // A meta page is written in one piece, which lies in one sector.
    const bool other_is_torn = other.txn_id == one.txn_id + 1 && (other.valid || other.past_end);
    // If LMDB can't write its meta page, it leaves the old ID to it, and in part the new content.
    const bool other_was_written_over = other.txn_id + 1 == one.txn_id;
    if (!other_is_torn && !other_was_written_over) continue;
    auto whole = InspectTreeOf(file, which, on_error);
    if (!whole) return whole.error();
    if (!whole->sound || whole->moved) continue;
    auto signs = TRY(read_signs(*whole->identity, *whole->state));
    if (signs.VerdictFor(Tree::kTorn) == Verdict::kTakenBack) return whole;
  }
  return newest;
}

Result<void> TakeBack(const std::filesystem::path& directory, const Fd& file,
                      const Inspection& whole, MarkLine mark, const BootTime& now) {
  const std::filesystem::path path = directory / "data.mdb";
  auto meta = TRY(MetaWithoutRoots(file.get(), whole.newer_meta));
  // After a power cut the mark may know of no commit to take back. If the flush below fails, the
  // next opening finds a whole tree, which may never reach the disk: step 3 must follow.
  mark.boot_id = now.boot_id;
  mark.written = now.nanoseconds;
  mark.begun = std::max(mark.begun, whole.state->commit_sequence + 1);
  TRY(WriteCommitMark(directory, mark));
  if (auto r = RemoveFile(directory / "lock.mdb"); !r) return r;
  if (auto r = SyncDirectory(directory); !r) return r;
  const off_t offset = whole.newer_meta == 0 ? static_cast<off_t>(whole.page_bytes) : 0;
  const std::string_view bytes(reinterpret_cast<const char*>(meta.data()), meta.size());
  if (auto r = PWriteAll(file, bytes, offset, path); !r) return r;
  return SyncFile(file, path);
}

bool MayBeUnwritten(const MarkReading& mark, const Identity& identity) {
  const bool all_acknowledged =
      mark.line && mark.line->uuid == identity.uuid && mark.line->begun == mark.line->acknowledged;
  return mark.exists && !all_acknowledged;
}

Result<void> WriteAgain(const std::filesystem::path& directory, const Fd& file) {
  const std::filesystem::path path = directory / "data.mdb";
  TRY(WriteAllBack(file, path));
  return lmdb::SyncWithSize(file.get(), path);
}

}  // namespace waybill::internal
