// NodeStore: which image was pulled with whose credentials, which pulls were in flight, and which
// host IDs belong to which pod.
//
//   auto store = NodeStore::Open({.directory = "/var/lib/kubelet/waybill",
//                                 .witness = Witness::At("/var/lib/kubelet/image_manager/waybill"),
//                                 .images_on_node = runtime_images});
//   if (!store) { log(store.error().ToString()); return; }
//   ImageCopy copy = {.image = image, .image_ref = image_ref, .runtime_handler = handler};
//   auto decision = (*store)->MustAttemptPull(copy, pod_credentials);
//   if (decision.pull) {
//     auto pull = (*store)->RecordPullIntent(copy);  // on disk before the pull begins
//     if (!pull) …
//     … pull …
//     copy.image_ref = pulled_ref;
//     auto r = pulled ? (*store)->RecordImagePulled(copy, credentials, {.pull = *pull})
//                     : (*store)->RecordImagePullFailed(copy, failure, *pull);
//   }
//
// Every call that returns success has reached the disk (fdatasync). All member functions except
// Close and the destructor may be called from any thread at any time. A store must not be used in
// the child of a fork. Processes that share a store must share a PID namespace (LMDB's reader
// table).

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
#include "waybill/evidence.h"
#include "waybill/limits.h"
#include "waybill/maintenance.h"
#include "waybill/metrics.h"
#include "waybill/options.h"
#include "waybill/owner.h"
#include "waybill/policy.h"
#include "waybill/report.h"
#include "waybill/result.h"
#include "waybill/revocation.h"
#include "waybill/rules.h"
#include "waybill/runtime_handler.h"
#include "waybill/types.h"
#include "waybill/user_namespace.h"

namespace [[gnu::visibility("default")]] waybill {

class NodeStore {
 public:
  // Opens as the only owner: takes the lock, walks the pages, opens LMDB, checks header and
  // witness, imports, replays. Idempotent: after a crash or an error at any point, open again.
  // These errors leave the store unchanged: kOwned (another process owns it, this process has it
  // open, or data.mdb changes while it is checked), kUnsafePath, kNewerSchema, kOlderSchema,
  // kInvalidArgument (options), kNotFound (create_if_missing is false, or pods_directory does not
  // exist); but with kOlderSchema or kNewerSchema, a commit that a crash cut short may have been
  // undone. After kDiskFull, kIo, kStoreFull, kConflict, kOutcomeUnknown, kInvalidArgument (an
  // empty list; see NodeStoreOptions::allow_empty) and kInterrupted (import_progress returned
  // false), what was recovered and imported so far is kept. A damaged database is not an error: it
  // is set aside, and recovery_report says so. Nor is it an error if the witness is missing,
  // unreadable or contradicts the store: the store turns distrustful, its records lose their
  // credentials, and `findings` says why.
  static Result<std::unique_ptr<NodeStore>> Open(NodeStoreOptions options);

  // Opens to decide and to read, with or without a live owner. Changes nothing; every recording
  // function returns kNotOwner. Needs write permission for the reader table (kUnsafePath
  // otherwise). kNotFound: no store. kDamaged: the store fails the walk, or its witness is missing
  // or contradicts it; opening it as an owner recovers it. kOwned: this process has the store open
  // already, or data.mdb changes while it is checked. kOlderSchema: an owner must migrate it.
  // kNewerSchema, kIo as for Open.
  static Result<std::unique_ptr<NodeStore>> Observe(ObserveOptions options);

  // Closes. No other call may be running, but requests of clients may (Serve).
  ~NodeStore();
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  // Commits waiting write-backs, syncs the witness, releases the lock. Later calls fail closed:
  // decisions answer "pull", and every other call that can fail returns kClosed. Do not call it
  // while another call runs. An error concerns only write-backs (as of Flush), the witness
  // (kDamaged: it was removed, replaced or changed while the store was open) or commit.mark (kIo:
  // it could not be written); the store is closed all the same.
  Result<void> Close();

