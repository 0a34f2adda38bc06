// Requests and answers as FlatBuffers (schema/control/control.fbs): what a client makes of a call,
// what an owner makes of a request, and back.

#ifndef WAYBILL_STORE_CONTROL_MESSAGES_H_
#define WAYBILL_STORE_CONTROL_MESSAGES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/control/frame.h"
#include "waybill/owner.h"

namespace waybill::internal {

// Does what the request says, and makes the answer: one to any bytes. Reading a request takes time
// and memory in proportion to its size, whatever is in it.
Bytes AnswerRequest(std::span<const std::uint8_t> request, OwnerCalls& owner);
// The answer to a request that was not read.
Bytes AnswerOf(const Error& error);

struct Greeting {
  std::uint64_t store = 0;  // as in a token
  OwnerDescription owner;
};
Bytes EncodeGreeting(const Greeting& greeting);
Result<Greeting> DecodeGreeting(std::span<const std::uint8_t> message);

// Of an answer to a request that the owner did not take: its error. kIo: it is something else.
Error DecodeRefusal(std::span<const std::uint8_t> message);

// Makes a request of each call, and takes its result out of the answer.
class AskingCalls : public OwnerClient {
 public:
  Result<ListToken> BeginList() override;
  Result<ObserveReport> ObserveImages(const ImageList& list, const ChangeOptions& options) override;
  Result<PruneReport> Prune(const std::vector<ImageOnNode>& images, const ListToken& token,
                            const ChangeOptions& options) override;
  Result<PruneReport> PruneBefore(const std::vector<ImageOnNode>& images, Timestamp until,
                                  const ChangeOptions& options) override;
  Result<void> AddToLedger(const ImageOnNode& image, std::string_view source,
                           std::string_view reason, const ChangeOptions& options) override;
  Result<bool> RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                const ChangeOptions& options) override;
  Result<bool> SettlePresumed(const ImageCopy& copy, Settled settled, std::string_view reason,
                              const ChangeOptions& options) override;
  Result<void> DropOpenPull(PullId pull, std::string_view reason,
                            const ChangeOptions& options) override;
  Result<ObserveReport> ClearDistrust(std::string_view reason,
                                      const ClearOptions& options) override;
  Result<void> AdoptUserNamespace(std::string_view pod_uid, std::uint64_t host_id,
                                  std::uint64_t length) override;
  Result<bool> ReleaseUserNamespace(std::string_view pod_uid,
                                    const ChangeOptions& options) override;
  Result<bool> ReleaseLostUserNamespaces(const ChangeOptions& options) override;
  Result<UserNamespaceCleanupReport> CleanUpUserNamespaces(const std::vector<std::string>& existing,
                                                           const std::vector<std::string>& running,
                                                           ListToken token,
                                                           const ChangeOptions& options) override;
  Result<Backup> MakeBackup() override;
  Result<ForgetReport> Forget(const Revocation& what, const ChangeOptions& options) override;
  Result<ReconcileReport> Reconcile(const ExistingCredentials& truth, const ListToken& token,
                                    const ChangeOptions& options) override;

  Result<PullId> RecordPullIntent(const ImageCopy& copy) override;
  Result<void> RecordImagePulled(const ImageCopy& copy,
                                 const std::optional<ImagePullCredentials>& credentials,
                                 const PullResult& result) override;
  Result<void> RecordImagePullFailed(const ImageCopy& copy, PullFailure failure,
                                     PullId pull) override;

 protected:
  // What the owner answers. `changes`: the request may change the store, so if no answer comes, it
  // is not known whether it did.
  virtual Result<Bytes> Ask(const Bytes& request, bool changes) = 0;
  virtual std::filesystem::path directory() const = 0;

 private:
  template <typename Value, typename Make, typename Take>
  Result<Value> Call(bool changes, const Make& make, const Take& take);
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_CONTROL_MESSAGES_H_
