// What the parts of a guard share, in one of its lives: its options, its store, what it found out
// at its start, the two folders of image_manager/, what it counts, and whom it tells.

#ifndef WAYBILL_GUARD_LIFE_H_
#define WAYBILL_GUARD_LIFE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "guard/record_files.h"
#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::guard {

// A way in which this kubelet would have opened a private image, or did for a moment.
enum class HoleKind : std::uint8_t {
  kRecordLost,       // before the kubelet started: a record was gone
  kRecordDamaged,    // unreadable, or about another ref than its name says
  kRecordStale,      // older than the store's, or with credentials that do not count any more
  kRecordRemoved,    // while it runs: removed, although the runtime still has the image
  kIntentDropped,    // removed by another pull's failure, or by a restart of the kubelet
  kIntentLost,       // before the kubelet started: gone or damaged, and the pull may still go on
  kUnrecordedImage,  // an image appeared that nobody recorded, and that an open pull may have
                     // brought
};
inline constexpr std::size_t kHoleKinds = 7;
// "record-lost", …
std::string_view HoleName(HoleKind kind);

struct Hole {
  HoleKind kind = HoleKind::kRecordLost;
  std::string image;  // a name or a ref
};

// What a check of the node found; which there are, is the command's business.
struct CheckResult {
  std::string check = {};  // its name, which stays
  std::string verdict = {};
  std::string seen = {};
  std::string next = {};  // what to do; empty: nothing
  bool failed = false;
  bool verifies_nothing = false;  // so the kubelet verifies no image at all

  friend bool operator==(const CheckResult&, const CheckResult&) = default;
};

struct GuardStatus {
  Timestamp since = {};
  bool kubelet_ran_before = false;  // the kubelet ran when the guard started
  bool gap = false;                 // the time before this start was a gap
  // Why it can't write what a kubelet must find; empty: it can.
  std::string cannot_write = {};
  // Why what the guard writes protects nothing. Empty: nothing shows that.
  std::string not_protected = {};
  std::uint64_t images = 0;    // on the last list
  std::uint64_t presumed = 0;  // ledger entries that are presumed
  std::uint64_t events = 0;
  std::uint64_t comparisons = 0;
  std::optional<Timestamp> last_comparison = {};
  std::optional<Timestamp> last_list = {};
  std::string runtime_error = {};  // why the last list failed; empty: it did not
  std::uint64_t files_written = 0;
  std::uint64_t files_removed = 0;
  std::uint64_t left_alone = 0;  // files in a later kubelet's format
  std::uint64_t files_kept = 0;  // copies of what was taken away (kept_files.h)
  // How many records the first list had no image for, and the first refs of these.
  std::uint64_t records_unlisted = 0;
  std::vector<std::string> unlisted = {};
  // The store's, before the files were put right last; 0: they never were, by a list.
  std::uint64_t judged_commit = 0;
  // Images whose files changed under a kubelet that may have read them before, and then goes by the
  // old ones until it starts again.
  std::set<std::string> waiting = {};
  std::uint64_t holes[kHoleKinds] = {};
  std::vector<CheckResult> checks = {};

  // Why what the guard writes, or can't write, protects nothing.
  const std::string& NotProtected() const {
    return not_protected.empty() ? cannot_write : not_protected;
  }
  // Why the kubelet verifies nothing, whatever the guard does. Empty: nothing shows that.
  std::string VerifiesNothing() const;

  friend bool operator==(const GuardStatus&, const GuardStatus&) = default;
};

// As syslog numbers them.
enum class LogLevel : std::uint8_t { kError = 3, kWarning, kNotice, kInfo };

// One life of a kubelet.
struct RunningKubelet {
  std::string life = {};                   // tells it from every other; not empty
  std::optional<std::int64_t> began = {};  // in nanoseconds since 1970, if that is known
};

