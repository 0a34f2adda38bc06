// How far a store has come: a line of one form, in two places.
//
//   inside   commit.mark in the store's directory, where it may be lost or put back with the store
//   outside  the witness, elsewhere; by convention in the kubelet directory
//
//   "waybill-mark 1 <store's UUID> <boot ID> <open|shut> <begun> <acknowledged> <time> <device>
//    <inode> <XXH3-64 of the line without it, 16 hex> <the directory's path>\n"
//
// Single spaces, numbers of 20 digits. `begun` and `acknowledged` are commit sequences, the time is
// CLOCK_BOOTTIME, device and inode are the directory's in which the store lies. Written in place
// after each commit, and not synced: what changes of the first line lies in one sector. A change of
// the directory is synced.
//
// Inside the line stands twice, written by one call: the disk may take the page meanwhile, or
// somebody may copy the file, and then one of the two is whole.

#ifndef WAYBILL_STORE_DISK_MARK_LINE_H_
#define WAYBILL_STORE_DISK_MARK_LINE_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

struct MarkLine {
  std::array<std::uint8_t, 16> uuid{};     // the store's
  std::array<std::uint8_t, 16> boot_id{};  // in which it was written
  bool open = false;                       // commits may follow that it does not tell of
  std::uint64_t begun = 0;
  std::uint64_t acknowledged = 0;  // known to be on the disk
  std::int64_t written = 0;        // nanoseconds; 0: not known
  FileId directory_id;
  std::string directory;  // empty: not known
  friend bool operator==(const MarkLine&, const MarkLine&) = default;
};

// Of a store whose commits are on the disk up to `sequence`, and none follows. The boot and the
// directory are those of `named`.
MarkLine ShutAt(const std::array<std::uint8_t, 16>& uuid, std::uint64_t sequence,
                MarkLine named = {});

struct MarkReading {
  bool exists = false;
  // It is empty, or begins as a line does, also with zeros for the rest.
  bool is_unfinished = false;
  std::optional<MarkLine> line;  // nullopt although `exists`: not valid
};
// How often the line stands in the file: twice inside, once outside.
enum class Lines : std::uint8_t { kOne, kTwo };
// Of a name that leads to no regular file nothing is read. The system's errors are errors.
Result<MarkReading> ReadMark(const std::filesystem::path& path, Lines lines = Lines::kOne);

// The file in one of the two places.
class MarkFile {
 public:
  // In the place of what is there, through a file beside it: whatever happens, no half of a line is
  // under the name. Makes its directory, but not the parent's.
  static Result<MarkFile> Replace(const std::filesystem::path& path, const MarkLine& line);
  // The same in the file that is there, for which a full disk has room. After an error it has the
  // old lines, the new ones, or none.
  static Result<MarkFile> WriteOver(const std::filesystem::path& path, const MarkLine& line,
                                    Lines lines);

  // A line with the same directory. Not synced.
  Result<void> Write(const MarkLine& line) const;
  Result<void> Sync() const { return SyncFile(file_, path_); }
  const Fd& file() const { return file_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  MarkFile(std::filesystem::path path, Fd file, Lines lines)
      : path_(std::move(path)), file_(std::move(file)), lines_(lines) {}
  std::string ContentOf(const MarkLine& line) const;

  std::filesystem::path path_;
  Fd file_;
  Lines lines_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_MARK_LINE_H_
