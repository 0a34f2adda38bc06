#include "store/engine/database/commit_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "store/base/caught.h"
#include "store/base/try.h"
#include "store/engine/database/checked_line.h"
#include "store/engine/database/uuid.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kMarkMagic = "waybill-commits 1 ";
constexpr std::size_t kMarkUuidAt = kMarkMagic.size();
constexpr std::size_t kBootAt = kMarkUuidAt + 37;
constexpr std::size_t kOpenAt = kBootAt + 37;
constexpr std::size_t kBegunAt = kOpenAt + 5;
constexpr std::size_t kAcknowledgedAt = kBegunAt + 21;
constexpr std::size_t kSumAt = kAcknowledgedAt + 21;
constexpr std::size_t kMarkLineBytes = kSumAt + 17;
constexpr std::size_t kTimeAt = 160;
constexpr std::size_t kTimeBytes = 20 + 1 + 16;
constexpr std::size_t kSecondAt = 256;
constexpr std::size_t kSectorBytes = 512;
static_assert(kMarkLineBytes == 156 && kMarkLineBytes <= kTimeAt);
static_assert(kTimeAt + kTimeBytes <= kSecondAt && kSecondAt + kSecondAt <= kSectorBytes);

// How long an acknowledgement may stay unflushed, less what a flush takes.
constexpr std::chrono::milliseconds kFlushWithin{150};

std::string SectorOf(const MarkedCommits& commits) {
  std::string line(kMarkMagic);
  line += EncodeUuid(commits.uuid) + " " + EncodeUuid(commits.boot_id);
  line += (commits.open ? " open " : " shut ") + In20Digits(commits.begun) + " " +
          In20Digits(commits.acknowledged) + " ";
  line += SumOf(line) + "\n";
  std::string time = In20Digits(static_cast<std::uint64_t>(commits.written));
  time += " " + SumOf(line + time);
  std::string sector(kSectorBytes, '\0');
  for (const std::size_t at : {std::size_t{0}, kSecondAt}) {
    sector.replace(at, line.size(), line);
    if (commits.written > 0) sector.replace(at + kTimeAt, time.size(), time);
  }
  return sector;
}

std::optional<MarkedCommits> ParseLine(std::string_view line) {
  if (!line.starts_with(kMarkMagic)) return std::nullopt;
  if (line.substr(kSumAt) != SumOf(line.substr(0, kSumAt)) + "\n") return std::nullopt;
  MarkedCommits commits;
  const std::string_view open = line.substr(kOpenAt, 4);
  commits.open = open == "open";
  const bool is_sound = (commits.open || open == "shut") &&
                        DecodeUuid(line.substr(kMarkUuidAt, 36), commits.uuid) &&
                        DecodeUuid(line.substr(kBootAt, 36), commits.boot_id) &&
                        ReadDigits(line.substr(kBegunAt, 20), commits.begun) &&
                        ReadDigits(line.substr(kAcknowledgedAt, 20), commits.acknowledged);
  return is_sound ? std::optional(commits) : std::nullopt;
}

std::optional<MarkedCommits> ParseHalf(std::string_view half) {
  const std::string_view line = half.substr(0, kMarkLineBytes);
  auto commits = ParseLine(line);
  if (!commits) return std::nullopt;
  const std::string_view digits = half.substr(kTimeAt, 20);
  std::uint64_t written = 0;
  const bool is_known =
      half.substr(kTimeAt + 21, 16) == SumOf(std::string(line) + std::string(digits)) &&
      ReadDigits(digits, written);
  if (is_known) commits->written = static_cast<std::int64_t>(written);
  return commits;
}

// The first line was written first, so it is never behind the second.
std::optional<MarkedCommits> ParseSector(std::string_view sector) {
  if (sector.size() != kSectorBytes) return std::nullopt;
  auto first = ParseHalf(sector.substr(0, kSecondAt));
  return first ? first : ParseHalf(sector.substr(kSecondAt));
}

}  // namespace

std::filesystem::path CommitMarkIn(const std::filesystem::path& directory) {
  return directory / "commit.mark";
}

Result<CommitMarkReading> ReadCommitMark(const std::filesystem::path& directory) {
  CommitMarkReading reading;
  const auto content = ReadWholeFile(CommitMarkIn(directory), kSectorBytes);
  if (content) {
    reading.commits = ParseSector(*content);
  } else if (content.error().code == ErrorCode::kNotFound) {
    return reading;
  } else if (content.error().code != ErrorCode::kLimitExceeded) {
    return content.error();
  }
  reading.exists = true;
  return reading;
}

