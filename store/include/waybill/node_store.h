// NodeStore: which image was pulled with whose credentials, which pulls were in flight, and which
// host IDs belong to which pod.
//
//   auto store = NodeStore::Open({.directory = "/var/lib/kubelet/waybill",
//                                 .witness = Witness::At("/var/lib/kubelet/image_manager/waybill"),
//                                 .images_on_node = runtime_images});
//   if (!store) { log(store.error().ToString()); return; }
//   auto decision = (*store)->MustAttemptPull(image, image_ref, pod_credentials);
//   if (decision.pull) {
//     if (auto r = (*store)->RecordPullIntent(image); !r) …   // on disk before the pull begins
//     … pull …
//     auto r = pulled ? (*store)->RecordImagePulled(image, pulled_ref, credentials)
//                     : (*store)->RecordImagePullFailed(image);
//   }
//
// Every call that returns success has reached the disk (fdatasync). All member functions but Close
// and the destructor may be called from any thread at any time. A store must not be used in the
// child of a fork, and processes that share one must share a PID namespace (LMDB's reader table).

#ifndef WAYBILL_NODE_STORE_H_
#define WAYBILL_NODE_STORE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/decision.h"
#include "waybill/limits.h"
#include "waybill/maintenance.h"
#include "waybill/policy.h"
#include "waybill/report.h"
#include "waybill/result.h"
#include "waybill/rules.h"
#include "waybill/runtime_handler.h"
#include "waybill/types.h"
#include "waybill/user_namespace.h"

namespace [[gnu::visibility("default")]] waybill {

// The small file outside the store that tells when the whole store was wiped, swapped or put back
// from an older copy. Having none is a choice that must be spelt out: such a loss then goes unseen.
class Witness {
 public:
  // A file at `path`, by convention image_manager/waybill in the kubelet directory, which the
  // kubelet passes over. Outside the store's directory, and absolute: the store remembers the path
  // as it is given, once the witness is on disk there. The directory that it is in is made if
  // missing; what is there already and is no witness is left alone (kInvalidArgument). Where the
  // store remembers another path, the witness there is asked as well: one that is gone or can't be
  // read means a store that may be stale, as one that contradicts does.
  static Witness At(std::filesystem::path path) { return {Kind::kAt, std::move(path)}; }
  // The same, and an operator's word that the store is the newest, although the witness that it
  // remembers is gone: that one is not asked. Under the path that is remembered it is as At.
  static Witness Anew(std::filesystem::path path) { return {Kind::kAnew, std::move(path)}; }
  // The one that the store was last opened with, if any. For tools that open a store that somebody
  // else set up; a wiped store remembers nothing.
  static Witness Remembered() { return {Kind::kRemembered, {}}; }
  // Forgets the one that the store remembers.
  static Witness None() { return {Kind::kNone, {}}; }

