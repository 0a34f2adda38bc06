// A trace: what happened on a node, for whoever plans its capacity (`waybill advise --trace`). JSON
// lines; docs/trace.md is their format. The store's owner writes one (NodeStoreOptions::trace), and
// `waybill trace import` makes one of what others recorded.

#ifndef WAYBILL_STORE_BASE_TRACE_H_
#define WAYBILL_STORE_BASE_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/names.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

// Of the format; stands in the first line. Fields that a reader does not know it ignores; a new
// kind of event is a new version.
inline constexpr int kTraceVersion = 1;

// Bytes of one line, with its newline; credentials of one event; files of one trace.
inline constexpr std::size_t kMaxTraceLineBytes = std::size_t{64} << 10;

inline constexpr std::size_t kMaxTraceCredentials = 256;

inline constexpr std::size_t kMaxTraceFiles = 100;

// Digits of a pseudonym that stands for a credential.
inline constexpr std::size_t kTracePseudonymDigits = 16;

// Bytes of one image, 256 GiB: 60 million such images sum up within 64 bits.
inline constexpr std::uint64_t kMaxTraceImageSize = std::uint64_t{1} << 38;

// Bytes of a node's name.
inline constexpr std::size_t kMaxTraceNodeBytes = 253;

inline constexpr std::uint32_t kMaxTraceUnpackedPercent = 10'000;

struct TraceEvent {
  enum class Kind : std::uint8_t {
    kStart,  // the owner began, or a history begins
    kImage,  // an image is on the node, as listed
    kUse,    // a container of a pod wants the image
    kPullBegun,
    kPulled,  // the pull succeeded
    kPullFailed,
    kList,     // a complete list was used: its images are the events kImage before it, of which
               // only changes are written
    kRemoved,  // the image is gone from the node
  };
  Kind kind = Kind::kUse;
  std::int64_t time_ms = 0;          // since 1970, UTC
  std::string image = {};            // as the pod spells it; may be empty
  std::string ref = {};              // what the runtime calls it, if known
  std::string runtime_handler = {};  // "": the default one
  std::string pod_namespace = {};    // "": unknown
  // Pseudonyms: of the pod's credentials (kUse), of those that the pull proved (kPulled).
  std::vector<std::string> credentials = {};
  std::string reason = {};                   // kUse: why that answer (ReasonName)
  std::optional<bool> must_pull = {};        // kUse: the answer
  std::optional<std::uint64_t> bytes = {};   // of the image, at most kMaxTraceImageSize
  std::optional<std::int64_t> took_ms = {};  // kPulled, kPullFailed
  // kList: what its images take on the disk, unpacked, in percent of the bytes that it says. At
  // most kMaxTraceUnpackedPercent.
  std::optional<std::uint32_t> unpacked_percent = {};

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

constexpr auto NamesOf(TraceEvent::Kind) { return internal::OwnNames<TraceEvent::Kind>(); }
// "pullBegun".
std::string_view TraceKindName(TraceEvent::Kind kind);

// Milliseconds since 1970.
std::int64_t TraceTime(Timestamp time);

// The first line of a trace from `source`: owner, events, pods, crictl, generated;
// several are joined by "+". `node`: whose history it is; "", or too long: unknown.
std::string TraceHeaderLine(std::string_view source, std::string_view node = {});

// One JSON object and a newline. A size that no image has is left out, as if it were unknown.
std::string TraceLine(const TraceEvent& event);

// kInvalidArgument, or kLimitExceeded: which field is wrong. The line may end with its newline.
Result<TraceEvent> ParseTraceLine(std::string_view line);

// Reads a trace line by line. Its memory has a bound: one line.
class TraceReader {
 public:
  // The trace at `path` with the parts that were rotated (path.1, …), oldest first. "-" is standard
  // input. A part that is rotated meanwhile is neither lost nor read twice. kNotFound, kUnsafePath,
  // kIo, kInvalidArgument: not a trace, or of a later version.
  static Result<TraceReader> Open(const std::string& path);
  static Result<TraceReader> OfText(std::string text);

  // nullopt: that was all. Errors name file and line. A last line that was cut short is skipped.
  Result<std::optional<TraceEvent>> Next();

  std::string_view source() const;  // of the oldest part
  std::string_view node() const;    // of the same; "": unknown
  std::uint64_t events() const;     // that Next returned
  std::uint64_t cut_lines() const;  // that were skipped
  // "node.trace.1:17": of the last event.
  std::string where() const;

  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;
  ~TraceReader();

 private:
  struct Impl;
  explicit TraceReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_TRACE_H_