struct GuardOptions {
  std::filesystem::path kubelet_directory;
  // The store's directory, and how it is opened. The guard sets what it needs: rules, the kubelet's
  // directories, gaps. Witness::Remembered: waybill-guard/witness in image_manager.
  NodeStoreOptions store = {.witness = Witness::Remembered()};
  // The runtime's complete list of images. Missing: the guard goes by records and ledger alone.
  std::function<Result<std::vector<ListedImage>>()> list_images;
  // Who checks the credentials of a pull of an image of that name at present. Missing: nobody
  // knows.
  std::function<VerifiedBy(const std::string&)> who_checks;
  // Whether to ask once more, after a start's list failed or was empty though it can't be. Missing:
  // no.
  std::function<bool(const Error&)> try_again;
  // Whether a start without a list of images is an error.
  bool needs_runtime = true;
  std::string version = {};  // of the command, for the status
  // Whether the kubelet's policy opens preloaded images to all pods (NeverVerifyPreloadedImages,
  // the default). Otherwise their records stay, since such a kubelet verifies them by these.
  bool preloaded_is_open = true;
  // Whether it verifies every image that has a record: not NeverVerify, and no allowlist.
  bool verifies_recorded = true;
  // Whether the marker is put (kMarkerName).
  bool live = true;
  // The kubelet that runs on this directory, from its exec on. Missing or nullopt: none does.
  std::function<std::optional<RunningKubelet>()> kubelet;
  // Whether the node had no credential for images of that name since before this guard began.
  // Missing: nobody knows.
  std::function<bool(const std::string& image_name)> node_had_none;
  // Whether the guard shall end as soon as it can: asked between two rounds of a start, which fails
  // then. Missing: no.
  std::function<bool()> hurry;
  std::function<void(LogLevel, const std::string&)> log;
  std::function<void(const Hole&)> on_hole;
  SyncObserver synced;
};

inline constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

// A metric. Empty: nothing shows that.
MetricFamily NotProtected(const std::string& why);

struct Life {
  explicit Life(GuardOptions from);

  // Finds the folders where they are now, through symlinks, and makes image_manager if it is
  // missing. kUnsafePath: others decide what a kubelet finds there.
  Result<void> FindFolders();
  // The guard's own folder.
  std::filesystem::path own() const { return image_manager / kOwnFolder; }
  // Symlinks that lead to the folders.
  const std::vector<std::filesystem::path>& links() const { return links_; }

  RecordFiles& FilesOf(KubeletFolder folder) {
    return folder == KubeletFolder::kPulled ? pulled : pulling;
  }
  const RecordFiles& FilesOf(KubeletFolder folder) const {
    return folder == KubeletFolder::kPulled ? pulled : pulling;
  }
  bool Hurries() const { return options.hurry && options.hurry(); }
  // Nanoseconds since the boot.
  std::int64_t Now() const { return options.store.boot_clock().nanoseconds; }

  void Log(LogLevel level, const std::string& text) const;
  void Found(HoleKind kind, const std::string& image, const std::string& text);
  // What happened can't be recorded: an unrecorded period.
  Result<void> Missed(const std::string& what);
  // A file in a later kubelet's format.
  void LeaveAlone(const std::filesystem::path& path);

  Result<std::string> StatusJson() const;
  // waybill_guard_…, in Prometheus' text format.
  std::string MetricsText() const;

  GuardOptions options;
  GuardStatus status;
  std::filesystem::path image_manager;
  RecordFiles pulled;
  RecordFiles pulling;
  std::unique_ptr<NodeStore> store;

  bool starting = true;  // the first list was not taken yet
  // Something happened that only a list can settle.
  bool wants_list = false;
  // For what is told alone: images whose records were put back, until a list tells whether they are
  // gone, and intents whose pulls ended just now.
  std::set<std::string> put_back;
  std::set<std::string> ended_now;

 private:
  std::vector<std::filesystem::path> links_;  // that lead to the folders
  std::set<std::string> left_alone_;          // said to be
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_LIFE_H_