  enum class Kind : std::uint8_t { kAt, kRemembered, kNone, kAnew };
  Kind kind() const { return kind_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  Witness(Kind kind, std::filesystem::path path) : kind_(kind), path_(std::move(path)) {}
  Kind kind_;
  std::filesystem::path path_;
};

// Whether images on the node may have been pulled while nobody recorded it (KEP-2535, "What happens
// if we reenable the feature"): by a kubelet without waybill, or without the feature.
enum class Gap : std::uint8_t {
  // Under Rules::kClosed, look at the kubelet directory: files that a kubelet wrote since they were
  // taken over last; or, at the first take-over, pods but none of the kubelet's record folders.
  kDetect,
  kYes,
  kNo,
};

struct OpenOptions {
  // The store's own directory. Made (0700) if missing and create_if_missing, where its parent is
  // there; otherwise it must be a directory, no symlink, owned by the caller, and neither group-
  // nor world-writable.
  std::filesystem::path directory;
  bool create_if_missing = true;
  Witness witness;
  Rules rules = Rules::kClosed;
  VerificationPolicy policy = {};
  // The runtime's complete list of images, for replay. nullopt: unknown, so that dangling intents
  // stay and keep their images closed.
  std::optional<std::vector<ImageOnNode>> images_on_node = std::nullopt;
  // Whether an empty images_on_node and empty runtime_handlers are meant. A runtime that is
  // starting up lists nothing, too: without this, an empty list is kInvalidArgument where the store
  // holds records or intents or has to close a gap, or holds runtime handlers.
  bool allow_empty = false;
  // A kubelet directory (the one with image_manager/ in it) to take over. Empty: none.
  std::filesystem::path kubelet_directory = {};
  // Of the import: files. Where it stops, what was taken so far is kept, and the next import goes
  // on from there.
  Progress import_progress = {};
  // After a gap each image in images_on_node without a record gets one without credentials, and is
  // named in the report; without that list the store turns distrustful.
  Gap gap = Gap::kDetect;
  // The node's runtime handlers, in place of those that the store knew. nullopt: as they were.
  std::optional<std::vector<RuntimeHandler>> runtime_handlers = std::nullopt;
  // Of pods in user namespaces. A pool that is none is kInvalidArgument; one that is another than
  // before changes nothing for the pods that have a range.
  UserNamespaceOptions user_namespaces = {};
  // Pods' directories, to take over ID mappings from (`<uid>/userns` in it). Empty: pods/ of the
  // kubelet directory, where that is given and has one.
  std::filesystem::path pods_directory = {};
  // Whether a store of an older schema may be taken to the newest, after a backup (Migrate in
  // maintenance.h). Otherwise it is kOlderSchema, and nothing is touched.
  bool migrate = true;
  // What the disk refuses to read stops opening with kIo, and nothing is changed: trying again may
  // help. Where it goes on, this opens all the same: what can't be read of data.mdb counts as
  // damaged, so that the store is rebuilt, distrustful, from the rest; the image that an unreadable
  // file of the kubelet is about is closed (a quarantine entry), and a pod whose userns file can't
  // be read is held.
  bool skip_unreadable = false;
  // Of the migration: values. Where it stops, the store is as it was before the step
  // (kInterrupted).
  Progress migration_progress = {};
  Clock clock = SystemClock;
  // Bytes of the memory map, and so the bound of data.mdb: 1 MiB to 16 TiB, rounded up to pages. A
  // store that holds more already gets what it needs.
  std::uint64_t map_bytes = kDefaultMapBytes;
};

struct ObserveOptions {
  std::filesystem::path directory;
  Rules rules = Rules::kClosed;
  VerificationPolicy policy = {};
  UserNamespaceOptions user_namespaces = {};
  Clock clock = SystemClock;
};

// How a change that deletes is made.
struct ChangeOptions {
  // Whether an empty list is meant. A runtime that is starting up lists nothing, too: without this,
  // an empty list is kInvalidArgument where the store holds something that it would delete.
  bool allow_empty = false;
  // Makes the change, reports it, and takes it back: nothing reaches the disk.
  bool dry_run = false;
};

// How a pull that did not succeed ended.
enum class PullFailure : std::uint8_t {
  kFailed,   // the runtime said so: the image did not arrive by this pull
  kUnknown,  // time-out, cancelled, connection lost: it may still arrive (Rules::kClosed keeps the
             // intent; Rules::kKubelet treats it as kFailed)
};

class NodeStore {
 public:
  // Opens as the one owner: takes the lock, walks the pages, opens LMDB, checks header and witness,
  // imports, replays. Idempotent: after a crash or an error at any point, open again. Errors that
  // leave the store as it was: kOwned (by another process, or open in this one already;
  // or somebody writes to data.mdb while it is checked),
  // kUnsafePath, kNewerSchema, kOlderSchema, kInvalidArgument (options), kNotFound
  // (create_if_missing is false, or there is no pods_directory).
  // kDiskFull, kIo, kStoreFull, kConflict, kOutcomeUnknown, kInvalidArgument (an empty list; see
  // OpenOptions::allow_empty), and kInterrupted (import_progress returned false): what was
  // recovered and imported until then is kept. A damaged database is no error: it is set aside, and
  // recovery_report says so. Nor is a witness that is gone, can't be read or contradicts: the store
  // turns distrustful, its records lose their credentials, and findings says why.
  static Result<std::unique_ptr<NodeStore>> Open(OpenOptions options);

