#include "store/disk/commit_mark.h"

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
  flusher_ = {};
  // What was acknowledged last: nothing else flushes it any more. Best effort.
  if (file_ && line_.open) static_cast<void>(!fdatasync(file_->file().get()));
}

Result<void> CommitMark::Write() {
  if (boot_clock_) line_.written = boot_clock_().nanoseconds;
  if (file_) return file_->Write(line_);
  // Before the disk says "open": without the thread, acknowledgements might stay unflushed.
  flusher_ = std::jthread([this](const std::stop_token& stop) { FlushNowAndThen(stop); });
  file_ = TRY(WriteCommitMark(path_.parent_path(), line_));
  return {};
}

// It would fall behind ever more on the disk, and damage would pass for a commit cut short.
void CommitMark::Lose() noexcept {
  lost_ = true;
  // Best effort, both.
  static_cast<void>(Guarded([&] { return RemoveFile(path_); }));
  static_cast<void>(Guarded([&] { return SyncDirectory(path_.parent_path()); }));
}

Result<void> CommitMark::Begin(std::uint64_t sequence, std::uint64_t before) {
  auto begun = Guarded([&]() -> Result<void> {
    if (flush_failed_) return SystemError(EIO, "sync", path_);
    under_way_ = true;
    if (file_) return {};
    line_.open = allows_one_flush_;
    line_.begun = allows_one_flush_ ? sequence : before;
    line_.acknowledged = before;
    return Write();
  });
  if (!begun) Lose();
  return begun;
}

void CommitMark::Acknowledge(std::uint64_t sequence) noexcept {
  if (!file_ || lost_) return;
  under_way_ = false;
  line_.acknowledged = sequence;
  line_.begun = allows_one_flush_ ? sequence + 1 : sequence;
  if (!Guarded([&] { return Write(); })) return Lose();
  const std::lock_guard lock(mutex_);
  if (!unflushed_) wake_.notify_one();
  unflushed_ = true;
}

Result<void> CommitMark::Shut() {
  flusher_ = {};
  if (!file_ || lost_ || under_way_) return {};
  line_.open = false;
  line_.begun = line_.acknowledged;
  if (auto r = Write(); !r) return r;
  return file_->Sync();
}

void CommitMark::FlushNowAndThen(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return unflushed_; })) {
    // Commits that follow share the flush.
    wake_.wait_for(lock, stop, kFlushWithin, [] { return false; });
    if (stop.stop_requested()) return;
    unflushed_ = false;
    lock.unlock();
    if (fdatasync(file_->file().get()) != 0) flush_failed_ = true;  // the next Begin loses the mark
    lock.lock();
  }
}

}  // namespace waybill::internal
