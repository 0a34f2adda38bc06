// NodeStore: a node's store behind the door. What each call does, and which errors it has, stands
// in waybill/calls.h; what that does not say, beside the call's Do in this folder
// (store/door.h).
//
// Every call that returns success has reached the disk (fdatasync). All member functions except
// Close and the destructor may be called from any thread at any time. A store must not be used in
// the child of a fork. Processes that share a store must share a PID namespace (LMDB's reader
// table).

#ifndef WAYBILL_STORE_CALLS_NODE_STORE_H_
#define WAYBILL_STORE_CALLS_NODE_STORE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "migrations/kubelet_files/what_it_must_find.h"
#include "store/base/function_ref.h"
#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/images/kubelet_file_row.h"
#include "waybill/calls.h"
#include "waybill/store.h"
#include "waybill/values.h"

namespace waybill {

struct KubeletFilesRead {
  std::vector<internal::KubeletFileRow> rows = {};
  bool is_whole = true;    // otherwise some can't be read, or are missing
  std::uint64_t seed = 0;  // of the hashes in them
};

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
  // Of one that nobody serves.
  NodeStore(NodeStore&& other) noexcept;
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
  // What it is decided by, and whether this is the owner.
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
  // What MustAttemptPull would answer; counts nothing, and writes nothing back. `what_if`: under
  // another policy than the store's, by which nobody may go.
  Decision PreviewDecision(const ImageCopy& copy, CredentialSource& credentials,
                           const VerificationPolicy* what_if = nullptr) const;
  EnsureOutcome EnsureImage(const ImageCopy& copy, PullPolicy policy, CredentialSource& credentials,
                            bool is_preview = false, const VerificationPolicy* what_if = nullptr);
  // A write-back that failed is dropped; the next decision that needs it queues it again. Does
  // nothing for an observer.
  Result<void> Flush();

  // What a decision meets on its way, up to the pod's credentials, and everything else that bears
  // on the answer. `names` are those that the runtime lists it by; if there are none, copy.image is
  // used. `what_if`: as of PreviewDecision.
  Result<Explanation> Explain(const ImageCopy& copy, const std::vector<std::string>& names = {},
                              const VerificationPolicy* what_if = nullptr) const;

  // --- What the store has ------------------------------------------------------------------------
  // In no order, where none is said. If one can't be read, none is returned.

  // Without credentials that do not count; so does ListRecords. Mode::kStrict finds it under any
  // spelling. Ignores copy.image. kNotFound: there is certainly no such record.
  Result<ImagePulledRecord> GetRecord(const ImageCopy& copy) const;
  Result<std::vector<ImagePulledRecord>> ListRecords() const;
  // Sorted by image ref and handler; also those that are only remembered.
  Result<std::vector<PreloadedImage>> ListLedger() const;
  Result<std::vector<QuarantinedFile>> ListQuarantine() const;
  // Those that a kubelet's files name.
  Result<std::vector<ImagePreloadedRecord>> ListPreloaded() const;
  // The oldest first.
  Result<std::vector<UnresolvedPull>> ListOpenPulls() const;
  // One for each image string and handler with an open pull, sorted by both.
  Result<std::vector<ImagePullIntent>> ListIntents() const;
  Result<bool> HasIntent(const ImageCopy& copy) const;
  // Sorted by name. Empty: no list was ever loaded, and only the default handler is known.
  Result<std::vector<RuntimeHandler>> ListRuntimeHandlers() const;
  Result<StoreCounts> GetStatistics() const;
  Result<TrustState> GetTrust() const;
  // Every family that applies, in a fixed order. Never fails: waybill_store_readable says whether
  // the gauges could be read.
  std::vector<MetricFamily> GetMetrics() const;

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

  // --- What no caller of the door does -----------------------------------------------------------

  // A kubelet on this node began no earlier than `began`, of the present boot, and what it read
  // then lacked everything that was forgotten before. Revocations of before may end
  // (NodeStoreOptions::revocations_kept). kInvalidArgument: that is of another boot or in the
  // future.
  Result<void> NoteKubeletBegan(const BootTime& began);
  // MakeBackup into a file, whose path may be relative: a command's own directory is known.
  Result<Backup> WriteBackup(const std::filesystem::path& file, const Progress& progress = {});

  // The next calls are the guard's. Errors: kClosed, kNotOwner, kIo; of what writes also
  // kDiskFull; these leave the store as it was. kOutcomeUnknown: a write may have been made.
  //
  // What a kubelet's files are compared with. The row of an image that can't be read is left out:
  // the image is one that nobody knows. kDamaged: pulls or revocations can't be read.
  Result<internal::StoreContent> GetContent() const;
  // What is known of a kubelet's files (store/images/kubelet_file_row.h).
  Result<KubeletFilesRead> GetKubeletFiles() const;
  Result<void> PutKubeletFile(const internal::KubeletFileRow& row);
  Result<void> EraseKubeletFile(const std::string& path);
  // Of the newest commit.
  std::uint64_t CommitSequence() const;
  // Something newer than the store may be lost: until an operator accepts that, it is degraded.
  Result<void> NoteLoss(const std::string& reason);
  // As if a pull of unknown end could have brought any image.
  Result<void> NotePullOfAnything();
  // What `calls` changes by calls of this store becomes one commit: all of it, or nothing, if it
  // returns each error that it does not know to have changed nothing. It may run twice, and on
  // another thread while this one waits. What it reads is of before. A dry run in it is refused.
  Result<void> InOneCommit(internal::FunctionRef<Result<void>()> calls);

  class Impl;  // what the rooms work on: store/calls/impl.h
  Impl& impl() const { return *impl_; }

 private:
  explicit NodeStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What would have to change to reverse a decision with this reason, in one sentence without a full
// stop. `why` explains the same image.
std::string OtherAnswer(Reason reason, const Explanation& why);

}  // namespace waybill

#endif  // WAYBILL_STORE_CALLS_NODE_STORE_H_
