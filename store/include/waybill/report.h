// What a store found, did and holds, in numbers and names.

#ifndef WAYBILL_REPORT_H_
#define WAYBILL_REPORT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/evidence.h"
#include "waybill/maintenance.h"
#include "waybill/metrics.h"
#include "waybill/runtime_handler.h"
#include "waybill/types.h"
#include "waybill/user_namespace.h"

namespace [[gnu::visibility("default")]] waybill {

// What importing a kubelet directory did. Files that have not changed since an earlier import count
// as `unchanged` only.
struct ImportReport {
  std::uint64_t files_seen = 0;
  std::uint64_t unchanged = 0;
  std::uint64_t records = 0;      // taken from pulled/
  std::uint64_t intents = 0;      // taken from pulling/
  std::uint64_t preloaded = 0;    // taken from observed-preloaded/
  std::uint64_t known_refs = 0;   // changed files of refs that the store knows already: not taken
  std::uint64_t quarantined = 0;  // quarantine entries made
  std::uint64_t skipped = 0;      // names that are not the kubelet's, and unfinished .tmp files
  bool interrupted = false;
  // The first file in pulled/ or pulling/ that a kubelet wrote since the last import; may be empty.
  std::string newly_written = {};
  std::vector<std::string> problems = {};  // one line for each unreadable file; the first 100
};

// What opening did (store/README.md, "Opening").
struct OpeningReport {
  bool created = false;                         // the store is new
  bool set_aside = false;                       // the database failed its check; see set_aside_path
  std::string set_aside_path = {};              // where the failed one is kept
  std::vector<std::string> removed_paths = {};  // set aside earlier, now deleted (kMaxKeptAside)
  std::uint64_t records_carried = 0;            // into the rebuilt store
  std::uint64_t records_without_credentials = 0;  // of those: must be verified again
  std::uint64_t intents_carried = 0;
  bool witness_made = false;      // the witness was missing, and a new one was made
  bool witness_in_store = false;  // it lies in the store's directory and would be lost with it
  std::vector<std::string> findings = {};  // what was wrong, one line each
  // Files and folders of the store that other users could read or write, and now can't: one line
  // each, with the old and the new mode.
  std::vector<std::string> mended = {};
  // Problems that change no answer, but that an operator should know: the file system does not
  // guarantee what the store needs.
  std::vector<std::string> warnings = {};
  bool distrustful = false;
  std::string distrust_reason = {};
  // What was done to a store of an older schema; nullopt: it had the newest.
  std::optional<MigrationReport> migration = {};
  // What a new list of runtime handlers changed; nullopt: no list was given.
  std::optional<RuntimesReport> runtimes = {};
  ImportReport import = {};
  IdMappingReport user_namespaces = {};
  // Pulls may be unrecorded (NodeStoreOptions::gap), and why the store assumes so.
  bool after_gap = false;
  std::string gap_reason = {};
  std::uint64_t gap_closed = 0;              // images that had neither record nor ledger entry
  std::vector<std::string> gap_images = {};  // their names, or refs; the first 1000
  std::uint64_t intents_found = 0;         // left by an earlier process; Rules::kClosed: open pulls
  std::uint64_t intents_replayed = 0;      // those whose image was on the node: a record closed it
  std::uint64_t intents_left = 0;          // still stored when opening ended
  std::vector<std::string> replayed = {};  // their image strings; the first 100
  bool replay_skipped = false;             // no list of images was given to replay against
  std::uint64_t readers_cleared = 0;       // slots of readers that died
  std::uint64_t records = 0;               // after opening
  std::uint64_t quarantine_entries = 0;
  std::uint64_t commit_sequence = 0;
  // Rules::kClosed: the store had a time more than a day ahead of the clock, and now follows the
  // clock again. Empty: it had not.
  std::string clock_was_ahead = {};
  // Records with a time in the future, which now have the time of this opening.
  std::uint64_t times_mended = 0;
  // Rules::kClosed: what judging images_on_node did. nullopt: there was no list.
  std::optional<ClassifyReport> observed = {};
  bool first_start = false;  // the list was judged as that of a first start
  // A crash had cut the last commit short, before anybody was told of it, and the commit was
  // undone. False if the database failed its check even then (set_aside).
  bool commit_undone = false;
  // The directory of the store that this one was copied or moved from, and to which the witness
  // still belongs. This store reads the witness but does not write it, so an older copy of this
  // store may go unnoticed. Empty: the witness is this store's. In an observer's report nothing
  // else is set.
  std::string copy_of = {};
};

// What a store holds.
struct StoreCounts {
  std::string store_uuid = {};
  std::uint32_t schema_version = 0;
  std::uint64_t commit_sequence = 0;
  std::uint64_t records = 0;  // including remembered ones (EvidenceOptions::remember)
  // Of those: not under the default runtime handler.
  std::uint64_t nondefault_handler_records = 0;
  std::uint64_t runtime_handlers = 0;
  std::uint64_t intents = 0;
  std::uint64_t quarantine_entries = 0;
  std::uint64_t preloaded_records = 0;
  std::uint64_t imported_files = 0;
  std::uint64_t ledger_entries = 0;  // likewise
  std::uint64_t spellings = 0;       // under which images are known
  std::uint64_t id_mappings = 0;     // of pods in user namespaces
  std::uint64_t held_pods = 0;       // with unverified ID ranges
  bool distrustful = false;
  std::uint64_t map_bytes = 0;
  std::uint64_t used_bytes = 0;  // of the map, free pages inside included
  unsigned readers = 0;          // slots in use, over all processes
  unsigned max_readers = 0;
  std::uint64_t revocations = 0;  // that are kept (ListRevocations)
};

// What Verify found. `sound` is the verdict.
struct VerifyReport {
  bool sound = false;
  std::uint64_t pages = 0;
  std::uint64_t values = 0;
  std::vector<std::string> findings = {};
};

// Why a store's trust changed. The numbers are stored, and never 0. A number that this version does
// not know closes as much as any other.
enum class DegradedKind : std::uint8_t {
  kOther = 1,             // given in words only, by a version before schema version 4
  kOperator = 2,          // an operator's word
  kStoreLost = 3,         // the database was gone
  kStoreStale = 4,        // it may be an older copy: its witness is gone, or says so
  kStoreRebuilt = 5,      // it failed its check
  kStoreRestored = 6,     // a backup was put back
  kImportUnfinished = 7,  // files of a kubelet directory are not taken over yet
  kGap = 8,               // images may have been pulled unrecorded
  kJournalFull = 9,       // there are more reasons than the journal holds
};

// What an entry of the journal of distrust did.
enum class DegradedAction : std::uint8_t {
  kDistrust = 1,   // a reason to judge no image (closed), or to presume none preloaded (kubelet)
  kTrust = 2,      // ends every reason before it
  kTakenBack = 3,  // ends the reason of the same kind and words: its cause was repaired
  kNote = 4,       // an operator's word on a single image or pull; changes no reason
};

// Spellings for output: "operator", "storeLost", …; "distrust", "trust", "takenBack", "note".
// "unknown": a number of a later version.
std::string_view DegradedKindName(DegradedKind kind);
std::string_view DegradedActionName(DegradedAction action);

// An entry of the journal of distrust.
struct DegradedEvent {
  Timestamp at = {};
  DegradedKind kind = DegradedKind::kOther;
  DegradedAction action = DegradedAction::kDistrust;
  bool distrustful = false;  // the state from then on
  std::string reason = {};   // the store's; if distrust was cleared, the operator's

  friend bool operator==(const DegradedEvent&, const DegradedEvent&) = default;
};

// Whether a store is distrustful, and its journal. The journal only grows, except that an
// unfinished import leaves no entry if the same opening finishes it. Of more than kMaxTrustEvents
// entries (waybill/limits.h), the oldest that are no longer a reason for distrust are deleted.
struct TrustState {
  bool distrustful = false;
  std::vector<DegradedEvent> journal = {};  // oldest first
};

// What a garbage collection of records did.
struct PruneReport {
  std::uint64_t examined = 0;
  std::uint64_t removed = 0;
  std::uint64_t kept_in_list = 0;
  std::uint64_t kept_newer = 0;  // written or confirmed after the token, or not before `until`
  // Listed under another handler only, but the last record of its ref: lost its credentials.
  std::uint64_t kept_without_credentials = 0;
  std::uint64_t preloaded_removed = 0;  // ledger entries (Rules::kClosed)
};

}  // namespace waybill

#endif  // WAYBILL_REPORT_H_
