// Requests to an owner, greetings and answers, of any bytes: no crash, and what is accepted is what
// a client would have asked for.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "store/control/messages.h"

namespace {

using namespace waybill;  // NOLINT(google-build-using-namespace)
using internal::Bytes;

std::string TextOf(const ListToken& t) {
  return std::to_string(t.commit) + "," + std::to_string(t.drawn.nanoseconds) + "," +
         std::string(t.drawn.boot_id.begin(), t.drawn.boot_id.end()) + "," +
         std::to_string(t.store);
}
std::string TextOf(const ChangeOptions& o) {
  return std::to_string(static_cast<int>(o.allow_empty)) +
         std::to_string(static_cast<int>(o.dry_run));
}
std::string TextOf(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& one : list) text += std::to_string(one.size()) + ":" + one;
  return text;
}
std::string TextOf(const std::vector<ListedImage>& images) {
  std::string text;
  for (const ListedImage& image : images) {
    text += TextOf({image.id, image.runtime_handler}) + "/" + TextOf(image.repo_tags) + "/" +
            TextOf(image.repo_digests) + (image.pinned ? "p" : "") + ";";
  }
  return text;
}

std::string TextOf(const std::vector<CredentialName>& names) {
  std::string text;
  for (const CredentialName& one : names) text += TextOf({one.namespace_name, one.name, one.uid});
  return text;
}

// Writes down what it is asked for.
class Notes final : public OwnerCalls {
 public:
  std::string text;

  Result<ListToken> BeginList() override {
    text = "begin";
    return ListToken{.commit = 7, .store = 8};
  }
  Result<ClassifyReport> ObserveImages(const ImageList& list, const ChangeOptions& how) override {
    text = "observe" + TextOf(list.images) + (list.token ? TextOf(*list.token) : "-") +
           (list.complete ? "c" : "") + TextOf({list.source}) + TextOf(how);
    return ClassifyReport{.listed = list.images.size(),
                          .judged = {{.image_ref = "ref", .because = list.source}},
                          .shared_digests = {list.source}};
  }
  Result<PruneReport> Prune(const std::vector<ListedImage>& images, const ListToken& token,
                            const ChangeOptions& how) override {
    text = "prune" + TextOf(images) + TextOf(token) + TextOf(how);
    return PruneReport{.examined = images.size()};
  }
  Result<PruneReport> PruneBefore(const std::vector<ListedImage>& images, Timestamp until,
                                  const ChangeOptions& how) override {
    text = "before" + TextOf(images) + std::to_string(until.seconds) + "." +
           std::to_string(until.nanoseconds) + TextOf(how);
    return PruneReport{.examined = images.size()};
  }
  Result<void> AddToLedger(const ListedImage& image, std::string_view source,
                           std::string_view reason, const ChangeOptions& how) override {
    text =
        "add" + TextOf({image}) + TextOf({std::string(source), std::string(reason)}) + TextOf(how);
    return {};
  }
  Result<bool> SettlePresumed(const ImageCopy& copy, Settled settled, std::string_view reason,
                              const ChangeOptions& how) override {
    text = (settled == Settled::kClosed ? "close" : "confirm") +
           TextOf({std::string(copy.image_ref), std::string(copy.runtime_handler),
                   std::string(reason)}) +
           TextOf(how);
    return true;
  }
  Result<bool> RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                const ChangeOptions& how) override {
    text = "remove" +
           TextOf({std::string(copy.image_ref), std::string(copy.runtime_handler),
                   std::string(reason)}) +
           TextOf(how);
    return true;
  }
  Result<void> DropOpenPull(PullId pull, std::string_view reason,
                            const ChangeOptions& how) override {
    text = "drop" + std::to_string(pull.value) + TextOf({std::string(reason)}) + TextOf(how);
    return {};
  }
  Result<ClassifyReport> ClearDistrust(std::string_view reason, const ClearOptions& how) override {
    text = "clear" + TextOf({std::string(reason)}) +
           (how.images_on_node ? TextOf(*how.images_on_node) : "-") + (how.adopt ? "a" : "") +
           TextOf(ChangeOptions{how.allow_empty, how.dry_run});
    return ClassifyReport();
  }
  Result<void> AdoptUserNamespace(std::string_view pod_uid, std::uint64_t host_id,
                                  std::uint64_t length) override {
    text = "adopt" + TextOf({std::string(pod_uid)}) + std::to_string(host_id) + "," +
           std::to_string(length);
    return Error{ErrorCode::kConflict, "message", "hint", Hint::kReleasePod};
  }
  Result<bool> ReleaseUserNamespace(std::string_view pod_uid, const ChangeOptions& how) override {
    text = "release" + TextOf({std::string(pod_uid)}) + TextOf(how);
    return false;
  }
  Result<bool> ReleaseLostUserNamespaces(const ChangeOptions& how) override {
    text = "lost" + TextOf(how);
    return false;
  }
  Result<CleanUpReport> CleanUpUserNamespaces(const std::vector<std::string>& existing,
                                              const std::vector<std::string>& running,
                                              ListToken token, const ChangeOptions& how) override {
    text = "cleanup" + TextOf(existing) + "/" + TextOf(running) + TextOf(token) + TextOf(how);
    return CleanUpReport{.released_pods = existing};
  }
  Result<Backup> MakeBackup() override {
    text = "backup";
    return Backup{.path = "a/b", .bytes = 9};
  }
  Result<RevokeReport> Forget(const Revocation& what, const ChangeOptions& how) override {
    text = "forget" + std::to_string(static_cast<int>(what.kind)) + TextOf({what.who}) +
           TextOf({what.image_ref, what.runtime_handler, what.credential_hash}) + TextOf(how);
    return RevokeReport{.secrets = 3, .stored = true};
  }
  Result<RevokeMissingReport> Reconcile(const ExistingCredentials& truth, const ListToken& token,
                                        const ChangeOptions& how) override {
    text = "reconcile" + TextOf(truth.secrets) + "/" + TextOf(truth.service_accounts) +
           TextOf(token) + TextOf(how);
    return RevokeMissingReport{.known = truth.secrets.size(),
                               .gone = truth.service_accounts.size()};
  }
  Result<PullId> RecordPullIntent(const ImageCopy& copy) override {
    text = "intent" + TextOf({std::string(copy.image), std::string(copy.runtime_handler)});
    return PullId{copy.image.size()};
  }
  Result<void> RecordImagePulled(const ImageCopy& copy,
                                 const std::optional<ImagePullCredentials>& credentials,
                                 const PullResult& result) override {
    text = "pulled" + TextOf({std::string(copy.image), std::string(copy.image_ref),
                              std::string(copy.runtime_handler)});
    if (credentials) {
      text += credentials->node_pods_accessible ? "+all" : "+";
      for (const ImagePullSecret& one : credentials->kubernetes_secrets) {
        text += TextOf({one.uid, one.namespace_name, one.name, one.credential_hash});
      }
      text += "/";
      for (const ImagePullServiceAccount& one : credentials->kubernetes_service_accounts) {
        text += TextOf({one.uid, one.namespace_name, one.name});
      }
    }
    text += std::to_string(result.pull.value);
    if (result.manifest) {
      const Platform& p = result.manifest->platform;
      text += TextOf({result.manifest->digest, p.architecture, p.os, p.os_version, p.variant}) +
              TextOf(p.os_features);
    }
    if (result.image) text += TextOf(std::vector<ListedImage>{*result.image});
    return {};
  }
  Result<void> RecordImagePullFailed(const ImageCopy& copy, PullFailure failure,
                                     PullId pull) override {
    text = "failed" + TextOf({std::string(copy.image), std::string(copy.runtime_handler)}) +
           std::to_string(static_cast<int>(failure)) + std::to_string(pull.value);
    return {};
  }
  Result<void> RecordImagePullError(const ImageCopy& copy, const PullError& error) override {
    text = "error" + TextOf({std::string(copy.image), std::string(copy.runtime_handler)}) +
           std::to_string(static_cast<int>(error.failure)) +
           std::to_string(static_cast<int>(error.error_class)) + std::to_string(error.pull.value);
    return {};
  }
};

