// Made by ./dev generate from the public headers.
// The calls of an owner: asked for through its socket, and made on a store.

#ifndef WAYBILL_STORE_CONTROL_CALLS_H_
#define WAYBILL_STORE_CONTROL_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/control/frame.h"
#include "waybill/owner.h"

namespace waybill::internal {

template <auto Method>
struct OneCall {};
template <auto A, auto B>
constexpr bool IsSame() {
  return std::is_same_v<OneCall<A>, OneCall<B>>;
}

// A call's number is its place.
template <auto... Methods>
struct CallList {
  template <auto Method>
  static constexpr std::uint8_t NumberOf() {
    std::uint8_t at = 0;
    static_cast<void>(((IsSame<Method, Methods>() || (++at, false)) || ...));
    return at;
  }
};
using CallsOfOwner =
    CallList<&OwnerCalls::BeginList, &OwnerCalls::ObserveImages, &OwnerCalls::Prune,
             &OwnerCalls::PruneBefore, &OwnerCalls::AddToLedger, &OwnerCalls::RemoveFromLedger,
             &OwnerCalls::SettlePresumed, &OwnerCalls::DropOpenPull, &OwnerCalls::ClearDistrust,
             &OwnerCalls::AdoptUserNamespace, &OwnerCalls::ReleaseUserNamespace,
             &OwnerCalls::ReleaseLostUserNamespaces, &OwnerCalls::CleanUpUserNamespaces,
             &OwnerCalls::MakeBackup, &OwnerCalls::Forget, &OwnerCalls::Reconcile,
             &OwnerCalls::RecordPullIntent, &OwnerCalls::RecordImagePulled,
             &OwnerCalls::RecordImagePullFailed, &OwnerCalls::RecordImagePullError>;

// Makes a request of each call, and takes its result out of the answer.
class AskingCalls : public OwnerClient {
 public:
  Result<ListToken> BeginList() override;
  Result<ClassifyReport> ObserveImages(const ImageList& list,
                                       const ChangeOptions& options) override;
  Result<PruneReport> Prune(const std::vector<ListedImage>& images, const ListToken& token,
                            const ChangeOptions& options) override;
  Result<PruneReport> PruneBefore(const std::vector<ListedImage>& images, Timestamp until,
                                  const ChangeOptions& options) override;
  Result<void> AddToLedger(const ListedImage& image, std::string_view source,
                           std::string_view reason, const ChangeOptions& options) override;
  Result<bool> RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                const ChangeOptions& options) override;
  Result<bool> SettlePresumed(const ImageCopy& copy, Settled settled, std::string_view reason,
                              const ChangeOptions& options) override;
  Result<void> DropOpenPull(PullId pull, std::string_view reason,
                            const ChangeOptions& options) override;
  Result<ClassifyReport> ClearDistrust(std::string_view reason,
                                       const ClearOptions& options) override;
  Result<void> AdoptUserNamespace(std::string_view pod_uid, std::uint64_t host_id,
                                  std::uint64_t length) override;
  Result<bool> ReleaseUserNamespace(std::string_view pod_uid,
                                    const ChangeOptions& options) override;
  Result<bool> ReleaseLostUserNamespaces(const ChangeOptions& options) override;
  Result<CleanUpReport> CleanUpUserNamespaces(const std::vector<std::string>& existing,
                                              const std::vector<std::string>& running,
                                              ListToken token,
                                              const ChangeOptions& options) override;
  Result<Backup> MakeBackup() override;
  Result<RevokeReport> Forget(const Revocation& what, const ChangeOptions& options) override;
  Result<RevokeMissingReport> Reconcile(const ExistingCredentials& truth, const ListToken& token,
                                        const ChangeOptions& options) override;
  Result<PullId> RecordPullIntent(const ImageCopy& copy) override;
  Result<void> RecordImagePulled(const ImageCopy& copy,
                                 const std::optional<ImagePullCredentials>& credentials,
                                 const PullResult& result) override;
  Result<void> RecordImagePullFailed(const ImageCopy& copy, PullFailure failure,
                                     PullId pull) override;
  Result<void> RecordImagePullError(const ImageCopy& copy, const PullError& failed) override;

