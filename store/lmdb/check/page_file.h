// The bytes of a data file, by pread only: nothing is mapped, so a file that shrinks or a bad
// sector is a result and never a signal.

#ifndef WAYBILL_STORE_LMDB_CHECK_PAGE_FILE_H_
#define WAYBILL_STORE_LMDB_CHECK_PAGE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "waybill/result.h"

namespace waybill::internal {

class PageFile {
 public:
  // kWhole holds files up to kMaxWholeBytes in memory; larger files, files with an unreadable part
  // and kOnDemand read each extent when it is asked for.
  enum class Mode { kWhole, kOnDemand };
  static constexpr std::uint64_t kMaxWholeBytes = std::uint64_t{512} << 20;
  // No single extent is larger.
  static constexpr std::uint64_t kMaxExtentBytes = std::uint64_t{1} << 30;

  // Where an extent lies that is read on demand. One for each extent in use at the same time.
  class Scratch {
   public:
    std::byte* Reserve(std::size_t bytes);

   private:
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t capacity_ = 0;
  };

  // Does not take the descriptor over. The file's offset is not moved.
  static Result<PageFile> Open(int fd, Mode mode);

  std::uint64_t size_bytes() const { return size_bytes_; }

  // `count` bytes at `offset`, aligned to 8 in memory if `offset` is. Valid until the scratch is
  // used again. nullptr: past the end, not readable or too large; `why()` says which. What the disk
  // refuses is kept as failure(), since that says nothing about the file.
  const std::byte* Read(std::uint64_t offset, std::uint64_t count, Scratch& scratch);
  const char* why() const { return why_; }
  // The first read that failed; success: there is none.
  const Result<void>& failure() const { return failure_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  bool ReadWhole();

  int fd_ = -1;
  std::uint64_t size_bytes_ = 0;
  std::unique_ptr<std::byte, Free> whole_;
  const char* why_ = "";
  Result<void> failure_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_LMDB_CHECK_PAGE_FILE_H_
