#include "store/lmdb/check/page_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>

#include "store/base/files.h"

namespace waybill::internal {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kChunkBytes = std::size_t{4} << 20;

enum class Outcome { kRead, kEnd, kFailed };

Outcome ReadExactly(int fd, std::byte* to, std::uint64_t count, std::uint64_t offset) {
  while (count > 0) {
    const std::size_t chunk = static_cast<std::size_t>(std::min<std::uint64_t>(count, kChunkBytes));
    const ssize_t got = pread(fd, to, chunk, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Outcome::kFailed;
    if (got == 0) return Outcome::kEnd;
    to += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::uint64_t>(got);
  }
  return Outcome::kRead;
}

}  // namespace

std::byte* PageFile::Scratch::Reserve(std::size_t bytes) {
  if (bytes > capacity_) {
    bytes_.reset(new (std::nothrow) std::byte[bytes]);
    capacity_ = bytes_ == nullptr ? 0 : bytes;
  }
  return bytes_.get();
}

Result<PageFile> PageFile::Open(int fd, Mode mode) {
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    return SystemError(errno, "look at", PathOf(fd));
  }
  if (!S_ISREG(info.st_mode)) {
    return Error{ErrorCode::kUnsafePath, "the data file is not a regular file", ""};
  }
  PageFile file;
  file.fd_ = fd;
  file.size_bytes_ = static_cast<std::uint64_t>(info.st_size);
  if (mode == Mode::kWhole && file.size_bytes_ > 0 && file.size_bytes_ <= kMaxWholeBytes &&
      !file.ReadWhole()) {
    file.whole_.reset();
  }
  return file;
}

bool PageFile::ReadWhole() {
  const std::size_t size = static_cast<std::size_t>(size_bytes_);
  const bool huge = size >= 2 * kHugePageBytes;
  const std::size_t alignment = huge ? kHugePageBytes : 64;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  whole_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (whole_ == nullptr) return false;
  // A hint only: it spares most page faults of the copy.
  if (huge) madvise(whole_.get(), rounded, MADV_HUGEPAGE);
  return ReadExactly(fd_, whole_.get(), size_bytes_, 0) == Outcome::kRead;
}

const std::byte* PageFile::Read(std::uint64_t offset, std::uint64_t count, Scratch& scratch) {
  if (offset > size_bytes_ || count > size_bytes_ - offset) {
    why_ = "it lies past the end of the file";
    return nullptr;
  }
  if (whole_ != nullptr) return whole_.get() + offset;
  if (count > kMaxExtentBytes) {
    why_ = "it is larger than any value may be";
    return nullptr;
  }
  std::byte* const to = scratch.Reserve(static_cast<std::size_t>(count));
  // No finding: a moment without memory says nothing about the file.
  if (to == nullptr) throw std::bad_alloc();
  switch (ReadExactly(fd_, to, count, offset)) {
    case Outcome::kRead:
      return to;
    case Outcome::kEnd:
      why_ = "the file shrank";
      return nullptr;
    case Outcome::kFailed:
      if (failure_) failure_ = CanBeSkipped(SystemError(errno, "read", PathOf(fd_)));
      why_ = "the operating system cannot read it";
      return nullptr;
  }
  return nullptr;
}

}  // namespace waybill::internal
