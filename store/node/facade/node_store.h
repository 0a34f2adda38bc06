// NodeStore: a node's store behind the door (waybill/store.h, waybill/calls.h, which say what each
// call does and which errors it has). Here stands what the door does not say.
//
// Every call that returns success has reached the disk (fdatasync). All member functions except
// Close and the destructor may be called from any thread at any time. A store must not be used in
// the child of a fork. Processes that share a store must share a PID namespace (LMDB's reader
// table).

#ifndef WAYBILL_STORE_NODE_FACADE_NODE_STORE_H_
#define WAYBILL_STORE_NODE_FACADE_NODE_STORE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/metrics.h"
#include "store/base/options.h"
#include "waybill/calls.h"
#include "waybill/store.h"
#include "waybill/values.h"

namespace waybill {

class NodeStore {
 public:
  // Opens as the only owner: takes the lock, walks the pages, opens LMDB, checks header and
  // witness, imports, replays. Idempotent: after a crash or an error at any point, open again.
  // These errors leave the store unchanged: kOwned (another process owns it, this process has it
  // open, or data.mdb changes while it is checked), kUnsafePath, kNewerSchema, kOlderSchema,
  // kInvalidArgument (options), kNotFound; but with kOlderSchema or kNewerSchema, a commit that a
  // crash cut short may have been undone. After kDiskFull, kIo, kStoreFull, kConflict,
  // kOutcomeUnknown, kInvalidArgument (an empty list: allow_empty) and kInterrupted, what was
  // recovered and imported so far is kept. Damage is no error: the database is set aside. Nor is a
  // witness that is missing or contradicts the store: the store turns distrustful.
  static Result<std::unique_ptr<NodeStore>> Open(NodeStoreOptions options);

  // Opens to decide and to read. Needs write permission for the reader table (kUnsafePath), or
  // ObserveOptions::needs_slot.
  // kDamaged: the store fails the walk, or its witness is missing or contradicts it. kOwned: this
  // process has the store open already, or data.mdb changes while it is checked.
  static Result<std::unique_ptr<NodeStore>> Observe(ObserveOptions options);

  // Closes. No other call may be running, but requests of clients may (Serve).
  ~NodeStore();
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  // An error concerns only write-backs (as of Flush), the witness (kDamaged: it was removed,
  // replaced or changed meanwhile) or commit.mark (kIo); the store is closed all the same. Later
  // decisions answer "pull", and every other call that can fail returns kClosed.
  Result<void> Close();

  // Serving ends with Close or destruction, which wait for running requests and remove the socket.
  // A socket left by an owner that has ended is replaced. kLimitExceeded: the path has more than
  // 107 bytes, and /proc is not mounted.
  Result<void> Serve(const ServeOptions& options = {});

  // What opening found and did. Constant; for an observer only `copy_of` is set.
  const OpeningReport& recovery_report() const;
  // What it was opened with, and whether as the owner.
  Settings settings() const;
  bool owns() const;

  // Any call of calls.h, instantiated in the library, and the same by name as JSON.
  template <typename C>
  Result<typename C::Answer> Call(const C& call, const Progress& progress = {});
  Result<std::string> CallJson(std::string_view name, std::string_view parameters,
                               const Progress& progress = {});

  // --- Decisions ---------------------------------------------------------------------------------

  // Needs all of `copy`. Takes no lock that another thread holds, waits for no write, and allocates
  // nothing unless something is in quarantine or credentials are fetched late. A credential that
  // matched by hash or by coordinates only is queued to be written back; an observer does not write
  // back. Mode::kKubelet: a decision that would be "pull" first waits for the write-backs that are
  // queued for the ref. Credentials of another handler's copy do not count, but a record or intent
  // under any handler shows that the kubelet pulled the image (KEP-4216).
  Decision MustAttemptPull(const ImageCopy& copy, CredentialSource& credentials);
  // What MustAttemptPull would answer; counts nothing, and writes nothing back.
  Decision PreviewDecision(const ImageCopy& copy, CredentialSource& credentials) const;
  EnsureOutcome EnsureImage(const ImageCopy& copy, PullPolicy policy,
                            CredentialSource& credentials);
  // A write-back that failed is dropped; the next decision that needs it queues it again. Does
  // nothing for an observer.
  Result<void> Flush();

