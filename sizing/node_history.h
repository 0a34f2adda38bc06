// What a trace (store/base/trace.h) tells of a node, counted in one pass.

#ifndef WAYBILL_SIZING_NODE_HISTORY_H_
#define WAYBILL_SIZING_NODE_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sizing/requests.h"
#include "store/base/trace.h"
#include "waybill/result.h"

namespace waybill::sizing {

// Bounds of what is kept of one trace. A clock that was wrong for a moment looks like centuries.
struct HistoryLimits {
  std::size_t bytes = std::size_t{1} << 30;  // of memory, about
  double days = 3660;
};

// From its first to its last use in the trace.
struct Lifetime {
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
};

// A repository: an image with all its versions.
struct SeenApp {
  std::uint64_t uses = 0;
  std::uint32_t refs = 0;
  std::uint32_t tenants = 0;  // namespaces that use it with a credential: at once, at most
  bool is_public = false;     // pulled, or open, without credentials
  bool is_private = false;    // pulled with some
  bool is_preloaded = false;  // open as one that came with the node
};

struct SeenCredential {
  std::uint32_t number = 0;
  Lifetime used = {};
};

struct SeenTenant {
  Lifetime alive = {};
  std::vector<SeenCredential> credentials = {};
  bool shares = false;  // a credential with another namespace
};

// What containerd unpacks of each byte that it lists: it lists what it pulled, compressed. Of
// docker.io/library/nginx it lists 70.5 MB where CRI-O, which lists what it unpacked, has 191 MB
// (containerd#9261, kubernetes#120698).
inline constexpr double kContainerdUnpacked = 2.7;

struct NodeHistory {
  std::string source = {};
  std::string node = {};  // "": the trace does not name it
  std::uint64_t events = 0;
  Lifetime span = {};
  bool has_credentials = false;  // without, nobody knows who used what with which
  // A pull without credentials took none. A cluster's events tell none of any pull.
  bool pulls_tell_credentials = true;

  std::uint64_t uses = 0;
  std::uint64_t answered = 0;  // uses of which the answer is known
  std::uint64_t must_pull = 0;
  std::uint64_t must_prove = 0;                       // of these, those whose image was on the node
  std::map<std::string, std::uint64_t> reasons = {};  // of these; "": unknown; "other"
  std::uint64_t pulls = 0;
  std::uint64_t failed_pulls = 0;
  std::uint64_t lists = 0;
  std::uint64_t collections = 0;  // of these, after images were removed
  std::uint64_t starts = 0;
  // Uses that wrote a credential to the record: another namespace's, or a rotated one.
  std::uint64_t write_backs = 0;

  // By image, the uses; if there are none, the pulls.
  Requests requests = {};
  std::uint64_t images_without_bytes = 0;  // they count as the median of the others
  // Whose sizes they are on the disk, and how that is known.
  std::string unpacked_as = {};
  bool has_bytes() const { return images_without_bytes < requests.bytes.size(); }
  std::uint64_t images_at_once = 0;  // at most, as far as the trace knows
  std::uint64_t records_at_once = 0;
  std::vector<std::uint32_t> secrets = {};  // of each record

  std::vector<SeenApp> apps = {};
  std::vector<SeenTenant> tenants = {};

  double days() const;
  std::string SpanText() const;  // "7.0 days", "12 minutes"
  // 0 where the trace spans no time.
  double PerDay(std::uint64_t count) const;
};

// How many of these are alive at once, at most.
std::uint64_t MostAtOnce(const std::vector<Lifetime>& lifetimes);

// kLimitExceeded: beyond `limits`. Errors of the reader name file and line.
Result<NodeHistory> ReadHistory(TraceReader& reader, const HistoryLimits& limits = {});

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_NODE_HISTORY_H_
