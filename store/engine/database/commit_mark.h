// commit.mark: which commit was begun last, and which one is known to be on the disk. With it, a
// commit needs one flush instead of LMDB's two (committer.h has the protocol of a commit,
// recovery/unfinished_commit.h that of an opening). And a store that is older than its mark is an
// older copy: each owner keeps one. One sector, written in place:
//
//   offset  size
//        0   156  the line
//      160    37  when it was written: "<CLOCK_BOOTTIME, 20 digits> <XXH3-64 of the line and the
//                 digits, 16 hex>"; older waybills neither write nor read it
//      256   156  the line again: a write that was cut short spoils one of the two
//      416    37  the time again
//
// What lies between is zeros.
//
//   "waybill-commits 1 <store's UUID> <boot ID> <open|shut> <begun, 20 digits>
//    <acknowledged, 20 digits> <XXH3-64 of what precedes, 16 hex>\n"     (one line, single spaces)
//
// `begun` is written before a commit writes its first page, `acknowledged` after its flush. Neither
// is synced then, so after a power cut both may be behind, by 200 ms at most if the disk keeps up.
// `acknowledged` is never ahead. An opening that takes a commit back says first, synced, that it
// was begun. "open" is synced before the first commit of an owner, "shut" at its closing
// and once an opening has settled what a crash left: then nothing follows that the mark does not
// tell. Where commits flush twice it stays shut, and says only which one was acknowledged. A mark
// that could not be written or synced is removed, and this owner makes none again: without one, no
// commit is taken back.
//
// It may be behind: commits of an opening, of a migration, and of older waybills leave it alone.

#ifndef WAYBILL_STORE_ENGINE_DATABASE_COMMIT_MARK_H_
#define WAYBILL_STORE_ENGINE_DATABASE_COMMIT_MARK_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "store/base/files.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

struct MarkedCommits {
  std::array<std::uint8_t, 16> uuid{};     // the store's
  std::array<std::uint8_t, 16> boot_id{};  // in which it was written
  bool open = false;
  std::uint64_t begun = 0;  // commit sequences
  std::uint64_t acknowledged = 0;
  std::int64_t written = 0;  // CLOCK_BOOTTIME, in nanoseconds; 0: not known
  friend bool operator==(const MarkedCommits&, const MarkedCommits&) = default;
};

struct CommitMarkReading {
  bool exists = false;
  std::optional<MarkedCommits> commits;  // nullopt although `exists`: not a valid mark
};

std::filesystem::path CommitMarkIn(const std::filesystem::path& directory);

// The system's errors are errors; any content is a reading.
Result<CommitMarkReading> ReadCommitMark(const std::filesystem::path& directory);

// Replaces the mark, durably. After an error it is the old one, the new one, or not valid.
Result<void> WriteCommitMark(const std::filesystem::path& directory, const MarkedCommits& commits);

// The owner's. Begin, Acknowledge and Shut are called by one thread at a time.
class CommitMark {
 public:
  // Touches no file: the first Begin makes it.
  CommitMark(const std::filesystem::path& directory, const std::array<std::uint8_t, 16>& uuid,
             const std::array<std::uint8_t, 16>& boot_id, bool allows_one_flush = true,
             BootClock boot_clock = {});
  ~CommitMark();
  CommitMark(const CommitMark&) = delete;
  CommitMark& operator=(const CommitMark&) = delete;

  // Before the commit writes anything; `before` is the commit that it follows. The first call syncs
  // the file and its directory. On an error the mark is lost, and the commit must flush twice.
  Result<void> Begin(std::uint64_t sequence, std::uint64_t before);
  // So must all later ones, without a Begin.
  bool is_lost() const { return lost_; }
  bool allows_one_flush() const { return allows_one_flush_ && !lost_; }
  // After the commit's flush. An error leaves the mark behind, which is allowed; if commits flush
  // twice, the mark is lost.
  void Acknowledge(std::uint64_t sequence) noexcept;
  // At closing, if all that was begun is on the disk. Does nothing if nothing was begun.
  Result<void> Shut();

 private:
  Result<void> Open(std::uint64_t sequence, std::uint64_t before);
  Result<void> Write();
  void Lose() noexcept;
  void FlushNowAndThen();
  void StopFlushing();

  const std::filesystem::path directory_;
  const bool allows_one_flush_;
  const BootClock boot_clock_;
  MarkedCommits commits_;
  Fd file_;
  bool lost_ = false;

  std::thread flusher_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool unflushed_ = false;  // guarded by mutex_
  bool stop_ = false;       // guarded by mutex_
  std::atomic<bool> flush_failed_{false};
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_DATABASE_COMMIT_MARK_H_