  // --- Recording a pull (owner) ------------------------------------------------------------------
  // Each call is one transaction. Errors of all: kInvalidArgument, kLimitExceeded, kConflict (two
  // identities, one key), kNotOwner, kStoreFull, kDiskFull, kIo, kClosed: the store is unchanged.
  // kOutcomeUnknown: the commit may or may not have happened; decisions answer "pull" until the
  // store is closed and opened again. kOwned: owner.lock, lock.mdb or data.mdb was removed,
  // replaced or truncated under this owner; decisions answer "pull" likewise. A call that notices
  // this after its commit returns kOutcomeUnknown.
  //
  // A runtime handler that is not in the registry is kInvalidArgument, and the error lists those
  // that are. If the pull's intent is stored, its end may still be recorded, but without its
  // credentials: the guest platform is unknown by now.

  // Counts the pull as in flight. kLimitExceeded also above kMaxInFlightImages. Ignores
  // copy.image_ref. Mode::kStrict: each call makes a pull of its own. Mode::kKubelet: an image
  // has one intent, whose ID every call returns.
  Result<PullId> RecordPullIntent(const ImageCopy& copy);

  // Merges `credentials` into the record of copy.image_ref, drops one in-flight count of
  // copy.image, and clears the quarantine entries of both. nullopt: the record only says that the
  // kubelet pulled the image. kInvalidArgument: the image does not parse, or the ref is empty;
  // intent and count stay (kubelet behaviour). An unreadable record is replaced. If the manifest or
  // the guest platform differs from the record's, it is another image: proofs for the old one are
  // dropped. Mode::kStrict removes only the pull `result.pull`; without an ID, the newest running
  // one of this string, or else the newest of unknown end, and credentials forgotten since the
  // oldest of them began are not proven. A record under another spelling is taken over.
  // Mode::kKubelet removes the intent when no count is left.
  Result<void> RecordImagePulled(const ImageCopy& copy,
                                 const std::optional<ImagePullCredentials>& credentials,
                                 const PullResult& result = {});
  // Drops one in-flight count. Ignores copy.image_ref. Mode::kStrict chooses the pull as
  // RecordImagePulled does, removes it after kNothingTransferred, and otherwise marks it failed or
  // unknown. Mode::kKubelet removes the intent when no count is left.
  Result<void> RecordImagePullFailed(const ImageCopy& copy,
                                     PullFailure failure = PullFailure::kFailed, PullId pull = {});
  // The same, with the class of the error, which is counted: StoreCounters::pulls.
  Result<void> RecordImagePullError(const ImageCopy& copy, const PullError& failed);

  // --- Evidence (owner) --------------------------------------------------------------------------
  // Mode::kStrict: an image is open if a credential was proven for it, or if it is in the ledger
  // of images that came to the node without the kubelet. Mode::kKubelet has no ledger:
  // ObserveImages does nothing, and says so.

  Result<ListToken> BeginList();

  // Learns the spellings of each listed image, unites records that turn out to be of one image, and
  // judges each image that has neither record nor ledger entry, once. A name that no open pull
  // could have given it proves that it came without the kubelet: it enters the ledger. Otherwise it
  // gets a record without credentials. A pull of `repo:tag` could have given that tag and any
  // `repo@digest`, one with a digest any `repo@digest`, and one without a registry host any name
  // (EvidenceOptions::short_names). If only a pull that began after the token could have given a
  // name, the image is left to a later list. Names that do not parse do not count. An image that
  // may be the same as one known under another ID or digest is closed, or takes over that image's
  // ledger entry. A distrustful store judges nothing. After a gap a complete list closes each image
  // that has neither record nor ledger entry, and ends the gap. If the runtime shows that nobody
  // pulled an image (ListedImage::imported), it enters the ledger in each of these cases, even if a
  // list closed it before, or if it was pulled and a complete list lacked it since; not if an
  // operator closed it, if the pulled image was never gone, or if a record is of another handler's
  // copy. What the runtime pins enters the ledger after a gap, too, unless an open pull names it; a
  // list without a token leaves it to a later one.
  //
  // A complete list also drops open pulls that can bring nothing any more (EvidenceOptions,
  // ImageList::quiet_until). Records and ledger entries of images that are not on it are
  // remembered, unless they are newer than its token (EvidenceOptions::remember; kMaxRemembered of
  // each, the oldest go first). If the image comes back without a recorded pull, its record counts
  // again, less what was forgotten or grew too old. Its ledger entry counts again if the image has
  // one of the entry's names that no open pull could have given it, and the image does not come
  // back in a gap. A pull that succeeds begins anew. If a list leaves an image unjudged, it does
  // not remove what may be known of that image under another ref. A list that has none of the
  // known images may come from another runtime, or the disk may not be mounted: it settles no pull
  // and closes no gap, and in a gap it leaves the ledger entries of images without a record as they
  // are, unless allow_empty confirms it. A list without a token closes images, and does nothing
  // else. A list that changes nothing is not written. kInvalidArgument: a token from the future, of
  // another store, or older than that of a list observed before; or, if remembering is off, an
  // empty complete list although there are records, open pulls or ledger entries. kLimitExceeded:
  // more than kMaxListedImages.
  Result<ClassifyReport> ObserveImages(const ImageList& list, const ChangeOptions& options = {});

