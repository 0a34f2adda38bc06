// Tells from containerd's leases and its process when a pull that ended, whatever was seen of its
// end, can bring nothing any more. Nothing here asks anybody.
//
// A pull through CRI holds a lease until its image is recorded, even if it is cancelled. Its end is
// seen earlier: the image may come seconds later, as long as the lease exists.
//
// So, after an end:
//   1. PullEnds says Quiet.
//   2. Then list containerd's images.
//   3. Then list CRI's, until NotShown names none that the pull could have given.
//   4. Judge that list with the pull still open, then drop the pull.

#ifndef WAYBILL_RUNTIME_CRI_PULL_ENDS_H_
#define WAYBILL_RUNTIME_CRI_PULL_ENDS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "waybill/values.h"

namespace waybill::cri {

// Which process serves a socket.
struct ServerProcess {
  std::int64_t pid = 0;
  std::int64_t started = 0;  // CLOCK_BOOTTIME in nanoseconds, up to a clock tick too early

  friend bool operator==(const ServerProcess&, const ServerProcess&) = default;
};

// What containerd said between two moments; CLOCK_BOOTTIME in nanoseconds.
struct PullLook {
  std::int64_t began = 0;  // before it was asked
  std::int64_t ended = 0;  // after its last answer
  // It must be the same before and after the leases were listed; otherwise they may not be its own.
  ServerProcess process = {};
  std::vector<std::string> leases = {};  // IDs, in any order
};

// Needs no wall clock: a lease's time is known by the looks that had it or not. In doubt the answer
// is no: after an error, while a lease stays, or if nothing was seen yet. Not thread-safe.
class PullEnds {
 public:
  // A lease that appears later than this after an end does not belong to the pull that ended; and
  // what a pull does after its lease is gone (further names of the same image) takes no longer than
  // this.
  static constexpr std::int64_t kMargin = 10'000'000'000;
  // Looks that are remembered. An end before the oldest one is judged as if it were at that one.
  static constexpr std::size_t kMaxLooks = 1024;

  // Looks come in their order: one that began before the last one ended counts as Failed.
  void Saw(PullLook look);
  // Nobody knows what happened meanwhile.
  void Failed();

  // Says as of the last look whether a list of containerd's images that is asked for from now on
  // has everything that a pull can bring which ended no later than `ended`.
  bool Quiet(std::int64_t ended) const;

 private:
  struct Seen {
    std::optional<std::int64_t> absent;  // a look that began then did not have it yet
    ServerProcess process = {};          // which served then
    std::optional<std::int64_t> gone;    // the end of the first look that no longer had it
  };
  struct Moments {
    std::int64_t began = 0;
    std::int64_t ended = 0;
  };

  bool known_ = false;  // the last look counts
  ServerProcess process_;
  std::optional<std::int64_t> last_began_;  // of the last look, also before an error
  std::int64_t last_ended_ = 0;
  std::deque<Moments> looks_;  // since the last error
  std::map<std::string, Seen> leases_;
};

// One of containerd's image records.
struct ContainerdImage {
  std::string name = {};     // repo:tag, repo@digest, or an image ID
  std::string target = {};   // the digest of a manifest or an index
  std::int64_t created = 0;  // Unix time in nanoseconds, by a clock that may be set
  std::int64_t updated = 0;
  std::map<std::string, std::string> labels = {};

  friend bool operator==(const ContainerdImage&, const ContainerdImage&) = default;
};

// The names in containerd's list that CRI's list does not show with the same target. Among them are
// names that CRI never shows, since it can't read the record or spells it otherwise.
std::vector<std::string> NotShown(const std::vector<ContainerdImage>& containerd,
                                  const std::vector<ListedImage>& cri);

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_PULL_ENDS_H_