  // Opens beside a live owner, or without one, to decide and to read. Changes nothing; every
  // recording function returns kNotOwner. Needs write permission for the reader table (kUnsafePath
  // otherwise). kNotFound: there is no store. kDamaged: no owner has recovered it, and it fails the
  // walk, contradicts its witness or misses it: run an owner. kOwned: this
  // process has the store open already, or somebody writes to data.mdb while it is checked.
  // kOlderSchema: no owner has migrated it. kNewerSchema, kIo as for Open.
  static Result<std::unique_ptr<NodeStore>> Observe(ObserveOptions options);

  // Closes. No other call may be running.
  ~NodeStore();
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  // Commits waiting write-backs, syncs the witness, releases the lock. Later calls fail closed:
  // decisions answer "pull", recording functions return kNotOwner, reading ones kDamaged. Not to be
  // called while another call runs. An error (as of Flush; kDamaged: the witness was removed,
  // replaced or changed while the store was open) tells of write-backs or of the witness only, and
  // the store is closed all the same.
  Result<void> Close();

  // What opening found, did and left. Constant; empty for an observer.
  const RecoveryReport& recovery_report() const;

  // --- Decisions -------------------------------------------------------------------------------

  // KEP-2535, MustAttemptImagePull. `image` is the container's image string, `image_ref` what the
  // runtime returned for it, empty where the image is not on the node. Never fails: what can't be
  // read, verified or understood is "pull". Takes no lock that another thread holds, waits for no
  // write, and allocates nothing unless something is in quarantine or credentials are fetched late.
  // A credential that matched by hash or by coordinates only is queued to be written back (Flush
  // waits for that); an observer does not write back. Under Rules::kKubelet a decision that would
  // be "pull" waits first for those that are queued for `image_ref`. `runtime_handler` is the one
  // that the pod's RuntimeClass names: credentials of another handler's copy do not count, but
  // whether the kubelet pulled the image is asked of all handlers (KEP-4216). A handler that is not
  // in the registry: "pull", kRuntimeHandlerUnknown.
  Decision MustAttemptPull(std::string_view image, std::string_view image_ref,
                           CredentialSource& credentials, std::string_view runtime_handler = {});

  // The kubelet's outer question: pull, use what is there, or refuse. Arguments as above. Never
  // fails either; makes strings. Counts kubelet_image_manager_ensure_image_requests_total.
  EnsureOutcome EnsureImage(std::string_view image, std::string_view image_ref, PullPolicy policy,
                            CredentialSource& credentials, std::string_view runtime_handler = {});

  // Waits until every write-back queued so far is on disk. kIo, kDiskFull, kStoreFull and
  // kOutcomeUnknown as for a recording; a write-back that failed is dropped, and the next decision
  // that needs it queues it again. Nothing to do for an observer.
  Result<void> Flush();

  // --- Recording a pull (owner) ------------------------------------------------------------------
  // Each call is one transaction, on disk when it returns. Errors of all: kInvalidArgument,
  // kLimitExceeded, kConflict (two identities, one key), kNotOwner, kStoreFull, kDiskFull, kIo: the
  // store is as before. kOutcomeUnknown: the commit may or may not have happened; decisions answer
  // "pull" from then on, until the store is closed and opened again. kOwned: the same, but nothing
  // was changed: somebody removed, replaced or truncated owner.lock, lock.mdb or data.mdb under
  // this owner. The call in which that is found after its commit is kOutcomeUnknown.
  //
  // A runtime handler that is not in the registry is kInvalidArgument, and the error lists those
  // that are. How a pull ended may be recorded all the same where its intent is stored, but for its
  // credentials: nobody can tell any more for which guest platform it was. The default
  // handler's own name means the same as the empty one.

