// How other processes ask a store's owner: NodeStore::Serve opens the socket owner.sock in the
// store's directory, and an OwnerClient asks there for what only the owner may do. A kubelet holds
// its store for as long as it lives; without the socket no other process could prune it, have
// images judged, make a backup or settle pulls.
//
//   auto owner = OwnerClient::Connect({.directory = "/var/lib/kubelet/waybill"});
//   if (!owner) …                                       // kNotFound: no owner serves
//   auto token = (*owner)->BeginList();
//   … list the images …
//   auto report = (*owner)->ObserveImages(
//       {.images = images, .token = *token, .complete = true}, {});
//
// An owner is not asked for decisions: an observer (NodeStore::Observe) makes them without waiting
// for it.

#ifndef WAYBILL_OWNER_H_
#define WAYBILL_OWNER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/evidence.h"
#include "waybill/maintenance.h"
#include "waybill/options.h"
#include "waybill/report.h"
#include "waybill/result.h"
#include "waybill/revocation.h"
#include "waybill/rules.h"
#include "waybill/types.h"
#include "waybill/user_namespace.h"

namespace [[gnu::visibility("default")]] waybill {

class NodeStore;

// What an owner does to its store for other processes. Each function has the arguments, results and
// errors of the NodeStore function of the same name, whether it is called in the owner's process
// (CallsOf) or through its socket (OwnerClient). Any thread may call any function at any time.
class OwnerCalls {
 public:
  virtual ~OwnerCalls() = default;
  OwnerCalls(const OwnerCalls&) = delete;
  OwnerCalls& operator=(const OwnerCalls&) = delete;

  virtual Result<ListToken> BeginList() = 0;
  virtual Result<ClassifyReport> ObserveImages(const ImageList& list,
                                               const ChangeOptions& options) = 0;
  virtual Result<PruneReport> Prune(const std::vector<ListedImage>& images, const ListToken& token,
                                    const ChangeOptions& options) = 0;
  virtual Result<PruneReport> PruneBefore(const std::vector<ListedImage>& images, Timestamp until,
                                          const ChangeOptions& options) = 0;
  virtual Result<void> AddToLedger(const ListedImage& image, std::string_view source,
                                   std::string_view reason, const ChangeOptions& options) = 0;
  virtual Result<bool> RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                        const ChangeOptions& options) = 0;
  virtual Result<bool> SettlePresumed(const ImageCopy& copy, Settled settled,
                                      std::string_view reason, const ChangeOptions& options) = 0;
  virtual Result<void> DropOpenPull(PullId pull, std::string_view reason,
                                    const ChangeOptions& options) = 0;
  virtual Result<ClassifyReport> ClearDistrust(std::string_view reason,
                                               const ClearOptions& options) = 0;
  virtual Result<void> AdoptUserNamespace(std::string_view pod_uid, std::uint64_t host_id,
                                          std::uint64_t length) = 0;
  virtual Result<bool> ReleaseUserNamespace(std::string_view pod_uid,
                                            const ChangeOptions& options) = 0;
  virtual Result<bool> ReleaseLostUserNamespaces(const ChangeOptions& options) = 0;
  virtual Result<CleanUpReport> CleanUpUserNamespaces(const std::vector<std::string>& existing,
                                                      const std::vector<std::string>& running,
                                                      ListToken token,
                                                      const ChangeOptions& options) = 0;
  virtual Result<Backup> MakeBackup() = 0;
  virtual Result<RevokeReport> Forget(const Revocation& what, const ChangeOptions& options) = 0;
  virtual Result<RevokeMissingReport> Reconcile(const ExistingCredentials& truth,
                                                const ListToken& token,
                                                const ChangeOptions& options) = 0;