  // Answers other processes from now on, on threads of its own: through the socket owner.sock
  // (0600) in the store's directory, Owner asks for what only the owner may do. Clients are
  // root and this process's effective user. None of them can delay a decision or Close, however it
  // behaves. A socket left by an owner that has ended is replaced. Serving ends with Close or
  // destruction, which wait for running requests and remove the socket. Errors, which leave
  // everything as it was: kConflict (this store serves already), kUnsafePath (owner.sock is not a
  // socket of this user, and is left alone), kInvalidArgument (options), kLimitExceeded (the path
  // has more than 107 bytes, and /proc is not mounted), kNotOwner, kDiskFull, kIo; kOwned and
  // kOutcomeUnknown as in "Recording a pull".
  Result<void> Serve(const ServeOptions& options = {});

  // What opening found and did. Constant; for an observer only `copy_of` is set.
  const OpeningReport& recovery_report() const;

  // --- Decisions -------------------------------------------------------------------------------

  // KEP-2535, MustAttemptImagePull. Needs all of `copy`. Never fails: if something can't be read,
  // verified or understood, the answer is "pull". Takes no lock that another thread holds, waits
  // for no write, and allocates nothing unless something is in quarantine or credentials are
  // fetched late. A credential that matched by hash or by coordinates only is queued to be written
  // back (Flush waits for that); an observer does not write back. Under Rules::kKubelet a decision
  // that would be "pull" first waits for the write-backs that are queued for the ref. Credentials
  // of another handler's copy do not count, but a record or intent under any handler shows that the
  // kubelet pulled the image (KEP-4216). A handler that is not in the registry: "pull",
  // kRuntimeHandlerUnknown.
  Decision MustAttemptPull(const ImageCopy& copy, CredentialSource& credentials);

  // What MustAttemptPull would answer; counts nothing, and writes nothing back.
  Decision PreviewDecision(const ImageCopy& copy, CredentialSource& credentials) const;

  // The kubelet's outer question: pull, use the image on the node, or refuse. Arguments as above.
  // Never fails either, but allocates strings. Counts
  // kubelet_image_manager_ensure_image_requests_total.
  EnsureOutcome EnsureImage(const ImageCopy& copy, PullPolicy policy,
                            CredentialSource& credentials);

  // Waits until every write-back queued so far is on disk. kIo, kDiskFull, kStoreFull and
  // kOutcomeUnknown as for a recording; a failed write-back is dropped, and the next decision that
  // needs it queues it again. Does nothing for an observer.
  Result<void> Flush();

  // --- Recording a pull (owner) ------------------------------------------------------------------
  // Each call is one transaction, on disk when it returns. Errors of all: kInvalidArgument,
  // kLimitExceeded, kConflict (two identities, one key), kNotOwner, kStoreFull, kDiskFull, kIo: the
  // store is unchanged. kOutcomeUnknown: the commit may or may not have happened; decisions answer
  // "pull" until the store is closed and opened again. kOwned: owner.lock, lock.mdb or data.mdb was
  // removed, replaced or truncated under this owner; nothing was changed, and decisions answer
  // "pull" likewise. A call that notices this after its commit returns kOutcomeUnknown.
  //
  // kClosed: after Close.
  //
  // A runtime handler that is not in the registry is kInvalidArgument, and the error lists those
  // that are. If the pull's intent is stored, its end may still be recorded, but without its
  // credentials: the guest platform is unknown by now. The default handler's own name means the
  // same as the empty one.

  // Records that a pull begins. Call it before each pull, and after the pull exactly one of
  // RecordImagePulled and RecordImagePullFailed. Counts the pull as in flight, and returns its ID,
  // by which a later process can end it, too. kLimitExceeded also above kMaxInFlightImages. The
  // image need not parse. Ignores copy.image_ref. Under Rules::kClosed each call makes an open pull
  // of its own; under Rules::kKubelet an image has one intent, whose ID every call returns.
  Result<PullId> RecordPullIntent(const ImageCopy& copy);

  // Records that the pull succeeded. Merges `credentials` into the record of copy.image_ref (the
  // ref that the runtime returned after the pull), drops one in-flight count of copy.image, and
  // clears the quarantine entries of both. nullopt: credentials unknown; the record then only says
  // that the kubelet pulled it. kInvalidArgument: the image does not parse, or the ref is empty;
  // intent and count stay (kubelet behaviour). An unreadable record is replaced. `result.manifest`
  // is kept with the record (digest and platform, if within their bounds). If the manifest or the
  // guest platform differs from the record's, it is another image: proofs for the old one are
  // dropped. `result.terms` are kept with each proof. Rules::kClosed removes only the open pull
  // `result.pull`; without an ID, the newest running pull of this string, or else the newest of
  // unknown end. Without an ID it may be any of these, so credentials forgotten since the oldest of
  // them began are not proven. A record under another spelling of the image is taken over: it is
  // then stored under this ref. Rules::kKubelet removes the intent when no count is left.
  Result<void> RecordImagePulled(const ImageCopy& copy,
                                 const std::optional<ImagePullCredentials>& credentials,
                                 const PullResult& result = {});