  // To be called before each pull; matched by exactly one RecordImagePulled or
  // RecordImagePullFailed. Counts the pull as in flight. kLimitExceeded also above
  // kMaxInFlightImages. `image` need not parse.
  Result<void> RecordPullIntent(std::string_view image, std::string_view runtime_handler = {});

  // The pull succeeded. Merges `credentials` into the record of `image_ref`, drops one in-flight
  // count of `image`, removes its intent when none is left, clears both's quarantine entries.
  // nullopt: credentials unknown; the record then only says that the kubelet pulled it.
  // kInvalidArgument where `image` does not parse or `image_ref` is empty: intent and count stay
  // (kubelet behaviour). An unreadable record is replaced.
  // `manifest`: which one of an index it was; kept with the record (digest and platform within
  // limits.h). A copy of another manifest or for another guest platform than the record's is
  // another image: what was proven for the old one goes.
  Result<void> RecordImagePulled(std::string_view image, std::string_view image_ref,
                                 const std::optional<ImagePullCredentials>& credentials,
                                 std::string_view runtime_handler = {},
                                 const std::optional<PulledManifest>& manifest = std::nullopt);

  // The pull did not succeed. Drops one in-flight count and, when none is left, the intent; under
  // Rules::kClosed not an intent that was there before this process's own, nor after kUnknown.
  Result<void> RecordImagePullFailed(std::string_view image,
                                     PullFailure failure = PullFailure::kFailed,
                                     std::string_view runtime_handler = {});

  // --- Garbage collection (owner) ----------------------------------------------------------------

  // Draw this before asking for the lists: of images, or of pods (CleanUpUserNamespaces).
  Result<PruneToken> BeginPrune();

  // Deletes the record of each image that is not in `images`, the complete list of images
  // on the node, and was not written or confirmed after `token` was drawn. Rules::kClosed spares
  // refs of whose names a pull is in flight or dangling. A ref that the list leaves out by mistake
  // loses its record, and its image may then be presumed preloaded, under both sets of rules.
  // An image that is listed under one handler keeps its record there; its record under another one
  // goes, but never the last that says that the ref was pulled: that one loses its credentials
  // instead. kInvalidArgument: a token from the future, or an empty list where there are records
  // (ChangeOptions::allow_empty).
  Result<PruneReport> Prune(const std::vector<ListedImage>& images, PruneToken token,
                            const ChangeOptions& options = {});

  // The kubelet's form: deletes what is not listed and was last updated before `until`. Compares
  // clocks, so prefer a token. Rules::kKubelet cuts times to the second, as the kubelet does.
  // Rules::kClosed: a record whose time is more than a day ahead of the clock gets the time of this
  // call, so that a later one can delete it; and where the clock was ahead and was put right, an
  // `until` that is ahead of it deletes nothing that was written since.
  // kInvalidArgument: an empty list, as above.
  Result<PruneReport> PruneBefore(const std::vector<ListedImage>& images, Timestamp until,
                                  const ChangeOptions& options = {});

  // --- Whole records, as an adapter for the kubelet's PullRecordsAccessor needs them -------------
  // Those that read: kDamaged where what is stored can't be read or may have been lost, and where
  // nothing can be read at this moment (closed, kOutcomeUnknown before, no reader slot free). Those
  // that write: errors as in "Recording a pull"; in-flight counts stay as they are.

  // kNotFound: no such record, surely.
  Result<ImagePulledRecord> GetRecord(std::string_view image_ref,
                                      std::string_view runtime_handler = {}) const;
  // In no order. Where one record can't be read none is returned.
  Result<std::vector<ImagePulledRecord>> ListRecords() const;
  // Replaces the record of record.image_ref under record.runtime_handler. Clears the ref's
  // quarantine entry. kInvalidArgument: an empty ref, an unknown handler that has no such record.
  Result<void> PutRecord(const ImagePulledRecord& record);
  // Deletes it if there; records of the ref under other handlers stay. Leaves a quarantine entry in
  // force.
  Result<void> DeleteRecord(std::string_view image_ref, std::string_view runtime_handler = {});