Result<void> WriteCommitMark(const std::filesystem::path& directory, const MarkedCommits& commits) {
  const std::filesystem::path path = CommitMarkIn(directory);
  auto file = TRY(OpenFile(path, O_RDWR | O_CREAT));
  if (ftruncate(file.get(), kSectorBytes) != 0) return SystemError(errno, "write", path);
  if (auto r = PWriteAll(file, SectorOf(commits), 0, path); !r) return r;
  if (auto r = SyncFile(file, path); !r) return r;
  return SyncDirectory(directory);
}

CommitMark::CommitMark(const std::filesystem::path& directory,
                       const std::array<std::uint8_t, 16>& uuid,
                       const std::array<std::uint8_t, 16>& boot_id, bool allows_one_flush,
                       BootClock boot_clock)
    : directory_(directory),
      allows_one_flush_(allows_one_flush),
      boot_clock_(std::move(boot_clock)) {
  commits_.uuid = uuid;
  commits_.boot_id = boot_id;
}

CommitMark::~CommitMark() {
  StopFlushing();
  // What was acknowledged last: nothing else flushes it any more. Best effort.
  if (file_.valid() && commits_.open) static_cast<void>(!fdatasync(file_.get()));
}

Result<void> CommitMark::Open(std::uint64_t sequence, std::uint64_t before) {
  // Before the disk says "open": without the thread, acknowledgements might stay unflushed.
  if (!flusher_.joinable()) flusher_ = std::thread([this] { FlushNowAndThen(); });
  const std::filesystem::path path = CommitMarkIn(directory_);
  auto file = TRY(OpenFile(path, O_RDWR | O_CREAT));
  if (ftruncate(file.get(), kSectorBytes) != 0) return SystemError(errno, "write", path);
  commits_.open = allows_one_flush_;
  commits_.begun = allows_one_flush_ ? sequence : before;
  commits_.acknowledged = before;
  if (boot_clock_) commits_.written = boot_clock_().nanoseconds;
  if (auto r = PWriteAll(file, SectorOf(commits_), 0, path); !r) return r;
  if (auto r = SyncFile(file, path); !r) return r;
  if (auto r = SyncDirectory(directory_); !r) return r;
  file_ = std::move(file);
  return {};
}

Result<void> CommitMark::Write() {
  if (boot_clock_) commits_.written = boot_clock_().nanoseconds;
  return PWriteAll(file_, SectorOf(commits_), 0, CommitMarkIn(directory_));
}

// It would fall behind ever more on the disk, and damage would pass for a commit cut short.
void CommitMark::Lose() noexcept {
  lost_ = true;
  try {
    static_cast<void>(RemoveFile(CommitMarkIn(directory_)));  // best effort, both
    static_cast<void>(SyncDirectory(directory_));
  } catch (...) {
    return;
  }
}

Result<void> CommitMark::Begin(std::uint64_t sequence, std::uint64_t before) {
  Result<void> begun;
  try {
    if (flush_failed_) {
      begun = SystemError(EIO, "sync", CommitMarkIn(directory_));
    } else if (!file_.valid()) {
      begun = Open(sequence, before);
    } else if (allows_one_flush_) {
      commits_.begun = sequence;
      commits_.acknowledged = before;
      begun = Write();
    }
  } catch (...) {
    begun = Caught();
  }
  if (!begun) Lose();
  return begun;
}

void CommitMark::Acknowledge(std::uint64_t sequence) noexcept {
  if (!file_.valid() || lost_) return;
  commits_.acknowledged = sequence;
  if (!allows_one_flush_) commits_.begun = sequence;
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
  if (!file_.valid() || lost_ || commits_.begun != commits_.acknowledged) return {};
  commits_.open = false;
  if (auto r = Write(); !r) return r;
  return SyncFile(file_, CommitMarkIn(directory_));
}

void CommitMark::FlushNowAndThen() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || unflushed_; });
    // Commits that follow share the flush.
    if (wake_.wait_for(lock, kFlushWithin, [this] { return stop_; })) return;
    unflushed_ = false;
    lock.unlock();
    if (fdatasync(file_.get()) != 0) flush_failed_ = true;  // the next Begin loses the mark
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