  // Records that the pull did not succeed. Drops one in-flight count. Ignores copy.image_ref.
  // Rules::kClosed chooses the open pull as RecordImagePulled does, removes it after
  // kNothingTransferred, and otherwise marks it failed or unknown; without an ID it then counts as
  // begun with the oldest that it may be. Rules::kKubelet removes the intent when no count is left.
  Result<void> RecordImagePullFailed(const ImageCopy& copy,
                                     PullFailure failure = PullFailure::kFailed, PullId pull = {});
  // As RecordImagePullFailed, which counts it as of no known class: StoreCounters::pulls.
  Result<void> RecordImagePullError(const ImageCopy& copy, const PullError& failed);

  // --- Evidence (owner) --------------------------------------------------------------------------
  // Under Rules::kClosed an image is open for one of two reasons: a credential was proven for it,
  // or it is in the ledger of images that came to the node without the kubelet. Under
  // Rules::kKubelet there is no ledger: ObserveImages does nothing, and says so.

  // Draws a token. Call it before you list the images, the pods (CleanUpUserNamespaces), or the
  // Secrets and service accounts (Reconcile).
  Result<ListToken> BeginList();

  // Learns the spellings of each listed image, unites records that turn out to be of one image, and
  // judges each image that has neither record nor ledger entry, once. A name that no open pull
  // could have given it proves that it came without the kubelet: it enters the ledger. Otherwise it
  // gets a record without credentials, and is closed until a pod proves some. A pull of `repo:tag`
  // could have given that tag and any `repo@digest`, one with a digest any `repo@digest`, and one
  // without a registry host any name (EvidenceOptions::short_names). If only a pull that began
  // after the token could have given a name, the image is left to a later list. Names that do not
  // parse do not count. An image that may be the same as one known under another ID or digest is
  // closed, or takes over that image's ledger entry. A distrustful store judges nothing. After a
  // gap (NodeStoreOptions::gap) a complete list closes each image that has neither record nor
  // ledger entry, and ends the gap. If the runtime shows that nobody pulled an image
  // (ListedImage::imported), it enters the ledger in each of these cases, even if a list closed it
  // before, or if it was pulled and a complete list lacked it since. It does not if an operator
  // closed it, if the pulled image was never gone, or if a record is of another handler's copy; an
  // entry without a handler is about every copy if all of the image's entries say so. What the
  // runtime pins enters the ledger after a gap, too, unless an open pull names it; a list without a
  // token leaves it to a later one.
  //
  // A complete list also drops open pulls that can bring nothing any more (EvidenceOptions,
  // ImageList::quiet_until). Records and ledger entries of images that are not on it are
  // remembered, unless they are newer than its token (EvidenceOptions::remember; kMaxRemembered of
  // each, the oldest go first). If the image comes back without a recorded pull, its record counts
  // again, less what was forgotten or grew too old. Its ledger entry counts again if the image has
  // one of the entry's names that no open pull could have given it, and the image does not come
  // back in a gap. A pull that succeeds begins anew: what was proven before the image was gone no
  // longer counts. If a list leaves an image unjudged, it does not remove what may be known of that
  // image under another ref. A list that has none of the images that the store knows may come from
  // another runtime, or the disk may not be mounted. Such a list settles no pull and closes no gap,
  // and in a gap it leaves the ledger entries of images without a record as they are, unless
  // ChangeOptions::allow_empty confirms it. A list without a token closes images, and does nothing
  // else. A list that changes nothing is not written, and a later process knows of its token only
  // if something was written since. kInvalidArgument: a token from the future, of another store, or
  // older than that of a list observed before (nothing was changed: list again); or, if remembering
  // is off, an empty complete list although there are records, open pulls or ledger entries
  // (ChangeOptions::allow_empty). kLimitExceeded: more than kMaxListedImages.
  Result<ClassifyReport> ObserveImages(const ImageList& list, const ChangeOptions& options = {});