  // As Gap::kYes does at opening, and leaves an open pull of anything. Does nothing while a gap is
  // open already. `why` (1 to kMaxReasonBytes) goes into the journal of trust.
  Result<void> NoteGap(std::string_view why);

  // A kubelet on this node began no earlier than `began`, of the present boot, and what it read
  // then lacked everything that was forgotten before. Revocations of before may end (AgeLimits).
  // kInvalidArgument: that is of another boot or in the future.
  Result<void> NoteKubeletBegan(const BootTime& began);

  // The oldest first.
  Result<std::vector<UnresolvedPull>> ListOpenPulls() const;
  // An operator's word that this pull brought nothing. The reason (1 to kMaxReasonBytes) goes into
  // the journal of trust.
  Result<void> DropOpenPull(PullId pull, std::string_view reason,
                            const ChangeOptions& options = {});

  // Sorted by image ref and handler; also those that are only remembered.
  Result<std::vector<PreloadedImage>> ListLedger() const;
  // An operator's word that this image is preloaded. `image.id` is any spelling of it. `source` and
  // `reason`: 1 to kMaxReasonBytes. Records of the image stay, but an operator's closing of this
  // copy is taken back; its quarantine stays, too, and closes it all the same. kInvalidArgument: no
  // ID, or a digest that two images have. Without `pulled_too` an image that credentials were
  // recorded for is kConflict.
  Result<void> AddToLedger(const ListedImage& image, std::string_view source,
                           std::string_view reason, const ChangeOptions& options = {},
                           bool pulled_too = true);
  // An operator's word that the image is not preloaded, also of one that is only remembered.
  // Without a record of this copy it gets one without credentials, or the next list would enter it
  // again. What was proven stays. From then on no list enters the image, until AddToLedger. Returns
  // whether there was an entry. Ignores copy.image. kLimitExceeded: operators closed kMaxClosings.
  Result<bool> RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                const ChangeOptions& options = {});
  // An operator's word on an image that is presumed preloaded (kPresumedSource). Returns whether it
  // was; otherwise nothing is changed. One that is only remembered can be closed, not confirmed.
  Result<bool> SettlePresumed(const ImageCopy& copy, Settled settled, std::string_view reason,
                              const ChangeOptions& options = {});

  // Everything that bears on the answer except the pod's credentials and the policy. `names` are
  // those that the runtime lists it by; if there are none, copy.image is used.
  Result<Explanation> Explain(const ImageCopy& copy,
                              const std::vector<std::string>& names = {}) const;

  // --- Revocation (owner) ------------------------------------------------------------------------
  // A decision that begins after a call returned does not count what was forgotten, not even after
  // a crash; one that is under way sees all of the change or nothing of it. A pull whose beginning
  // is not on record (RecordPullIntent) counts as begun before. kInvalidArgument: a namespace,
  // name, ref or hash is empty.

  Result<RevokeReport> ForgetSecret(const CredentialName& who, const ChangeOptions& options = {});
  Result<RevokeReport> ForgetServiceAccount(const CredentialName& who,
                                            const ChangeOptions& options = {});
  Result<RevokeReport> ForgetNamespace(std::string_view namespace_name,
                                       const ChangeOptions& options = {});
  Result<RevokeReport> ForgetImage(const ImageCopy& copy, const ChangeOptions& options = {});
  Result<RevokeReport> ForgetCredential(std::string_view credential_hash,
                                        const ChangeOptions& options = {});
  // One of the above, by what.kind. Of an image: by any spelling (Mode::kStrict), and of a handler
  // that is not in the registry, too; ledger entries stay.
  Result<RevokeReport> Forget(const Revocation& what, const ChangeOptions& options = {});

  // A pull that began before the token and ends later records no Secret or service account: it may
  // have used one that is gone. kInvalidArgument: a token older than that of the last truth.
  Result<RevokeMissingReport> Reconcile(const ExistingCredentials& truth, const ListToken& token,
                                        const ChangeOptions& options = {});
  // RevokeMissing: a list in parts, which is applied when the last part has come.
  Result<RevokeMissingReport> ReconcileInParts(const RevokeMissing& part);

