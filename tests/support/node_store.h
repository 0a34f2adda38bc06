// The store as tests speak to it: waybill::NodeStore, with the calls that change it as functions of
// what a step of a test says. Each makes its call (waybill/calls.h), and does nothing else.

#ifndef WAYBILL_TESTS_SUPPORT_NODE_STORE_H_
#define WAYBILL_TESTS_SUPPORT_NODE_STORE_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/options.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "store/calls/node_store.h"
#include "waybill/calls.h"
#include "waybill/values.h"

namespace waybill::testing {

struct PullResult {
  PullId pull = {};
  std::optional<PulledManifest> manifest = {};
  std::optional<ListedImage> image = {};
  ProofTerms terms = {};
};

struct PullError {
  PullOutcome failure = PullOutcome::kFailed;
  PullErrorClass error_class = PullErrorClass::kUnknown;
  PullId pull = {};
};

enum class Settled : std::uint8_t { kPreloaded, kClosed };

class NodeStore : public waybill::NodeStore {
 public:
  explicit NodeStore(waybill::NodeStore&& opened) : waybill::NodeStore(std::move(opened)) {}
  static Result<std::unique_ptr<NodeStore>> Open(NodeStoreOptions options) {
    return std::make_unique<NodeStore>(
        std::move(*TRY(waybill::NodeStore::Open(std::move(options)))));
  }
  static Result<std::unique_ptr<NodeStore>> Observe(ObserveOptions options) {
    return std::make_unique<NodeStore>(
        std::move(*TRY(waybill::NodeStore::Observe(std::move(options)))));
  }

  // --- Pulls

  Result<PullId> RecordPullIntent(const ImageCopy& copy) {
    return PullId{TRY(Call(Of(copy, BeginPull()))).pull};
  }
  Result<void> PutIntent(const ImageCopy& copy) {
    return Done(Of(copy, BeginPull{.unless_running = true}));
  }
  Result<void> RecordImagePulled(const ImageCopy& copy,
                                 const std::optional<ImagePullCredentials>& credentials,
                                 const PullResult& result = {}) {
    EndPull call{.pull = result.pull.value,
                 .outcome = PullOutcome::kPulled,
                 .credentials = credentials,
                 .details = {.verified_by = result.terms.checker,
                             .valid_until = result.terms.good_until,
                             .node_had_no_credentials = result.terms.node_had_no_credentials,
                             .listed = result.image}};
    if (result.manifest) {
      call.details.manifest_digest = result.manifest->digest;
      call.details.platform = result.manifest->platform;
    }
    return Done(Of(copy, call));
  }
  Result<void> RecordImagePullError(const ImageCopy& copy, const PullError& failed) {
    return Done(Of(copy, EndPull{.pull = failed.pull.value,
                                 .outcome = failed.failure,
                                 .details = {.error = Text(WordOf(failed.error_class))}}));
  }
  Result<void> RecordImagePullFailed(const ImageCopy& copy,
                                     PullOutcome failure = PullOutcome::kFailed, PullId pull = {}) {
    return RecordImagePullError(copy, {.failure = failure, .pull = pull});
  }
  Result<void> DropOpenPull(PullId pull, std::string_view reason, const ChangeOptions& how = {}) {
    return Done(With(how, DropPulls{.pull = pull.value, .reason = Text(reason)}));
  }
  // Of the pulls of an image string that do not run in this process.
  Result<void> DeleteIntent(const ImageCopy& copy) {
    const auto dropped = Call(DropPulls{.image = Text(copy.image),
                                        .runtime_handler = Text(copy.runtime_handler),
                                        .reason = "a test"});
    const bool none = !dropped && (dropped.error().code == ErrorCode::kNotFound ||
                                   dropped.error().code == ErrorCode::kConflict);
    return dropped || none ? Result<void>() : dropped.error();
  }

  // --- Images