  // Notes a gap while the store is open, as Gap::kYes does at opening: nobody recorded a pull that
  // happened or may still happen, since whoever records for a kubelet missed it. The store is
  // distrustful until the next complete list, which closes each image that has neither record nor
  // ledger entry, and leaves an open pull of anything. Does nothing while a gap is open already.
  // `why` (1 to kMaxReasonBytes, kInvalidArgument otherwise) goes into the journal of trust.
  Result<void> NoteGap(std::string_view why);

  // A kubelet on this node began no earlier than `began`, of the present boot, and what it read
  // then lacked everything that was forgotten before. Revocations of before may end (AgeLimits),
  // since no kubelet has in its memory what they are about. Owner only, from any thread.
  // kInvalidArgument: that is of another boot or in the future; nothing was changed. Otherwise
  // errors as in "Recording a pull".
  Result<void> NoteKubeletBegan(const BootTime& began);

  // Lists all open pulls, the oldest first.
  Result<std::vector<UnresolvedPull>> ListOpenPulls() const;
  // Records an operator's word that this pull brought nothing, and will bring nothing. The reason
  // (1 to kMaxReasonBytes) goes into the journal of trust. kNotFound: there is no such pull.
  // kConflict: it runs in this process.
  Result<void> DropOpenPull(PullId pull, std::string_view reason,
                            const ChangeOptions& options = {});

  // Lists all ledger entries, sorted by image ref and handler; also those that are only remembered
  // since their image is gone, which open nothing (PreloadedImage::absent_since).
  Result<std::vector<PreloadedImage>> ListLedger() const;
  // Records an operator's word that this image is preloaded, so that lists do not judge it.
  // `image.id` is any spelling of it; its names are kept. `source` and `reason`: 1 to
  // kMaxReasonBytes. Records of the image stay, but an operator's closing of this copy is taken
  // back; its quarantine stays, too, and closes it all the same. kInvalidArgument: no ID, or a
  // digest that two images have.
  // Without `pulled_too` an image that credentials were recorded for is kConflict.
  Result<void> AddToLedger(const ListedImage& image, std::string_view source,
                           std::string_view reason, const ChangeOptions& options = {},
                           bool pulled_too = true);
  // Records an operator's word that the image is not preloaded, also of one that is gone and only
  // remembered. Without a record of this copy it gets one without credentials, or the next list
  // would enter it again; of an image that is gone that is remembered, too, and closes it when it
  // is back. What was proven stays. From then on no list enters the image, whatever the runtime
  // says of it, until AddToLedger: only what pulls prove opens it. The reason goes into the journal
  // of trust. Returns whether there was an entry. Ignores copy.image. kLimitExceeded: operators
  // closed kMaxClosings copies; nothing was changed.
  Result<bool> RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                const ChangeOptions& options = {});

  // Records an operator's word on an image that is presumed preloaded (kPresumedSource). Returns
  // whether it was presumed; otherwise nothing is changed. One that is gone and only remembered can
  // be closed, as by RemoveFromLedger, but not confirmed. `reason`: 1 to kMaxReasonBytes; it is
  // kept in the entry, or in the record that closes the image. Ignores copy.image.
  // kInvalidArgument: no image ref, no reason or a longer one, an unknown runtime handler, or
  // Rules::kKubelet. kLimitExceeded: as there.
  Result<bool> SettlePresumed(const ImageCopy& copy, Settled settled, std::string_view reason,
                              const ChangeOptions& options = {});

  // Explains why the image is open or closed: everything that bears on the answer except the pod's
  // credentials and the policy. `names` are those that the runtime lists it by; if there are none,
  // copy.image is used. Rules::kKubelet: records and intents count under the exact ref and string
  // only, and there is no ledger. kInvalidArgument: the ref is empty, or the handler is not in the
  // registry. Errors of reading as in "Whole records".
  Result<Explanation> Explain(const ImageCopy& copy,
                              const std::vector<std::string>& names = {}) const;