 protected:
  // What the owner answers. `changes`: the request may change the store, so if no answer comes,
  // it is not known whether it did.
  virtual Result<Bytes> Ask(const Bytes& request, bool changes) = 0;
  virtual std::filesystem::path directory() const = 0;

 private:
  template <auto Method, typename... Args>
  auto Call(const Args&... arguments);
};

// Each call is that of the store.
template <typename Store>
class CallsOn : public OwnerCalls {
 public:
  explicit CallsOn(Store& store) : store_(store) {}

  Result<ListToken> BeginList() override { return store_.BeginList(); }
  Result<ClassifyReport> ObserveImages(const ImageList& list,
                                       const ChangeOptions& options) override {
    return store_.ObserveImages(list, options);
  }
  Result<PruneReport> Prune(const std::vector<ListedImage>& images, const ListToken& token,
                            const ChangeOptions& options) override {
    return store_.Prune(images, token, options);
  }
  Result<PruneReport> PruneBefore(const std::vector<ListedImage>& images, Timestamp until,
                                  const ChangeOptions& options) override {
    return store_.PruneBefore(images, until, options);
  }
  Result<void> AddToLedger(const ListedImage& image, std::string_view source,
                           std::string_view reason, const ChangeOptions& options) override {
    return store_.AddToLedger(image, source, reason, options);
  }
  Result<bool> RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                const ChangeOptions& options) override {
    return store_.RemoveFromLedger(copy, reason, options);
  }
  Result<bool> SettlePresumed(const ImageCopy& copy, Settled settled, std::string_view reason,
                              const ChangeOptions& options) override {
    return store_.SettlePresumed(copy, settled, reason, options);
  }
  Result<void> DropOpenPull(PullId pull, std::string_view reason,
                            const ChangeOptions& options) override {
    return store_.DropOpenPull(pull, reason, options);
  }
  Result<ClassifyReport> ClearDistrust(std::string_view reason,
                                       const ClearOptions& options) override {
    return store_.ClearDistrust(reason, options);
  }
  Result<void> AdoptUserNamespace(std::string_view pod_uid, std::uint64_t host_id,
                                  std::uint64_t length) override {
    return store_.AdoptUserNamespace(pod_uid, host_id, length);
  }
  Result<bool> ReleaseUserNamespace(std::string_view pod_uid,
                                    const ChangeOptions& options) override {
    return store_.ReleaseUserNamespace(pod_uid, options);
  }
  Result<bool> ReleaseLostUserNamespaces(const ChangeOptions& options) override {
    return store_.ReleaseLostUserNamespaces(options);
  }
  Result<CleanUpReport> CleanUpUserNamespaces(const std::vector<std::string>& existing,
                                              const std::vector<std::string>& running,
                                              ListToken token,
                                              const ChangeOptions& options) override {
    return store_.CleanUpUserNamespaces(existing, running, token, options);
  }
  Result<Backup> MakeBackup() override { return store_.MakeBackup(); }
  Result<RevokeReport> Forget(const Revocation& what, const ChangeOptions& options) override {
    return store_.Forget(what, options);
  }
  Result<RevokeMissingReport> Reconcile(const ExistingCredentials& truth, const ListToken& token,
                                        const ChangeOptions& options) override {
    return store_.Reconcile(truth, token, options);
  }
  Result<PullId> RecordPullIntent(const ImageCopy& copy) override {
    return store_.RecordPullIntent(copy);
  }
  Result<void> RecordImagePulled(const ImageCopy& copy,
                                 const std::optional<ImagePullCredentials>& credentials,
                                 const PullResult& result) override {
    return store_.RecordImagePulled(copy, credentials, result);
  }
  Result<void> RecordImagePullFailed(const ImageCopy& copy, PullFailure failure,
                                     PullId pull) override {
    return store_.RecordImagePullFailed(copy, failure, pull);
  }
  Result<void> RecordImagePullError(const ImageCopy& copy, const PullError& failed) override {
    return store_.RecordImagePullError(copy, failed);
  }

 protected:
  const Store& store() const { return store_; }

 private:
  Store& store_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_CONTROL_CALLS_H_