  Result<ListToken> BeginList() { return TRY(Call(waybill::BeginList())).token; }
  Result<ClassifyReport> ObserveImages(const ImageList& list, const ChangeOptions& how = {}) {
    return Call(With(how, ClassifyImages{.list = list}));
  }
  Result<void> AddToLedger(const ListedImage& image, std::string_view source,
                           std::string_view reason, const ChangeOptions& how = {},
                           bool pulled_too = true) {
    return Done(With(how, AllowImage{.image = image,
                                     .source = Text(source),
                                     .reason = Text(reason),
                                     .pulled_too = pulled_too}));
  }
  Result<bool> RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                const ChangeOptions& how = {}) {
    return TRY(Call(With(how, Of(copy, DenyImage{.reason = Text(reason)})))).changed;
  }
  Result<bool> SettlePresumed(const ImageCopy& copy, Settled settled, std::string_view reason,
                              const ChangeOptions& how = {}) {
    if (settled == Settled::kClosed) {
      const DenyImage deny{.reason = Text(reason), .only_unconfirmed = true};
      return TRY(Call(With(how, Of(copy, deny)))).changed;
    }
    const ListedImage image{.id = Text(copy.image_ref),
                            .runtime_handler = Text(copy.runtime_handler)};
    const AllowImage allow{.image = image, .reason = Text(reason), .only_unconfirmed = true};
    return TRY(Call(With(how, allow))).changed;
  }
  Result<void> PutRecord(const ImagePulledRecord& record, const ProofTerms& terms = {}) {
    return Done(PutImage{.record = record, .terms = terms});
  }
  Result<void> DeleteRecord(const ImageCopy& copy) { return Done(Of(copy, DeleteImage())); }
  Result<PruneReport> Prune(const std::vector<ListedImage>& images, const ListToken& token,
                            const ChangeOptions& how = {}) {
    return Call(With(how, waybill::PruneBefore{.images = images, .token = token}));
  }
  Result<PruneReport> PruneBefore(const std::vector<ListedImage>& images, Timestamp until,
                                  const ChangeOptions& how = {}) {
    return Call(With(how, waybill::PruneBefore{.images = images, .before = until}));
  }

  // --- Revocation

  Result<RevokeReport> Forget(const Revocation& what, const ChangeOptions& how = {}) {
    return Call(With(how, Revoke{.what = what}));
  }
  Result<RevokeReport> ForgetSecret(const CredentialName& who, const ChangeOptions& how = {}) {
    return Forget({.kind = RevocationKind::kSecret, .who = who}, how);
  }
  Result<RevokeReport> ForgetServiceAccount(const CredentialName& who,
                                            const ChangeOptions& how = {}) {
    return Forget({.kind = RevocationKind::kServiceAccount, .who = who}, how);
  }
  Result<RevokeReport> ForgetNamespace(std::string_view name, const ChangeOptions& how = {}) {
    return Forget({.kind = RevocationKind::kNamespace, .who = {.namespace_name = Text(name)}}, how);
  }
  Result<RevokeReport> ForgetImage(const ImageCopy& copy, const ChangeOptions& how = {}) {
    return Forget(Of(copy, Revocation{.kind = RevocationKind::kImage}), how);
  }
  Result<RevokeReport> ForgetCredential(std::string_view hash, const ChangeOptions& how = {}) {
    return Forget({.kind = RevocationKind::kCredential, .credential_hash = Text(hash)}, how);
  }
  Result<RevokeMissingReport> Reconcile(const ExistingCredentials& truth, const ListToken& token,
                                        const ChangeOptions& how = {}) {
    return Call(With(how, RevokeMissing{.existing = truth, .token = token}));
  }
  Result<std::vector<Revocation>> ListRevocations() {
    return TRY(Call(waybill::ListRevocations{.hashes = true})).revocations;
  }

  // --- Runtime handlers, the whole store

  Result<RuntimesReport> ReplaceRuntimeHandlers(const std::vector<RuntimeHandler>& handlers,
                                                const ChangeOptions& how = {}) {
    return Call(With(how, SetRuntimes{.handlers = handlers}));
  }
  Result<RuntimesReport> CollapseRuntimeHandlers(const ChangeOptions& how = {}) {
    return Call(With(how, SetRuntimes{.off = true}));
  }
  Result<void> NoteGap(std::string_view why) {
    return Done(NoteUnrecordedPeriod{.reason = Text(why)});
  }
  Result<ClassifyReport> ClearDistrust(std::string_view reason, AcceptLoss how = {}) {
    how.reason = reason;
    return Call(how);
  }
  Result<VerifyReport> Verify(const Progress& progress = {}) {
    return Call(waybill::Verify(), progress);
  }
  Result<Backup> MakeBackup() { return Call(waybill::MakeBackup()); }
  Result<ExportReport> Export(const ExportKubeletFiles& call) { return Call(call); }

 private:
  static std::string Text(std::string_view text) { return std::string(text); }
  // The call for that copy, as far as it has such members.
  template <typename C>
  static C Of(const ImageCopy& copy, C call) {
    if constexpr (requires { call.image; }) call.image = copy.image;
    if constexpr (requires { call.image_ref; }) call.image_ref = copy.image_ref;
    call.runtime_handler = copy.runtime_handler;
    return call;
  }
  template <typename C>
  static C With(const ChangeOptions& how, C call) {
    if constexpr (requires { call.allow_empty; }) call.allow_empty = how.allow_empty;
    call.dry_run = how.dry_run;
    return call;
  }
  template <typename C>
  Result<void> Done(const C& call) {
    TRY(Call(call));
    return {};
  }
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_NODE_STORE_H_