  // --- Revocation (owner) ------------------------------------------------------------------------
  // Each call forgets at once: a decision that begins after it returned does not count what was
  // forgotten, not even after a crash; a decision that is under way sees all of the change or
  // nothing of it. Records stay, so the images must be verified again. What was forgotten does not
  // come back by a pull that began before, by what a decision that read before writes back, by a
  // restored backup, or by an import. A pull that began later proves anew; one whose beginning is
  // not on record (RecordPullIntent) counts as begun before. A revocation is kept for
  // AgeLimits::revocations, even of a credential that the store does not have: a kubelet's file or
  // a backup may have it. `options.dry_run` applies to all; `options.allow_empty` only to
  // Reconcile. kInvalidArgument: a namespace, name, ref or hash is empty. Otherwise errors as in
  // "Recording a pull".

  // Forgets a Secret by its coordinates, under every image name; `who.uid` empty: whatever the UID.
  // Another Secret with the same credentials still opens what it opened
  // (RevokeReport::equal_hashes).
  Result<RevokeReport> ForgetSecret(const CredentialName& who, const ChangeOptions& options = {});
  // Forgets a service account, likewise.
  Result<RevokeReport> ForgetServiceAccount(const CredentialName& who,
                                            const ChangeOptions& options = {});
  // Forgets every Secret and service account of the namespace.
  Result<RevokeReport> ForgetNamespace(std::string_view namespace_name,
                                       const ChangeOptions& options = {});
  // Forgets every credential of one handler's copy of the image, and that every pod may use it.
  // Under Rules::kClosed by any spelling; kInvalidArgument for a digest that two images have.
  // Ignores copy.image. Ledger entries stay (RemoveFromLedger). The handler may be one that is not
  // in the registry any more: its records stay until a prune.
  Result<RevokeReport> ForgetImage(const ImageCopy& copy, const ChangeOptions& options = {});
  // Forgets every Secret with this hash (HashCredentials). A Secret that is rotated to it later
  // opens nothing by its coordinates either, until a pull proves the hash.
  Result<RevokeReport> ForgetCredential(std::string_view credential_hash,
                                        const ChangeOptions& options = {});
  // Forgets one of the above, by what.kind. Ignores what.commit, since and untidied.
  Result<RevokeReport> Forget(const Revocation& what, const ChangeOptions& options = {});

  // Forgets each credential in a record that `truth` lacks, if it was proven by a pull that began
  // before `token` was drawn (BeginList). `truth` is every Secret and every service account that
  // exists, listed after that. A pull that began before and ends later records no Secret or service
  // account: it may have used one that is gone, so the next pod must prove its own.
  // kInvalidArgument also: a token from the future, of another store, or older than that of the
  // last truth; an empty truth although records mention credentials (ChangeOptions::allow_empty).
  // kLimitExceeded: more than kMaxTruth.
  Result<RevokeMissingReport> Reconcile(const ExistingCredentials& truth, const ListToken& token,
                                        const ChangeOptions& options = {});

  // Waits until forgotten credentials are taken out of all records, for a process that is about to
  // end. If very many records have some, a thread of the owner takes them out later
  // (RevokeReport::untidied). Returns the error of a batch that failed; the next call, or the next
  // owner, does the rest.
  Result<void> TidyUp();
  // Lists the revocations that are kept, in no order. Errors of reading as in "Whole records".
  Result<std::vector<Revocation>> ListRevocations() const;

  // --- Garbage collection (owner) ----------------------------------------------------------------

  // Deletes each record whose image is not listed, unless the record was written or confirmed after
  // `token` was drawn (BeginList); under Rules::kClosed ledger entries likewise. `images` is the
  // complete list of images on the node, by any spelling, made after that. Judges nothing
  // (ObserveImages does both, and is the better call). Under Rules::kClosed, deleting a record
  // whose image no list ever had leaves an open pull of anything, since the image may be listed
  // under another ref; the same holds for PruneBefore and DeleteRecord. If the list omits an image
  // by mistake, its record is lost; it may then be presumed preloaded (Rules::kKubelet), or is
  // judged anew (Rules::kClosed). An image that is listed under one handler keeps its record there
  // and loses those under others, except the last record that says that the image was pulled: that
  // one loses its credentials instead. kInvalidArgument: a token from the future or of another
  // store, or an empty list although records exist (ChangeOptions::allow_empty).
  Result<PruneReport> Prune(const std::vector<ListedImage>& images, const ListToken& token,
                            const ChangeOptions& options = {});

