// Writes an owner's trace (store/base/trace.h). What happens is noted in memory, under a mutex held
// for moments, and a thread of its own writes it: no caller waits for the disk, and none gets an
// error. What can't be written is dropped, and counted. The thread looks now and then, since waking
// it would cost a decision more than all else; only a buffer that fills up wakes it.
//
// Beside the trace lies FILE.salt, 32 random bytes that make pseudonyms of credentials, so that
// those of one trace stay the same over restarts. It is locked: a trace has one writer.

#ifndef WAYBILL_STORE_BASE_TRACE_WRITER_H_
#define WAYBILL_STORE_BASE_TRACE_WRITER_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "store/base/files.h"
#include "store/base/options.h"
#include "store/base/sha256.h"
#include "store/base/trace.h"
#include "waybill/values.h"

namespace waybill::internal {

class TraceWriter {
 public:
  // Of the decision path: what a decision was about. Nothing is copied before Add.
  struct Noted {
    TraceEvent::Kind kind = TraceEvent::Kind::kUse;
    ImageCopy copy = {};
    std::string_view pod_namespace = {};
    const PodCredentials* credentials = nullptr;
    std::string_view reason = {};  // of static storage
    std::optional<bool> must_pull = {};
    std::uint64_t bytes = 0;  // 0: unknown
    std::optional<std::int64_t> took_ms = {};
  };

  // Makes the file, or goes on with it. kInvalidArgument also if there is something else;
  // kOwned: another process writes it.
  static Result<std::unique_ptr<TraceWriter>> Open(const TraceOptions& options, Clock clock);
  ~TraceWriter();
  // Writes what was noted, and lets go of the file. What is added afterwards is dropped.
  void Stop() noexcept;
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // From any thread. Allocates nothing.
  void Add(const Noted& noted) noexcept { Add(noted, kBuffer); }
  // One event that could not be made is counted as dropped.
  void Drop() noexcept { dropped_.fetch_add(1, std::memory_order_relaxed); }
  // A complete list: notes what is new in it since the last one, and what is gone.
  void AddList(const std::vector<ListedImage>& images) noexcept;
  // A record that the caller wrote: each credential that it has and `before` had not is a use.
  void AddRecord(const ImagePulledRecord* before, const ImagePulledRecord& record) noexcept;

  std::uint64_t written() const { return written_.load(std::memory_order_relaxed); }
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kBuffer = std::size_t{256} << 10;
  // A list may have more images than fit a buffer, and is nothing that waits for nothing.
  static constexpr std::size_t kBufferOfLists = std::size_t{64} << 20;
  struct Listed {
    std::string image;
    std::string runtime_handler;
    std::uint64_t bytes = 0;
    friend bool operator==(const Listed&, const Listed&) = default;
  };

  TraceWriter(const TraceOptions& options, Clock clock);
  Result<void> OpenSalt();
  Result<void> OpenFile();
  Result<void> MendIfCut();
  Result<void> Empty();
  Result<void> BeginFile();
  Result<void> Rotate();
  // Whether the open file is still the one under its name.
  bool InPlace() const;
  void Add(const Noted& noted, std::size_t most) noexcept;
  void Run();
  void Write(std::string_view noted);
  Result<void> Append(std::string_view lines);
  std::string Pseudonym(std::string_view kind, std::string_view identity) const;
  TraceEvent Decode(std::string_view& noted) const;

  const TraceOptions options_;
  const Clock clock_;
  Sha256Digest salt_{};
  Fd salt_file_;  // locked
  Fd file_;
  std::uint64_t file_bytes_ = 0;
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> rotations_{0};

  std::mutex list_mutex_;
  std::map<std::string, Listed> listed_;   // by ref; guarded by list_mutex_, as are
  std::uint64_t listed_in_ = 0;            // rotations_ at the last list
  std::optional<std::int64_t> listed_at_;  // when the last list was written, in seconds

  std::mutex mutex_;
  std::condition_variable news_;
  std::string buffer_;       // guarded by mutex_, as are
  std::uint64_t noted_ = 0;  // events in it
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_TRACE_WRITER_H_