  Result<bool> HasIntent(std::string_view image, std::string_view runtime_handler = {}) const;
  // Sorted by image string, then by handler.
  Result<std::vector<ImagePullIntent>> ListIntents() const;
  // Stores it without counting a pull in flight.
  Result<void> PutIntent(std::string_view image, std::string_view runtime_handler = {});
  // Deletes it if there. While a pull of `image` is in flight in this process the intent is what
  // says so: it then goes when that pull ends.
  Result<void> DeleteIntent(std::string_view image, std::string_view runtime_handler = {});

  Result<std::vector<QuarantineEntry>> ListQuarantine() const;
  Result<std::vector<ImagePreloadedRecord>> ListPreloaded() const;

  // --- Runtime handlers (KEP-4216) ---------------------------------------------------------------
  // Errors of reading and of writing as in "Whole records".

  // The registry, sorted by name. Empty: none was ever loaded, and only the default handler is
  // known.
  Result<std::vector<RuntimeHandler>> ListRuntimeHandlers() const;
  // Replaces the registry as a whole. Records of handlers that vanish stay until they are pruned;
  // those of a handler whose guest platform is another than when they were pulled, or of a default
  // handler that has another name now or none, lose their credentials. Where there was no handler
  // but the default before, what an earlier time with runtime classes left is cleaned up, as by
  // CollapseRuntimeHandlers. kInvalidArgument: a name twice or malformed, two defaults, a nameless
  // handler that is not the default, an empty list where the registry has handlers
  // (ChangeOptions::allow_empty); kLimitExceeded; kConflict: pulls are in flight in this process
  // for handlers of which this would change the guest platform or the default, or whose intents
  // would become the default's. Then nothing was changed.
  Result<RuntimesReport> ReplaceRuntimeHandlers(const std::vector<RuntimeHandler>& handlers,
                                                const ChangeOptions& options = {});
  // Turns runtime classes off (KEP-4216, "Can the feature be disabled"): each record under another
  // handler than the default becomes one without credentials under the default, as does the
  // default's own record of that ref, since nobody can tell the copies apart any more; each intent
  // becomes the default's; the other handlers leave the registry. kConflict: pulls for others are
  // in flight in this process. allow_empty says nothing here, nor where one pod is released.
  Result<CollapseReport> CollapseRuntimeHandlers(const ChangeOptions& options = {});

  // --- User namespaces (KEP-127) -----------------------------------------------------------------
  // Errors of reading and of writing as in "Whole records". Where a pod UID is looked at:
  // kInvalidArgument if it can't be one (UserNamespaceRequest).

  // What the pod's sandbox and mounts are to be given. hostUsers unset or true: NODE, and nothing
  // is stored. False: the pod's mapping, the same every time, on disk before it is returned. The
  // lookup costs what a decision costs, but for a pod's first one after an opening or after a token
  // was drawn: a commit, which keeps a cleanup from taking the range of a pod that came back. An
  // observer answers for pods that have one, and is kNotOwner for others. In this order:
  //   kConflict         hostUsers is set, and user namespaces are switched off (kubelet's words)
  //   kInvalidArgument  the runtime handler does not support user namespaces, or is not in the
  //                     registry (kubelet's words). Where no registry was loaded none supports
  //                     them: an old runtime would ignore the mapping and run the pod as the host's
  //                     root
  //   kConflict         the pod is held (HeldPod), or its mapping has another length than
  //                     request.length
  //   kInvalidArgument  request.length is not the pool's, for a pod without a mapping
  //   kConflict         a pod of unknown range is held: nothing new is handed out to anyone
  //   kLimitExceeded    the pool is full (kubelet's words)
  // Nothing was changed then.
  Result<UserNamespace> GetOrCreateUserNamespace(const UserNamespaceRequest& request);