  // Deletes unlisted records that were last updated before `until`, but no ledger entries: the
  // kubelet's form of Prune. It compares clocks, so prefer a token. Rules::kKubelet cuts times to
  // the second, as the kubelet does. Rules::kClosed: a record whose time is more than a day ahead
  // of the clock gets the time of this call, so that a later call can delete it. If the clock was
  // ahead and was corrected, an `until` ahead of it does not delete records written since.
  // kInvalidArgument: an empty list, as for Prune.
  Result<PruneReport> PruneBefore(const std::vector<ListedImage>& images, Timestamp until,
                                  const ChangeOptions& options = {});

  // --- Whole records, as an adapter for the kubelet's PullRecordsAccessor needs them -------------
  // Calls that read: kDamaged: stored data can't be read or may have been lost; kUnavailable:
  // nothing can be read at this moment; kOutcomeUnknown and kOwned as for calls that write, from
  // the call on that found it. Calls that write: errors as in "Recording a pull"; in-flight counts
  // do not change. Calls about a record ignore copy.image, calls about an intent copy.image_ref.
  // kInvalidArgument: the member that the call needs is empty and the other is not. (Both may be
  // empty: a kubelet's files can hold a record of the empty ref and an intent of the empty image.)

  // Returns the record without credentials that do not count: past their age or their own end, not
  // checked by whom the policy demands, or forgotten but not taken out yet. So does ListRecords.
  // Rules::kClosed finds it under any spelling of the image; so does DeleteRecord. kNotFound: there
  // is certainly no such record.
  Result<ImagePulledRecord> GetRecord(const ImageCopy& copy) const;
  // Lists all records, in no order. If one can't be read, none is returned.
  Result<std::vector<ImagePulledRecord>> ListRecords() const;
  // Replaces the record of record.image_ref under record.runtime_handler. A credential that counts
  // in the stored record keeps its proof. One that matches such a credential by hash or coordinates
  // gets that one's proof (but a forgotten hash gets none by its coordinates). Any other is proven
  // by the running pull of the image name, on `terms`. Credentials forgotten since that pull began,
  // or forgotten at all if none runs, are left out; the stored Secret of the same coordinates
  // stays. Clears the ref's quarantine entry. kInvalidArgument: an empty ref, or an unknown handler
  // without such a record.
  Result<void> PutRecord(const ImagePulledRecord& record, const ProofTerms& terms = {});
  // Deletes the record, if it exists; records of the ref under other handlers stay, and so does a
  // quarantine entry.
  Result<void> DeleteRecord(const ImageCopy& copy);

  // Returns whether there is an open pull of this string and handler.
  Result<bool> HasIntent(const ImageCopy& copy) const;
  // Lists one intent for each image string and handler with an open pull, sorted by both.
  // ListOpenPulls says more.
  Result<std::vector<ImagePullIntent>> ListIntents() const;
  // Stores an intent, unless a pull of the image runs already. Counts no pull in flight.
  Result<void> PutIntent(const ImageCopy& copy);
  // Deletes the intents of this string and handler: the caller's word that their pulls bring
  // nothing more. While a pull of the image is in flight in this process, its intent stays until it
  // ends.
  Result<void> DeleteIntent(const ImageCopy& copy);

  // Lists the quarantine entries, which close images until they are pulled again.
  Result<std::vector<QuarantinedFile>> ListQuarantine() const;
  // Lists the preloaded images that a kubelet's files name.
  Result<std::vector<ImagePreloadedRecord>> ListPreloaded() const;

  // --- Runtime handlers (KEP-4216) ---------------------------------------------------------------
  // Errors of reading and of writing as in "Whole records".

  // Lists the registry of runtime handlers, sorted by name. Empty: no list was ever loaded, and
  // only the default handler is known.
  Result<std::vector<RuntimeHandler>> ListRuntimeHandlers() const;
  // Replaces the whole registry. Records of vanished handlers stay until they are pruned. Records
  // lose their credentials if their handler's guest platform changed since the pull, or if the
  // default handler's name changed. If only the default handler was known before, leftovers from an
  // earlier time with runtime classes are cleaned up, as by CollapseRuntimeHandlers.
  // kInvalidArgument: a name that is malformed or occurs twice, two defaults, a nameless handler
  // that is not the default, or an empty list although the registry has handlers
  // (ChangeOptions::allow_empty). kLimitExceeded. kConflict: pulls in flight in this process use a
  // handler whose guest platform or default this would change, or whose intents would become the
  // default's. After an error nothing was changed.
  Result<RuntimesReport> ReplaceRuntimeHandlers(const std::vector<RuntimeHandler>& handlers,
                                                const ChangeOptions& options = {});
  // Turns runtime classes off (KEP-4216, "Can the feature be disabled"). Each record under another
  // handler than the default becomes a record of the default's, without credentials. The default's
  // own record of that ref loses its credentials, too, since the copies can't be told apart.
  // Intents become the default's, and the other handlers leave the registry. kConflict: pulls for
  // other handlers are in flight in this process. Ignores allow_empty.
  Result<CollapseReport> CollapseRuntimeHandlers(const ChangeOptions& options = {});