  // In no order.
  Result<std::vector<Revocation>> ListRevocations() const;

  // --- Garbage collection (owner) ----------------------------------------------------------------

  // Deletes each record whose image is not listed, unless it was written or confirmed after the
  // token was drawn; Mode::kStrict: ledger entries likewise. Judges nothing. Deleting a record
  // whose image no list ever had leaves an open pull of anything (Mode::kStrict), since the image
  // may be listed under another ref; so do PruneBefore and DeleteRecord. An image that is listed
  // under one handler keeps its record there and loses those under others, except the last record
  // that says that the image was pulled: that one loses its credentials instead.
  Result<PruneReport> Prune(const std::vector<ListedImage>& images, const ListToken& token,
                            const ChangeOptions& options = {});
  // The kubelet's form of Prune, by clocks; no ledger entries. Mode::kKubelet cuts times to the
  // second. Mode::kStrict: a record whose time is more than a day ahead of the clock gets the time
  // of this call; if the clock was ahead and was corrected, an `until` ahead of it does not delete
  // records written since.
  Result<PruneReport> PruneBefore(const std::vector<ListedImage>& images, Timestamp until,
                                  const ChangeOptions& options = {});

  // --- Whole records, as an adapter for the kubelet's PullRecordsAccessor needs them -------------
  // Calls about a record ignore copy.image, calls about an intent copy.image_ref. kInvalidArgument:
  // the member that the call needs is empty and the other is not. (Both may be empty: a kubelet's
  // files can hold a record of the empty ref and an intent of the empty image.)

  // Without credentials that do not count; so does ListRecords. Mode::kStrict finds it under any
  // spelling; so does DeleteRecord. kNotFound: there is certainly no such record.
  Result<ImagePulledRecord> GetRecord(const ImageCopy& copy) const;
  // In no order. If one can't be read, none is returned.
  Result<std::vector<ImagePulledRecord>> ListRecords() const;
  // A credential that counts in the stored record keeps its proof. One that matches such a
  // credential by hash or coordinates gets that one's proof (but a forgotten hash gets none by its
  // coordinates). Any other is proven by the running pull of the image name, on `terms`.
  // Credentials forgotten since that pull began, or forgotten at all if none runs, are left out;
  // the stored Secret of the same coordinates stays. Clears the ref's quarantine entry.
  Result<void> PutRecord(const ImagePulledRecord& record, const ProofTerms& terms = {});
  Result<void> DeleteRecord(const ImageCopy& copy);

  Result<bool> HasIntent(const ImageCopy& copy) const;
  // One for each image string and handler with an open pull, sorted by both.
  Result<std::vector<ImagePullIntent>> ListIntents() const;
  // Unless a pull of the image runs already. Counts no pull in flight.
  Result<void> PutIntent(const ImageCopy& copy);
  // While a pull of the image is in flight in this process, its intent stays until it ends.
  Result<void> DeleteIntent(const ImageCopy& copy);

  Result<std::vector<QuarantinedFile>> ListQuarantine() const;
  // Those that a kubelet's files name.
  Result<std::vector<ImagePreloadedRecord>> ListPreloaded() const;

  // --- Runtime handlers (KEP-4216) ---------------------------------------------------------------

  // Sorted by name. Empty: no list was ever loaded, and only the default handler is known.
  Result<std::vector<RuntimeHandler>> ListRuntimeHandlers() const;
  // Records of vanished handlers stay until they are pruned. Records lose their credentials if
  // their handler's guest platform changed since the pull, or if the default handler's name
  // changed. If only the default handler was known before, leftovers from an earlier time with
  // runtime classes are cleaned up, as by CollapseRuntimeHandlers. kConflict: pulls in flight in
  // this process use a handler whose guest platform or default this would change, or whose intents
  // would become the default's.
  Result<RuntimesReport> ReplaceRuntimeHandlers(const std::vector<RuntimeHandler>& handlers,
                                                const ChangeOptions& options = {});
  // Turns runtime classes off (KEP-4216, "Can the feature be disabled"). Each record under another
  // handler becomes a record of the default's, without credentials; so does the default's own
  // record of that ref, since the copies can't be told apart. kConflict: pulls for other handlers
  // are in flight in this process.
  Result<CollapseReport> CollapseRuntimeHandlers(const ChangeOptions& options = {});

  // --- User namespaces (KEP-127) -----------------------------------------------------------------