  // Pulls. A client can't end a pull that the owner's own process began. kConflict: `pull` is such
  // a pull; or `pull` is 0, no client began a pull of that string, and one of the owner's runs.
  // With `pull` 0 a client ends the newest pull of the string that a client began; if clients began
  // several, and the owner runs one, too, the credentials count as unknown, and kNothingTransferred
  // as kFailed.
  virtual Result<PullId> RecordPullIntent(const ImageCopy& copy) = 0;
  virtual Result<void> RecordImagePulled(const ImageCopy& copy,
                                         const std::optional<ImagePullCredentials>& credentials,
                                         const PullResult& result) = 0;
  virtual Result<void> RecordImagePullFailed(const ImageCopy& copy, PullFailure failure,
                                             PullId pull) = 0;
  virtual Result<void> RecordImagePullError(const ImageCopy& copy, const PullError& failed) = 0;

 protected:
  OwnerCalls() = default;
};

// The calls on an open store of this process, which must outlive them.
std::unique_ptr<OwnerCalls> CallsOf(NodeStore& store);

// --- Serving -------------------------------------------------------------------------------------

// Bytes of one request, and of one answer.
inline constexpr std::size_t kMaxOwnerMessageBytes = std::size_t{128} << 20;

// For NodeStore::Serve. Out of range: kInvalidArgument.
struct ServeOptions {
  // How long a client may take to send its request, and again to take its answer: 1 ms to 1 hour.
  // Then its connection is closed.
  std::chrono::milliseconds patience{10'000};
  // Connections at the same time: 1 to 1,024. One process gets at most a quarter of them, but at
  // least one. If all are taken, the client that has been sending its request for longest is
  // disconnected.
  std::size_t connections = 32;
};

// --- Asking --------------------------------------------------------------------------------------

// What a serving owner says of itself.
struct OwnerDescription {
  std::int64_t process_id = 0;  // in the owner's PID namespace
  Rules rules = Rules::kClosed;
  EvidenceOptions evidence = {};

  friend bool operator==(const OwnerDescription& a, const OwnerDescription& b) {
    return a.process_id == b.process_id && a.rules == b.rules &&
           a.evidence.grace == b.evidence.grace && a.evidence.window == b.evidence.window &&
           a.evidence.short_names == b.evidence.short_names &&
           a.evidence.remember == b.evidence.remember;
  }
};

struct OwnerClientOptions {
  std::filesystem::path directory = {};  // the store's
  // How long the owner may take to accept a connection, and to take each part of a request: 1 ms
  // to 1 day. A request may have to wait for those of others, and for a backup.
  std::chrono::milliseconds patience{10'000};
  std::chrono::milliseconds answer_patience{600'000};  // for the answer, 1 ms to 1 day
};

// Asks the owner of a store; paths in its answers are in the client's spelling of the directory.
// Each call makes a connection of its own, so a client holds nothing of the owner's between two
// calls, and continues after the owner's restart. Errors of each call, beside those of the
// NodeStore function:
//   kNotFound         no owner serves any more
//   kConflict         another owner serves than when the client connected, by OwnerDescription
//   kUnavailable      the owner is busy, closes, or did not take the request: try again
//   kLimitExceeded    the request has more than kMaxOwnerMessageBytes
//   kUnsafePath       as of Connect
//   kInvalidArgument  the owner is of an earlier version, which does not know the call
//   kIo               the socket
// After each of these nothing was changed.
//   kOutcomeUnknown   the connection was lost, or answer_patience passed, after the request was
//                     sent: the change may or may not have happened, or may still happen. Look at
//                     the store to find out. Not for a dry run, nor for BeginList: kUnavailable
class OwnerClient : public OwnerCalls {
 public:
  // kNotFound: there is no such directory, or no owner serves there. kUnsafePath: the directory is
  // not private to the caller's effective user, owner.sock there is not a socket of that user, or a
  // user other than that and root answers it. kOwned: the owner's version speaks another protocol.
  // kUnavailable: the owner does not answer in time, or has no connection left. kInvalidArgument:
  // options. kIo.
  static Result<std::unique_ptr<OwnerClient>> Connect(OwnerClientOptions options);

  // What the owner said when the client connected. Constant.
  virtual const OwnerDescription& owner() const = 0;
};

}  // namespace waybill

#endif  // WAYBILL_OWNER_H_