  // kNotFound: the pod has no mapping, surely. kConflict: it is held.
  Result<UserNamespaceAllocation> GetUserNamespace(std::string_view pod_uid) const;
  // The pod is gone: forgets its mapping, and that it was held. Whether there was either.
  Result<bool> ReleaseUserNamespace(std::string_view pod_uid, const ChangeOptions& options = {});
  // Sorted by host ID.
  Result<std::vector<UserNamespaceAllocation>> ListUserNamespaces() const;
  // Sorted by pod UID.
  Result<std::vector<HeldPod>> ListHeldPods() const;

  // Releases what belongs to no pod of either list: `existing`, the pods that the node is to run,
  // and then `running`, those that the runtime runs. Both complete, of UIDs, and made in this order
  // after `token` was drawn (BeginPrune): a mapping that was handed out since stays. All in one
  // transaction. kInvalidArgument: a token from the future, or both lists are empty where pods have
  // mappings or are held (ChangeOptions::allow_empty: a drained node has no pods).
  Result<UserNamespaceCleanupReport> CleanUpUserNamespaces(const std::vector<std::string>& existing,
                                                           const std::vector<std::string>& running,
                                                           PruneToken token,
                                                           const ChangeOptions& options = {});

  // An operator's word that the pod lives with this range: where that could not be read. Held pods
  // are no longer held. host_id and length are multiples of 65,536, host_id also of length, as all
  // that kubelets hand out; neither the host's block nor 2^32−1 is in it (kInvalidArgument).
  // kConflict: another pod has or may have some of it, or the pod has another mapping and is not
  // held. Nothing to do where it has this one.
  Result<void> AdoptUserNamespace(std::string_view pod_uid, std::uint64_t host_id,
                                  std::uint64_t length);
  // An operator's word that every pod that lives in a user namespace is in the list: lost ranges
  // (HeldPod without a UID) stand in the way of new ones no longer. Whether they did.
  Result<bool> ReleaseLostUserNamespaces(const ChangeOptions& options = {});

  Result<UserNamespaceStatistics> GetUserNamespaceStatistics() const;

  // --- Going back --------------------------------------------------------------------------------

  // Writes the kubelet's own files, names and forms as it writes them: to image_manager/{pulled,
  // pulling,observed-preloaded}, each folder replaced in one step and kept aside, not deleted. What
  // is in quarantine is written so that the kubelet can't read it either. Of a ref under several
  // handlers the default's credentials are written. ID mappings go to pods/<uid>/userns; a file
  // that says something else is kept beside it. kConflict, and nothing is written: a pod is held,
  // or the file of a pod that the store does not know overlaps a range. Works beside an owner, too;
  // but the kubelet must be down. kInvalidArgument: the store is distrustful, and
  // options.images_on_node is missing, or empty without options.allow_empty. kDamaged: a record
  // can't be read. kOwned: another export into that directory is running. kNotFound, kUnsafePath,
  // kDiskFull, kIo: the directory. Where it fails the folders are the old or the new ones, whole;
  // call it again.
  Result<ExportReport> Export(const ExportOptions& options) const;

  // --- State -------------------------------------------------------------------------------------
  // Errors of reading and of writing as in "Whole records".

  Result<Statistics> GetStatistics() const;
  // Counts since this object was opened. Never fails: gauges are 0 where the store can't be read.
  Metrics GetMetrics() const;

  // Walks the raw pages, reads every value, recomputes the digests. Damage is no error but the
  // report. Holds back the commits of this process meanwhile; beside a busy owner it may have to
  // begin anew, and is kIo after several tries. kNotFound, kIo: the file can't be read.
  Result<VerifyReport> Verify() const;

  Result<TrustState> GetTrust() const;
  // An operator's word that images without a record may be presumed preloaded again. `reason` is
  // kept: 1 to 1024 bytes (kInvalidArgument otherwise). Nothing happens, but the entry is made,
  // where the store was trustful.
  Result<void> ClearDistrust(std::string_view reason);

  class Impl;  // opaque

 private:
  explicit NodeStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill

#endif  // WAYBILL_NODE_STORE_H_