// Asks what it is asked for, through a second request to `notes`.
class Relay final : public internal::AskingCalls {
 public:
  explicit Relay(OwnerCalls& notes) : notes_(notes) {}
  const OwnerDescription& owner() const override { return nobody_; }

 protected:
  Result<Bytes> Ask(const Bytes& request, bool) override {
    return internal::AnswerRequest(request, notes_);
  }
  std::filesystem::path directory() const override { return {}; }

 private:
  OwnerCalls& notes_;
  OwnerDescription nobody_;
};

// Answers whatever it is asked for with given bytes.
class Answering final : public internal::AskingCalls {
 public:
  explicit Answering(Bytes answer) : answer_(std::move(answer)) {}
  const OwnerDescription& owner() const override { return nobody_; }

 protected:
  Result<Bytes> Ask(const Bytes&, bool) override { return answer_; }
  std::filesystem::path directory() const override { return "/s"; }

 private:
  Bytes answer_;
  OwnerDescription nobody_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes message(data, data + size);
  if (size >= internal::kFrameHeaderBytes) {
    static_cast<void>(
        internal::ReadFrameHeader(std::span<const std::uint8_t, internal::kFrameHeaderBytes>(
            data, internal::kFrameHeaderBytes)));
  }
  static_cast<void>(internal::DecodeGreeting(message));
  static_cast<void>(internal::DecodeRefusal(message));

  Notes direct;
  const Bytes answer = internal::AnswerRequest(message, direct);
  Notes relayed;
  Relay relay(relayed);
  const Bytes again = internal::AnswerRequest(message, relay);
  // The same call with the same arguments, and the same answer.
  if (direct.text != relayed.text || (direct.text != "backup" && answer != again)) std::abort();

  Answering odd(message);
  static_cast<void>(odd.BeginList());
  static_cast<void>(odd.ObserveImages({}, {}));
  static_cast<void>(odd.Prune({}, {}, {}));
  static_cast<void>(odd.AddToLedger({}, {}, {}, {}));
  static_cast<void>(odd.ReleaseLostUserNamespaces({}));
  static_cast<void>(odd.CleanUpUserNamespaces({}, {}, {}, {}));
  static_cast<void>(odd.Forget({}, {}));
  static_cast<void>(odd.Reconcile({}, {}, {}));
  if (const auto backup = odd.MakeBackup()) {
    if (backup->path.parent_path() != "/s/backup") std::abort();
  }
  return 0;
}