  // --- User namespaces (KEP-127) -----------------------------------------------------------------
  // Errors of reading and of writing as in "Whole records"; kInvalidArgument for a malformed pod
  // UID (UserNamespaceRequest).

  // Returns the user namespace for the pod's sandbox and mounts. hostUsers unset or true: NODE, and
  // nothing is stored. False: the pod's mapping, always the same, on disk before it is returned. A
  // lookup costs as much as a decision. A pod's first lookup after an opening or a new token also
  // costs a commit, which keeps a cleanup from taking the range of a pod that came back. An
  // observer answers for pods with a mapping; for others it returns kNotOwner. Errors, in this
  // order:
  //   kConflict         hostUsers is set, and user namespaces are switched off (kubelet's words)
  //   kInvalidArgument  the runtime handler does not support user namespaces, or is not in the
  //                     registry (kubelet's words); or no registry was ever loaded: an old runtime
  //                     would ignore the mapping and run the pod as the host's root
  //   kConflict         the pod is held (QuarantinedPod), or its mapping has another length than
  //                     request.length
  //   kInvalidArgument  request.length is not the pool's, for a pod without a mapping
  //   kConflict         a pod of unknown range is held, so no new range is handed out
  //   kLimitExceeded    the pool is full (kubelet's words)
  // After an error nothing was changed.
  Result<UserNamespace> GetOrCreateUserNamespace(const UserNamespaceRequest& request);

  // Returns a pod's mapping. kNotFound: the pod certainly has no mapping. kConflict: it is held.
  Result<PodMapping> GetUserNamespace(std::string_view pod_uid) const;
  // Releases the mapping of a pod that is gone, and forgets that it was held. Returns whether there
  // was either. Ignores allow_empty.
  Result<bool> ReleaseUserNamespace(std::string_view pod_uid, const ChangeOptions& options = {});
  // Lists all mappings, sorted by host ID.
  Result<std::vector<PodMapping>> ListUserNamespaces() const;
  // Lists the held pods, sorted by UID.
  Result<std::vector<QuarantinedPod>> ListHeldPods() const;

  // Releases the mappings of pods in neither list. `existing` are the pods that the node should
  // run, `running` those that the runtime runs. Both are complete lists of UIDs, made in this order
  // after `token` was drawn (BeginList); mappings handed out since stay. All in one transaction.
  // kInvalidArgument: a token from the future, or both lists are empty although pods have mappings
  // or are held (ChangeOptions::allow_empty: a drained node has no pods).
  Result<CleanUpReport> CleanUpUserNamespaces(const std::vector<std::string>& existing,
                                              const std::vector<std::string>& running,
                                              ListToken token, const ChangeOptions& options = {});

  // Adopts a range: an operator confirms that the pod, whose file was unreadable, lives with it.
  // The pod is then no longer held. kInvalidArgument: host_id and length must be multiples of
  // 65,536, host_id also of length, as all ranges of kubelets; the range must not contain the
  // host's block or 2^32−1. kConflict: another pod has or may have some of it, or the pod has
  // another mapping and is not held. Does nothing if the pod has this mapping.
  Result<void> AdoptUserNamespace(std::string_view pod_uid, std::uint64_t host_id,
                                  std::uint64_t length);
  // Releases lost ranges (QuarantinedPod without a UID): an operator confirms that every live pod
  // in a user namespace is listed, so they no longer block new ones. Returns whether they did.
  Result<bool> ReleaseLostUserNamespaces(const ChangeOptions& options = {});

  // Counts ranges and pods.
  Result<PoolUse> GetUserNamespaceStatistics() const;

  // --- Backups -----------------------------------------------------------------------------------