  // A pod's first lookup after an opening or a new token costs a commit, which keeps a cleanup from
  // taking the range of a pod that came back. An observer answers for pods with a mapping; for
  // others it returns kNotOwner. Errors, in this order:
  //   kConflict         hostUsers is set, and user namespaces are switched off (kubelet's words)
  //   kInvalidArgument  the runtime handler does not support user namespaces, or is not in the
  //                     registry (kubelet's words); or no registry was ever loaded: an old runtime
  //                     would ignore the mapping and run the pod as the host's root
  //   kConflict         the pod is held, or its mapping has another length than request.length
  //   kInvalidArgument  request.length is not the pool's, for a pod without a mapping
  //   kConflict         a pod of unknown range is held, so no new range is handed out
  //   kLimitExceeded    the pool is full (kubelet's words)
  Result<UserNamespace> GetOrCreateUserNamespace(const UserNamespaceRequest& request);
  // kNotFound: the pod certainly has no mapping. kConflict: it is held.
  Result<PodMapping> GetUserNamespace(std::string_view pod_uid) const;
  // Returns whether there was a mapping, or the pod was held.
  Result<bool> ReleaseUserNamespace(std::string_view pod_uid, const ChangeOptions& options = {});
  // Sorted by host ID; held pods by UID.
  Result<std::vector<PodMapping>> ListUserNamespaces() const;
  Result<std::vector<QuarantinedPod>> ListHeldPods() const;
  Result<CleanUpReport> CleanUpUserNamespaces(const std::vector<std::string>& existing,
                                              const std::vector<std::string>& running,
                                              ListToken token, const ChangeOptions& options = {});
  // kInvalidArgument: host_id and length must be multiples of 65,536, host_id also of length, as
  // all ranges of kubelets; the range must not contain the host's block or 2^32−1. kConflict:
  // another pod has or may have some of it, or the pod has another mapping and is not held.
  Result<void> AdoptUserNamespace(std::string_view pod_uid, std::uint64_t host_id,
                                  std::uint64_t length);
  // Ranges of unknown pods no longer block new ones. Returns whether they did.
  Result<bool> ReleaseLostUserNamespaces(const ChangeOptions& options = {});
  Result<PoolUse> GetUserNamespaceStatistics() const;

  // --- The whole store ---------------------------------------------------------------------------

  // In backup/; of several backups of this state only the new one is kept. kDiskFull: no room.
  // kDamaged: the copy fails its check. kUnavailable: another backup is being made, or all slots of
  // readers are taken. After an error no backup was removed.
  Result<Backup> MakeBackup();
  // Into a new file outside the store, mode 0600; also by an observer. kInvalidArgument: `file`
  // exists already, is not in an existing directory, or lies in the store. After an error the file
  // was not made, except if the final sync of its directory failed.
  Result<Backup> WriteBackup(const std::filesystem::path& file, const Progress& progress = {});

  // Writes image_manager/{pulled,pulling,observed-preloaded}; each folder is replaced in one step,
  // and the old one is kept aside. Images in quarantine become files that the kubelet can't read
  // either. A ref under several handlers gets the default's credentials. Mode::kStrict: a record
  // is written under every spelling, and each listed image with neither record nor ledger entry
  // gets a record without credentials. ID mappings go to pods/<uid>/userns; a file with other
  // content is kept beside it. kConflict, and nothing is written: a pod is held, or the file of a
  // pod that the store does not know overlaps a range. kInvalidArgument: the store is distrustful
  // and has no list of images. kOwned: another export into that directory is running. After an
  // error the folders are complete, old or new; call it again.
  Result<ExportReport> Export(const ExportOptions& options) const;

  Result<StoreCounts> GetStatistics() const;
  // Never fails: Metrics::readable says whether the gauges could be read.
  Metrics GetMetrics() const;
  // Blocks the commits of this process meanwhile. Beside a busy owner it may have to start over,
  // and is kIo after several tries.
  Result<VerifyReport> Verify(const Progress& progress = {}) const;
  Result<TrustState> GetTrust() const;
  // An operator's word that the store is whole again; it goes into the journal also if the store
  // was trustful. Mode::kStrict: images on the node that have neither record nor ledger entry are
  // closed, or adopted (ClearOptions), and one open pull of anything stands for those that may
  // still arrive. Mode::kKubelet: images without a record are presumed preloaded again.
  Result<ClassifyReport> ClearDistrust(std::string_view reason, const ClearOptions& options = {});

  class Impl;  // opaque

 private:
  explicit NodeStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What would have to change to reverse a decision with this reason, in one sentence without a full
// stop. `why` explains the same image.
std::string OtherAnswer(Reason reason, const Explanation& why);

}  // namespace waybill

#endif  // WAYBILL_STORE_NODE_FACADE_NODE_STORE_H_
