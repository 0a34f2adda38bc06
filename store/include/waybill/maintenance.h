// Operations on a whole store that is not in use: migrating between schema versions, backups, and
// going back to a kubelet without waybill.

#ifndef WAYBILL_MAINTENANCE_H_
#define WAYBILL_MAINTENANCE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "waybill/evidence.h"
#include "waybill/limits.h"
#include "waybill/result.h"
#include "waybill/types.h"

namespace [[gnu::visibility("default")]] waybill {

// The wall clock. Must be callable from any thread.
using Clock = std::function<Timestamp()>;
Timestamp SystemClock();

// Called now and then during a long operation: units (files, values) done, and in all. Return false
// to stop; each option of this type says what is kept then.
using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// waybill checks LMDB's pages itself and relies on the order of LMDB's writes. If the LMDB library
// in this process is of an untested version, opening, observing, migrating and restoring are
// kInvalidArgument and change nothing; the error lists the tested versions. `allow`: use the
// untested version anyway, in the whole process, from now on.
void AllowUntestedLmdb(bool allow);

// The schema version that this library writes, and the oldest that it opens.
inline constexpr std::uint32_t kNewestSchema = 9;
inline constexpr std::uint32_t kOldestSchema = 1;

// --- Migrating ----------------------------------------------------------------------------------

// A step between two schema versions.
struct MigrationStep {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string name = {};
  std::uint64_t values_written = 0;
};

// What a migration did, or what a dry run would do.
struct MigrationReport {
  std::uint32_t from = 0;  // equal to `to`: nothing to do
  std::uint32_t to = 0;
  std::vector<MigrationStep> steps = {};  // done; in a dry run, planned
  std::string backup = {};                // made before the first step; empty in a dry run
  // What going down loses, one line each, with the images that must be verified again.
  std::vector<std::string> losses = {};
};

struct MigrateOptions {
  std::filesystem::path directory = {};
  std::uint32_t to = kNewestSchema;
  bool dry_run = false;      // report what would be done, and change nothing
  bool accept_loss = false;  // go down even if that loses something
  Progress progress = {};
  Clock clock = SystemClock;
  BootClock boot_clock = SystemBootClock;
  // As in NodeStoreOptions, but for this call only: the store remembers it only if it is larger
  // than the remembered size.
  std::uint64_t map_bytes = 0;
};

// Makes and verifies a backup, then takes a store to another schema version, one transaction for
// each step. NodeStore::Open does the same up to the newest version unless told not to. Idempotent:
// after a crash the store has the version before or after a step, and the same call continues from
// there. Uses the witness that the store remembers.
// kInvalidArgument: a version below kOldestSchema or above kNewestSchema. kConflict: going down
// would lose something and accept_loss is false; or, from 3 to 2 and whatever accept_loss says, a
// kubelet's files can't hold the ID ranges (held pods, ranges of several lengths). The message says
// which. kDiskFull: no room for the backup or for a step. kOwned: the store is in use. kNotFound:
// no store. kDamaged: the store fails its check, or its witness is missing or contradicts it;
// NodeStore::Open recovers it. kInterrupted: `progress` returned false. kNewerSchema, kUnsafePath,
// kIo, kStoreFull as for Open. After each of these the store is intact and has the version of the
// last completed step. kOutcomeUnknown: the disk failed during a commit; NodeStore::Open finds out.
Result<MigrationReport> MigrateStore(const MigrateOptions& options);

// --- Backups ------------------------------------------------------------------------------------

// backup/<version>-<commit sequence>-<time>.mdb in the store's directory: a compact copy. The last
// three are kept; of several of the same state, only the last.
struct Backup {
  std::filesystem::path path = {};
  std::uint32_t schema_version = 0;
  std::uint64_t commit_sequence = 0;
  std::uint64_t bytes = 0;
};

// The backups in `directory`, newest first, by name; their content is not read. kUnsafePath, kIo.
// kNotFound: no such directory.
Result<std::vector<Backup>> BackupsOf(const std::filesystem::path& directory);

struct RestoreOptions {
  std::filesystem::path directory = {};
  // A backup, a data.mdb that was copied while no process owned its store, or a directory with one.
  std::filesystem::path backup = {};
  bool dry_run = false;  // report what would be done, and change nothing
  Clock clock = SystemClock;
  BootClock boot_clock = SystemBootClock;
  // As in NodeStoreOptions. 0: as the replaced store remembers it, or else the backup; more if
  // needed.
  std::uint64_t map_bytes = 0;
};

// What a backup brought back.
struct RestoreReport {
  std::uint32_t schema_version = 0;
  std::uint64_t backup_commit_sequence = 0;
  // Beside these, each image that the replaced store has on record, and the backup lacks, stays on
  // record without credentials, present or gone: it was pulled, or closed, after the backup.
  std::uint64_t records = 0;
  // Of those, without credentials, and so to be verified again: the credentials may have been
  // revoked after the backup. Either the replaced store held other ones, or it was unreadable,
  // older than its witness or than the backup, or its witness was missing.
  std::uint64_t records_without_credentials = 0;
  std::uint64_t id_mappings = 0;  // of pods in user namespaces
  // What became of the backup's mappings. Kept: the pod has it. Held: the pod is held, since its
  // range is unverified or may overlap another pod's. Dropped: the replaced store gave the pod
  // another range, or had released this one.
  std::uint64_t id_mappings_kept = 0;
  std::uint64_t id_mappings_held = 0;
  std::uint64_t id_mappings_dropped = 0;
  // Other ranges may have been lost, so no new ones are handed out (QuarantinedPod without a UID).
  bool id_ranges_lost = false;
  // Where the replaced store is kept; empty: there was none, or it is a dry run.
  std::string replaced_path = {};
  std::vector<std::string> removed_paths = {};  // kept there earlier, now deleted (kMaxKeptAside)
  std::string distrust_reason = {};
  // It is a streaming store (waybill/streaming.h): all its tokens are void, and opening it ends the
  // distrust.
  bool streaming = false;
};

// Replaces the store with a backup. The replaced store is kept under quarantine/ (kMaxKeptAside).
// The new store is distrustful, since images pulled after the backup have no record in it. Images
// that the replaced store had closed, by its quarantine, its intents or an operator's word, stay
// closed, and so do those of which only that store has a record, as far as it can be read, whether
// they are on the node or gone. Pods keep the ID ranges that the replaced store gave them. If that
// store is unreadable or had lost ranges itself, the backup's ranges are kept or held as well,
// ranges count as lost (QuarantinedPod), and a backup of a version without ranges is restored as
// the newest version. Credentials that the replaced store had forgotten stay forgotten. Credentials
// that both stores have keep the replaced store's proofs (Proof). If the replaced store is older
// than the backup, pods whose ranges differ between the two are held. Streaming tokens are not put
// back: they may have opened their streams since. kDamaged: the backup fails its check, for
// instance because data.mdb was copied during a write. kConflict: the backup belongs to another
// store (by UUID, against the store or its witness), or one of the two is a streaming store and the
// other a node's. kInvalidArgument: the backup is the store itself. kOwned: a process owns the
// store, or the store whose data.mdb the backup is. kNewerSchema, kNotFound, kUnsafePath,
// kDiskFull, kIo. After each of these the store is unchanged; if the final sync of the directory
// fails, or after a crash, it is the old or the new one, intact.
Result<RestoreReport> RestoreStore(const RestoreOptions& options);

// --- Going back to a kubelet without waybill -----------------------------------------------------

// Which API version the kubelet's files are written in.
enum class KubeletApiVersion : std::uint8_t {
  kV1Beta1,   // kubelets since v1.35
  kV1Alpha1,  // to v1.34
};

struct ExportOptions {
  // The directory that has or gets image_manager/. The kubelet must not be running.
  std::filesystem::path kubelet_directory = {};
  KubeletApiVersion api_version = KubeletApiVersion::kV1Beta1;
  // The runtime's complete list. Required under Rules::kClosed, and if the store is distrustful:
  // since the kubelet presumes an image without a record preloaded, each that has neither record
  // nor ledger entry gets a record without credentials.
  std::optional<std::vector<ListedImage>> images_on_node = std::nullopt;
  // Accepts an empty list. Otherwise it is refused where the list is required.
  bool allow_empty = false;
};

// What was written for the kubelet.
struct ExportReport {
  std::uint64_t records = 0;
  std::uint64_t intents = 0;
  std::uint64_t preloaded = 0;
  std::uint64_t closed = 0;  // in quarantine: written as files that the kubelet can't read either
  std::uint64_t made = 0;    // records without credentials, for images of unknown origin
  std::uint64_t spellings = 0;  // records under further spellings of their images
  // Written without credentials: refs with records under other handlers only, and files that a
  // kubelet wrote and no import took.
  std::uint64_t without_credentials = 0;
  std::uint64_t id_mappings = 0;   // pods/<uid>/userns
  std::string replaced_path = {};  // where the earlier files are kept; empty: there were none
  std::vector<std::string> removed_paths =
      {};  // kept by earlier exports, now deleted (kMaxKeptAside)
};

}  // namespace waybill

#endif  // WAYBILL_MAINTENANCE_H_
