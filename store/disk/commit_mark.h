// The line inside the store's directory (mark_line.h) says which commit may have begun, and which
// one is known to be on the disk. With it, a commit needs one flush instead of LMDB's two
// (committer.h has the protocol of a commit, opening/unfinished_commit.h that of an opening).
//
// `acknowledged` is written after a commit's flush, and with it that the next one has begun, since
// that may be at any time. Neither is synced then, so after a power cut both may be behind, by 200
// ms at most if the disk keeps up. `acknowledged` is never ahead. An opening that takes a commit
// back says first, synced, that it was begun. "open" is synced before the first commit of an owner,
// "shut" at its closing and once an opening has settled what a crash left: then nothing follows
// that the mark does not tell. Where commits flush twice it stays shut, and says only which one was
// acknowledged. A mark that could not be written or synced is removed, and this owner makes none
// again: without one, no commit is taken back.
//
// It may be behind: commits of an opening and of a migration leave it alone.

#ifndef WAYBILL_STORE_DISK_COMMIT_MARK_H_
#define WAYBILL_STORE_DISK_COMMIT_MARK_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "store/disk/mark_line.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

std::filesystem::path CommitMarkIn(const std::filesystem::path& directory);
inline Result<MarkReading> ReadCommitMark(const std::filesystem::path& directory) {
  return ReadMark(CommitMarkIn(directory), Lines::kTwo);
}
inline Result<MarkFile> WriteCommitMark(const std::filesystem::path& directory,
                                        const MarkLine& line) {
  return MarkFile::WriteOver(CommitMarkIn(directory), line, Lines::kTwo);
}

// The owner's. Begin, Acknowledge and Shut are called by one thread at a time.
class CommitMark {
 public:
  // Touches no file: the first Begin makes it. `line`: the store, the boot, and the directory that
  // the mark names.
  CommitMark(const std::filesystem::path& directory, MarkLine line, bool allows_one_flush = true,
             BootClock boot_clock = {});
  ~CommitMark();
  CommitMark(const CommitMark&) = delete;
  CommitMark& operator=(const CommitMark&) = delete;

  // Before the commit writes anything; `before` is the commit that it follows. The first call
  // writes the file, and syncs it and its directory. On an error the mark is lost, and the commit
  // must flush twice.
  Result<void> Begin(std::uint64_t sequence, std::uint64_t before);
  // So must all later ones, without a Begin.
  bool is_lost() const { return lost_; }
  bool allows_one_flush() const { return allows_one_flush_ && !lost_; }
  // After the commit's flush. On an error the mark is lost.
  void Acknowledge(std::uint64_t sequence) noexcept;
  // At closing, unless a commit is under way, or may not be on the disk. Nothing if none was begun.
  Result<void> Shut();

 private:
  Result<void> Write();
  void Lose() noexcept;
  void FlushNowAndThen(const std::stop_token& stop);

  const std::filesystem::path path_;
  const bool allows_one_flush_;
  const BootClock boot_clock_;
  MarkLine line_;
  std::optional<MarkFile> file_;
  bool under_way_ = false;  // a commit was begun, and not acknowledged
  bool lost_ = false;

  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool unflushed_ = false;  // guarded by mutex_
  std::atomic<bool> flush_failed_{false};
  std::jthread flusher_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_COMMIT_MARK_H_