  // Makes a compact copy of the store as it is now, checked and on the disk, in backup/ in the
  // store's directory (Backup in maintenance.h): for Restore. Only the owner may call it; other
  // calls go on meanwhile. The last three backups are kept, those of migrations included; of
  // several backups of this state, only the new one. kDiskFull: no room. kDamaged: the copy fails
  // its check. kUnavailable: another backup is being made, or all slots of readers are taken.
  // kUnsafePath, kNotOwner, kIo; kOwned and kOutcomeUnknown as in "Recording a pull". After each of
  // these no backup was removed; one may have been made if an old one, or the folder, can't be
  // written.
  Result<Backup> MakeBackup();

  // Writes such a copy into a new file outside the store, mode 0600, for Restore; also by an
  // observer, whether or not the owner serves. No other backup is removed. kInvalidArgument: `file`
  // exists already (it is left as it is), is not in an existing directory, or lies in the store.
  // kInterrupted: `progress` (bytes) returned false. Others as for MakeBackup. After each of these
  // the file was not made, except if the final sync of its directory failed: the error says so.
  Result<Backup> WriteBackup(const std::filesystem::path& file, const Progress& progress = {});

  // --- Going back --------------------------------------------------------------------------------

  // Writes the kubelet's own files, with its names and forms, to image_manager/{pulled,pulling,
  // observed-preloaded}. Each folder is replaced in one step, and the old one is kept aside. Images
  // in quarantine become files that the kubelet can't read either. A ref under several handlers
  // gets the default's credentials. Rules::kClosed: a record is written under every spelling of its
  // image, and images_on_node is required: each listed image with neither record nor ledger entry
  // gets a record without credentials. ID mappings go to pods/<uid>/userns; a file with other
  // content is kept beside it. Works beside an owner, but the kubelet must be stopped. kConflict,
  // and nothing is written: a pod is held, or the file of a pod that the store does not know
  // overlaps a range. kInvalidArgument: the store is distrustful, and options.images_on_node is
  // missing, or empty without options.allow_empty. kDamaged: a record is unreadable. kOwned:
  // another export into that directory is running. kNotFound, kUnsafePath, kDiskFull, kIo: the
  // directory. After an error the folders are complete, old or new; call it again.
  Result<ExportReport> Export(const ExportOptions& options) const;

  // --- State -------------------------------------------------------------------------------------
  // Errors of reading and of writing as in "Whole records".

  // Any call of calls.h, instantiated in the library, and the same by name as JSON.
  template <typename C>
  Result<typename C::Answer> Call(const C& call, const Progress& progress = {});
  Result<std::string> CallJson(std::string_view name, std::string_view parameters,
                               const Progress& progress = {});
  // RevokeMissing: a list in parts, which is applied when the last part has come.
  Result<RevokeMissingReport> ReconcileInParts(const RevokeMissing& part);
  // What it was opened with, and whether as the owner.
  Settings settings() const;
  bool owns() const;

  // Counts what the store holds.
  Result<StoreCounts> GetStatistics() const;
  // Returns what the store counts and holds (waybill/metrics.h). Never fails: Metrics::readable
  // says whether the gauges could be read.
  Metrics GetMetrics() const;

  // Walks the raw pages, reads every value, recomputes the digests. Damage is not an error; the
  // report lists it. Blocks the commits of this process meanwhile. Beside a busy owner it may have
  // to start over, and is kIo after several tries. kInterrupted: `progress` (bytes), which must not
  // call this store, returned false. kNotFound, kIo: the file can't be read.
  Result<VerifyReport> Verify(const Progress& progress = {}) const;

  // Returns whether the store is distrustful, and since when and why.
  Result<TrustState> GetTrust() const;
  // Records an operator's word that the store is whole again. `reason` (1 to kMaxReasonBytes,
  // kInvalidArgument otherwise) goes into the journal, also if the store was trustful.
  // Rules::kClosed: images on the node that have neither record nor ledger entry are closed, or
  // adopted (ClearOptions), and one open pull of anything stands for those that may still arrive.
  // Rules::kKubelet: images without a record are presumed preloaded again; ignores `options`.
  // kInvalidArgument: an empty list, as in ObserveImages.
  Result<ClassifyReport> ClearDistrust(std::string_view reason, const ClearOptions& options = {});

  class [[gnu::visibility("hidden")]] Impl;  // opaque

 private:
  explicit NodeStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill

#endif  // WAYBILL_NODE_STORE_H_
