// What is done to a whole store while nobody uses it: migrating between schema versions, backups,
// going back to a kubelet without waybill.

#ifndef WAYBILL_MAINTENANCE_H_
#define WAYBILL_MAINTENANCE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "waybill/limits.h"
#include "waybill/result.h"
#include "waybill/types.h"

namespace [[gnu::visibility("default")]] waybill {

// The wall clock. Must be callable from any thread.
using Clock = std::function<Timestamp()>;
Timestamp SystemClock();

// Called now and then while something long runs: units (files, values) done, and in all. Return
// false to stop; what that leaves is said where it is taken.
using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// waybill checks LMDB's pages by itself and relies on when LMDB writes what. With a version of LMDB
// (the library that this process has loaded) that it was not tested with, opening, observing,
// migrating and putting back are kInvalidArgument, and nothing is touched; the error lists the
// tested ones. `allow`: go on all the same, in this whole process, from now on.
void AllowUntestedLmdb(bool allow);

// The schema version that this library writes, and the oldest that it opens.
inline constexpr std::uint32_t kNewestSchema = 3;
inline constexpr std::uint32_t kOldestSchema = 1;

// --- Migrating ----------------------------------------------------------------------------------

struct MigrationStep {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string name;
  std::uint64_t values_written = 0;
};

struct MigrationReport {
  std::uint32_t from = 0;  // equal to `to`: there was nothing to do
  std::uint32_t to = 0;
  std::vector<MigrationStep> steps;  // done, or, in a dry run, to do
  std::string backup;                // made before the first step; empty in a dry run
  // What going down loses, one line each; whose image must be verified again is said there.
  std::vector<std::string> losses;
};

struct MigrateOptions {
  std::filesystem::path directory;
  std::uint32_t to = kNewestSchema;
  bool dry_run = false;      // say what would be done, and change nothing
  bool accept_loss = false;  // go down even where that loses something
  Progress progress = {};
  Clock clock = SystemClock;
  std::uint64_t map_bytes = kDefaultMapBytes;
};

// Takes a store to another schema version, one step and one transaction at a time, after a backup
// that was verified. NodeStore::Open does the same up to the newest version unless told not to.
// Idempotent: after a crash the store has the version before or after a step, and the same call
// goes on. Uses the witness that the store remembers.
// kInvalidArgument: a version below kOldestSchema or above kNewestSchema. kConflict: going down
// would lose something and accept_loss is false, or, from 3 to 2, ID ranges live that no kubelet's
// files can hold (held pods, ranges of several lengths), whatever accept_loss says; the message
// says what. kDiskFull: no room for the backup, or for a step. kOwned: the store is in use.
// kNotFound: there is none. kDamaged: it fails its check, or its witness is gone or
// contradicts; NodeStore::Open recovers it.
// kInterrupted: `progress` said so. kNewerSchema, kUnsafePath, kIo, kStoreFull as for Open. After
// each of these the store is whole, and of the version of the last step that was done.
// kOutcomeUnknown: the disk failed so that nobody knows; NodeStore::Open finds out.
Result<MigrationReport> Migrate(const MigrateOptions& options);

// --- Backups ------------------------------------------------------------------------------------

// backup/<version>-<commit sequence>-<time>.mdb in the store's directory: a compact copy. The last
// three are kept; of one state, the last.
struct Backup {
  std::filesystem::path path;
  std::uint32_t schema_version = 0;
  std::uint64_t commit_sequence = 0;
  std::uint64_t bytes = 0;
};

// Those in `directory`, newest first, by their names: their content is not looked at. kUnsafePath,
// kIo, kNotFound: there is no such directory.
Result<std::vector<Backup>> ListBackups(const std::filesystem::path& directory);

struct RestoreOptions {
  std::filesystem::path directory;
  std::filesystem::path backup;
  bool dry_run = false;  // say what would be done, and change nothing
  Clock clock = SystemClock;
  std::uint64_t map_bytes = kDefaultMapBytes;
};

struct RestoreReport {
  std::uint32_t schema_version = 0;
  std::uint64_t backup_commit_sequence = 0;
  std::uint64_t records = 0;
  // Of those: the store that was replaced did not hold the same credentials, could not be read, was
  // older than its witness or missed that, so they may have been taken back since. To be verified
  // again.
  std::uint64_t records_without_credentials = 0;
  std::uint64_t id_mappings = 0;  // of pods in user namespaces
  // Of those that the backup had. Kept: the pod has it. Held: the pod is held, since another one
  // has or may have some of it, or nobody can vouch for the pod's. Dropped: the store that was
  // replaced gave the pod another one, or had released it.
  std::uint64_t id_mappings_kept = 0;
  std::uint64_t id_mappings_held = 0;
  std::uint64_t id_mappings_dropped = 0;
  // Others may have been lost, and so no new ones are handed out (HeldPod without a UID).
  bool id_ranges_lost = false;
  // Where what it replaces is kept; empty: there was nothing, or it is a dry run.
  std::string replaced_path;
  std::vector<std::string> removed_paths;  // kept there earlier, and gone (kMaxKeptAside)
  std::string distrust_reason;
};

// Puts a backup in the place of the store, which is kept under quarantine/ (kMaxKeptAside). The
// store then is distrustful: images that were pulled after the backup have no record in it. What
// the replaced store had closed, by its quarantine and its intents, stays closed. Pods keep the ID
// ranges that the replaced store gave them; where that can't be read, or had lost ranges itself,
// those of the backup are kept beside them or held, ranges count as lost (HeldPod), and a backup of
// a version that knows no ranges is put back as one of the newest. kDamaged: the backup fails its
// check. kConflict: it is of another store (by UUID, against the store or its witness).
// kNewerSchema, kOwned, kNotFound, kUnsafePath, kDiskFull, kIo. After each of these the store is as
// it was; where the last of it fails, the directory's sync, and after a crash, it is the one or the
// other, whole.
Result<RestoreReport> Restore(const RestoreOptions& options);

// --- Going back to a kubelet without waybill -----------------------------------------------------

enum class KubeletApiVersion : std::uint8_t {
  kV1Beta1,   // kubelets since v1.35
  kV1Alpha1,  // to v1.34
};

struct ExportOptions {
  // The directory with, or for, image_manager/ in it. The kubelet must not be running.
  std::filesystem::path kubelet_directory;
  KubeletApiVersion api_version = KubeletApiVersion::kV1Beta1;
  // The runtime's complete list: needed where the store is distrustful, since the kubelet knows no
  // distrust: each image without a record then gets one without credentials.
  std::optional<std::vector<ImageOnNode>> images_on_node = std::nullopt;
  // Whether an empty list is meant; without this it is refused where it is needed.
  bool allow_empty = false;
};

struct ExportReport {
  std::uint64_t records = 0;
  std::uint64_t intents = 0;
  std::uint64_t preloaded = 0;
  std::uint64_t closed = 0;  // in quarantine: written so that the kubelet, too, can't read them
  std::uint64_t made = 0;    // records without credentials, for images of a distrustful store
  // Written without credentials: of refs of which only other handlers than the default had a
  // record, and files that a kubelet wrote and no import took.
  std::uint64_t without_credentials = 0;
  std::uint64_t id_mappings = 0;  // pods/<uid>/userns
  std::string replaced_path;  // where the files that were there are kept; empty: there were none
  std::vector<std::string> removed_paths;  // kept by earlier exports, and gone (kMaxKeptAside)
};

}  // namespace waybill

#endif  // WAYBILL_MAINTENANCE_H_
