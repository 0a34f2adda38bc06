#include "store/engine/database/commit_mark.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "store/base/caught.h"
#include "store/base/try.h"

namespace waybill::internal {

namespace {

// How long an acknowledgement may stay unflushed, less what a flush takes.
constexpr std::chrono::milliseconds kFlushWithin{150};

}  // namespace

std::filesystem::path CommitMarkIn(const std::filesystem::path& directory) {
  return directory / "commit.mark";
}

CommitMark::CommitMark(const std::filesystem::path& directory, MarkLine line, bool allows_one_flush,
                       BootClock boot_clock)
    : path_(CommitMarkIn(directory)),
      allows_one_flush_(allows_one_flush),
      boot_clock_(std::move(boot_clock)),
      line_(std::move(line)) {}

CommitMark::~CommitMark() {
  StopFlushing();
  // What was acknowledged last: nothing else flushes it any more. Best effort.
  if (file_ && line_.open) static_cast<void>(!fdatasync(file_->file().get()));
}

Result<void> CommitMark::Open() {
  // Before the disk says "open": without the thread, acknowledgements might stay unflushed.
  if (!flusher_.joinable()) flusher_ = std::thread([this] { FlushNowAndThen(); });
  if (boot_clock_) line_.written = boot_clock_().nanoseconds;
  file_ = TRY(MarkFile::WriteOver(path_, line_));
  return {};
}

Result<void> CommitMark::Write() {
  if (boot_clock_) line_.written = boot_clock_().nanoseconds;
  return file_->Write(line_);
}

// It would fall behind ever more on the disk, and damage would pass for a commit cut short.
void CommitMark::Lose() noexcept {
  lost_ = true;
  try {
    static_cast<void>(RemoveFile(path_));  // best effort, both
    static_cast<void>(SyncDirectory(path_.parent_path()));
  } catch (...) {
    return;
  }
}

Result<void> CommitMark::Begin(std::uint64_t sequence, std::uint64_t before) {
  if (!file_ || allows_one_flush_) {
    line_.open = allows_one_flush_;
    line_.begun = allows_one_flush_ ? sequence : before;
    line_.acknowledged = before;
  }
  Result<void> begun;
  try {
    if (flush_failed_) {
      begun = SystemError(EIO, "sync", path_);
    } else if (!file_) {
      begun = Open();
    } else if (allows_one_flush_) {
      begun = Write();
    }
  } catch (...) {
    begun = Caught();
  }
  if (!begun) Lose();
  return begun;
}

void CommitMark::Acknowledge(std::uint64_t sequence) noexcept {
  if (!file_ || lost_) return;
  line_.acknowledged = sequence;
  if (!allows_one_flush_) line_.begun = sequence;
  Result<void> written;
  try {
    written = Write();
  } catch (...) {
    written = Caught();
  }
  if (!written) {
    if (!allows_one_flush_) Lose();
    return;
  }
  const std::lock_guard lock(mutex_);
  if (!unflushed_) wake_.notify_one();
  unflushed_ = true;
}

Result<void> CommitMark::Shut() {
  StopFlushing();
  if (!file_ || lost_ || line_.begun != line_.acknowledged) return {};
  line_.open = false;
  if (auto r = Write(); !r) return r;
  return file_->Sync();
}

void CommitMark::FlushNowAndThen() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || unflushed_; });
    // Commits that follow share the flush.
    if (wake_.wait_for(lock, kFlushWithin, [this] { return stop_; })) return;
    unflushed_ = false;
    lock.unlock();
    if (fdatasync(file_->file().get()) != 0) flush_failed_ = true;  // the next Begin loses the mark
    lock.lock();
  }
}

void CommitMark::StopFlushing() {
  if (!flusher_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  flusher_.join();
}

}  // namespace waybill::internal
