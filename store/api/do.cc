// What each call does.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "migrations/runtime/documents.h"
#include "migrations/runtime/pull_sources.h"
#include "store/api/door.h"
#include "store/api/maintenance.h"
#include "store/base/caught.h"
#include "store/base/image_name.h"
#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "store/node/facade/node_store.h"
#include "store/node/pulls/pull_error.h"
#include "store/streaming/stream_url.h"
#include "store/streaming/streaming_plan.h"
#include "store/streaming/streaming_store.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::door {

namespace {

Error Invalid(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what) + "; nothing was changed", std::move(hint)};
}

// Only the outcome of a call that answers nothing.
Result<Nothing> Done(const Result<void>& result) {
  if (!result) return result.error();
  return Nothing();
}

ImageCopy CopyOf(const auto& call) {
  ImageCopy copy{.runtime_handler = call.runtime_handler};
  if constexpr (requires { call.image_ref; }) copy.image_ref = call.image_ref;
  if constexpr (requires { ImageCopy{.image = call.image}; }) copy.image = call.image;
  return copy;
}

ChangeOptions OptionsOf(const auto& call) {
  ChangeOptions options{.dry_run = call.dry_run};
  if constexpr (requires { call.allow_empty; }) options.allow_empty = call.allow_empty;
  return options;
}

// Borrows what it is made of.
class Credentials {
 public:
  Credentials(std::vector<ImagePullSecret>&&,
              const std::optional<ImagePullServiceAccount>&) = delete;
  Credentials(const std::vector<ImagePullSecret>& secrets,
              const std::optional<ImagePullServiceAccount>& service_account)
      : secrets_(secrets.begin(), secrets.end()), source_(Of(service_account)) {}
  CredentialSource& source() { return source_; }

 private:
  PodCredentials Of(const std::optional<ImagePullServiceAccount>& service_account) {
    PodCredentials credentials{.secrets = secrets_};
    if (service_account) credentials.service_account.emplace(*service_account);
    return credentials;
  }
  std::vector<ImagePullSecretView> secrets_;
  FixedCredentials source_;
};

PullDecision Told(const Decision& decision) {
  return {decision.pull, std::string(CheckResultName(decision.result)),
          std::string(ReasonName(decision.reason)), std::string(ReasonText(decision.reason))};
}

void LeaveOutHashes(ImagePulledRecord& record) {
  for (auto& [name, credentials] : record.credential_mapping) {
    for (ImagePullSecret& secret : credentials.kubernetes_secrets) secret.credential_hash.clear();
  }
}

}  // namespace

// --- Decisions -----------------------------------------------------------------------------------

Result<MustPull::Answer> Do(NodeStore& store, const MustPull& call, const Progress&) {
  Credentials credentials(call.secrets, call.service_account);
  return Told(store.MustAttemptPull(CopyOf(call), credentials.source()));
}

Result<EnsureImage::Answer> Do(NodeStore& store, const EnsureImage& call, const Progress&) {
  Credentials credentials(call.question.secrets, call.question.service_account);
  const EnsureOutcome outcome =
      store.EnsureImage(CopyOf(call.question), call.pull_policy, credentials.source());
  EnsureImage::Answer answer{std::string(WordOf(outcome.action)), outcome.message};
  if (outcome.decision) answer.decision = Told(*outcome.decision);
  return answer;
}

Result<Explain::Answer> Do(NodeStore& store, const Explain& call, const Progress&) {
  Explain::Answer answer;
  answer.explanation = TRY(store.Explain(CopyOf(call), call.names));
  if (call.secrets || call.service_account) {
    const auto secrets = call.secrets.value_or(std::vector<ImagePullSecret>());
    Credentials credentials(secrets, call.service_account);
    answer.decision = Told(store.PreviewDecision(CopyOf(call), credentials.source()));
  }
  return answer;
}

// --- Pulls ---------------------------------------------------------------------------------------

Result<BeginPull::Answer> Do(NodeStore& store, const BeginPull& call, const Progress&) {
  if (call.unless_running) {
    TRY(store.PutIntent(CopyOf(call)));
    return BeginPull::Answer();
  }
  const PullId pull = TRY(store.RecordPullIntent(CopyOf(call)));
  return BeginPull::Answer{pull.value};
}

Result<EndPull::Answer> Do(NodeStore& store, const EndPull& call, const Progress&) {
  const ImageCopy copy = CopyOf(call);
  const PullDetails& details = call.details;
  if (call.outcome == PullOutcome::kPulled) {
    if (call.credentials && call.credentials->node_pods_accessible &&
        !(call.credentials->kubernetes_secrets.empty() &&
          call.credentials->kubernetes_service_accounts.empty())) {
      return Invalid("everyPod beside Secrets or service accounts",
                     "say which of them the pull used");
    }
    PullResult result{.pull = {call.pull},
                      .image = details.listed,
                      .terms = {.checker = details.verified_by, .good_until = details.valid_until}};
    if (details.platform && details.manifest_digest.empty()) {
      return Invalid("a platform without the digest of its manifest", "give manifestDigest, too");
    }
    if (!details.manifest_digest.empty()) {
      result.manifest.emplace(details.manifest_digest, details.platform.value_or(Platform()));
    }
    return Done(store.RecordImagePulled(copy, call.credentials, result));
  }
  const PullFailure failure = call.outcome == PullOutcome::kFailed ? PullFailure::kFailed
                              : call.outcome == PullOutcome::kNothing
                                  ? PullFailure::kNothingTransferred
                                  : PullFailure::kUnknown;
  const auto named = FromWord<PullErrorClass>(details.error, "class of errors");
  return Done(store.RecordImagePullError(
      copy, {.failure = failure,
             .error_class = named ? *named : ClassifyPullError(details.error),
             .pull = {call.pull}}));
}

Result<ListPulls::Answer> Do(NodeStore& store, const ListPulls& call, const Progress&) {
  ListPulls::Answer answer;
  answer.pulls = TRY(store.ListOpenPulls());
  if (!call.image) return answer;
  // The default's pulls are stored without its name.
  std::string handler = call.runtime_handler;
  for (const RuntimeHandler& known : TRY(store.ListRuntimeHandlers())) {
    if (known.is_default && known.name == handler) handler.clear();
  }
  std::erase_if(answer.pulls, [&](const UnresolvedPull& pull) {
    return pull.anything || pull.image != *call.image || pull.runtime_handler != handler;
  });
  return answer;
}

Result<DropPulls::Answer> Do(NodeStore& store, const DropPulls& call, const Progress& progress) {
  if ((call.pull != 0) == call.image.has_value()) {
    return Invalid("name either one pull by its number, or an image string",
                   "ListPulls has the pulls that are not resolved");
  }
  if (call.pull != 0) {
    TRY(store.DropOpenPull({call.pull}, call.reason, OptionsOf(call)));
    return DropPulls::Answer{1};
  }
  const ListPulls list{.image = call.image, .runtime_handler = call.runtime_handler};
  const std::vector<UnresolvedPull> before = TRY(Do(store, list, progress)).pulls;
  if (before.empty()) {
    return Error{ErrorCode::kNotFound, "no pull of that image is unresolved; nothing was changed",
                 "ListPulls has the pulls that are not resolved"};
  }
  DropPulls::Answer answer;
  if (call.dry_run || store.settings().mode == Mode::kStrict) {
    const std::string reason = call.dry_run && call.reason.empty() ? "dry run" : call.reason;
    std::optional<Error> runs;
    for (const UnresolvedPull& pull : before) {
      const auto dropped = store.DropOpenPull(pull.id, reason, OptionsOf(call));
      if (dropped) {
        ++answer.dropped;
      } else if (dropped.error().code == ErrorCode::kConflict) {
        runs = dropped.error();
      } else if (dropped.error().code != ErrorCode::kNotFound) {
        return dropped.error();
      }
    }
    if (answer.dropped == 0 && runs) return *std::move(runs);
    return answer;
  }
  TRY(store.DeleteIntent({.image = *call.image, .runtime_handler = call.runtime_handler}));
  const std::vector<UnresolvedPull> after = TRY(Do(store, list, progress)).pulls;
  for (const UnresolvedPull& pull : before) {
    const auto is_it = [&](const UnresolvedPull& left) { return left.id == pull.id; };
    if (std::none_of(after.begin(), after.end(), is_it)) ++answer.dropped;
  }
  return answer;
}

// --- Images --------------------------------------------------------------------------------------

Result<BeginList::Answer> Do(NodeStore& store, const BeginList&, const Progress&) {
  const ListToken token = TRY(store.BeginList());
  return BeginList::Answer{token};
}

Result<ClassifyImages::Answer> Do(NodeStore& store, const ClassifyImages& call, const Progress&) {
  return store.ObserveImages(call.list, OptionsOf(call));
}

Result<ListImages::Answer> Do(NodeStore& store, const ListImages& call, const Progress&) {
  ListImages::Answer answer;
  if (call.image_ref.empty()) {
    answer.records = TRY(store.ListRecords());
    std::sort(answer.records.begin(), answer.records.end(), [](const auto& a, const auto& b) {
      return std::tie(a.image_ref, a.runtime_handler) < std::tie(b.image_ref, b.runtime_handler);
    });
  } else {
    auto record = store.GetRecord(CopyOf(call));
    if (!record && record.error().code != ErrorCode::kNotFound) return record.error();
    if (record) answer.records.push_back(*std::move(record));
  }
  if (!call.hashes) std::for_each(answer.records.begin(), answer.records.end(), LeaveOutHashes);
  if (!call.image_ref.empty()) return answer;
  answer.preloaded = TRY(store.ListLedger());
  answer.quarantined = TRY(store.ListQuarantine());
  return answer;
}

Result<AllowImage::Answer> Do(NodeStore& store, const AllowImage& call, const Progress&) {
  if (call.only_unconfirmed) {
    const bool was_presumed = TRY(store.SettlePresumed(
        {.image_ref = call.image.id, .runtime_handler = call.image.runtime_handler},
        Settled::kPreloaded, call.reason, OptionsOf(call)));
    return AllowImage::Answer{was_presumed};
  }
  TRY(store.AddToLedger(call.image, call.source, call.reason, OptionsOf(call), call.pulled_too));
  return AllowImage::Answer{true};
}

Result<DenyImage::Answer> Do(NodeStore& store, const DenyImage& call, const Progress&) {
  const ImageCopy copy = CopyOf(call);
  const auto changed =
      call.only_unconfirmed
          ? store.SettlePresumed(copy, Settled::kClosed, call.reason, OptionsOf(call))
          : store.RemoveFromLedger(copy, call.reason, OptionsOf(call));
  if (!changed) return changed.error();
  return DenyImage::Answer{*changed};
}

Result<PutImage::Answer> Do(NodeStore& store, const PutImage& call, const Progress&) {
  return Done(store.PutRecord(call.record, call.terms));
}

Result<DeleteImage::Answer> Do(NodeStore& store, const DeleteImage& call, const Progress&) {
  return Done(store.DeleteRecord(CopyOf(call)));
}

Result<PruneBefore::Answer> Do(NodeStore& store, const PruneBefore& call, const Progress&) {
  if (call.before.has_value() == call.token.has_value()) {
    return Invalid("give either a time or a token", "BeginList draws a token");
  }
  return call.token ? store.Prune(call.images, *call.token, OptionsOf(call))
                    : store.PruneBefore(call.images, *call.before, OptionsOf(call));
}

// --- Revocation ----------------------------------------------------------------------------------

Result<Revoke::Answer> Do(NodeStore& store, const Revoke& call, const Progress&) {
  return store.Forget(call.what, OptionsOf(call));
}

Result<RevokeMissing::Answer> Do(NodeStore& store, const RevokeMissing& call, const Progress&) {
  return store.ReconcileInParts(call);
}

Result<ListRevocations::Answer> Do(NodeStore& store, const ListRevocations& call, const Progress&) {
  ListRevocations::Answer answer;
  answer.revocations = TRY(store.ListRevocations());
  const auto in_order = [](const Revocation& one) {
    return std::tie(one.commit, one.kind, one.who, one.image_ref, one.runtime_handler,
                    one.credential_hash);
  };
  std::sort(answer.revocations.begin(), answer.revocations.end(),
            [&](const auto& a, const auto& b) { return in_order(a) < in_order(b); });
  for (Revocation& one : answer.revocations) {
    if (!call.hashes) one.credential_hash.clear();
  }
  return answer;
}

// --- Runtime handlers ----------------------------------------------------------------------------

Result<ListRuntimes::Answer> Do(NodeStore& store, const ListRuntimes&, const Progress&) {
  ListRuntimes::Answer answer;
  answer.handlers = TRY(store.ListRuntimeHandlers());
  return answer;
}

Result<SetRuntimes::Answer> Do(NodeStore& store, const SetRuntimes& call, const Progress&) {
  const int ways =
      (call.handlers.empty() ? 0 : 1) + (call.status.empty() ? 0 : 1) + (call.off ? 1 : 0);
  if (ways > 1) return Invalid("give only one of handlers, status and off", "");
  if (call.off) {
    CollapseReport collapsed = TRY(store.CollapseRuntimeHandlers(OptionsOf(call)));
    return RuntimesReport{.changed = std::move(collapsed.handlers),
                          .records_to_verify = collapsed.records_to_verify,
                          .records_collapsed = collapsed.records,
                          .intents_collapsed = collapsed.intents};
  }
  if (call.status.empty()) return store.ReplaceRuntimeHandlers(call.handlers, OptionsOf(call));
  const auto handlers = TRY(DecodeRuntimeStatus(call.status));
  return store.ReplaceRuntimeHandlers(handlers, OptionsOf(call));
}

// --- Pods in user namespaces ---------------------------------------------------------------------

Result<ClaimUserNamespace::Answer> Do(NodeStore& store, const ClaimUserNamespace& call,
                                      const Progress&) {
  UserNamespaceRequest request{.pod_uid = call.pod_uid,
                               .host_users = call.host_users,
                               .runtime_handler = call.runtime_handler};
  if (call.length != 0) request.length = call.length;
  const UserNamespace given = TRY(store.GetOrCreateUserNamespace(request));
  ClaimUserNamespace::Answer answer;
  if (!given.uids.empty()) answer.mapping = given.uids.front();
  return answer;
}

Result<ReleaseUserNamespace::Answer> Do(NodeStore& store, const ReleaseUserNamespace& call,
                                        const Progress&) {
  if (call.lost && !call.pod_uid.empty()) return Invalid("give either podUid or lost", "");
  const auto released = call.lost ? store.ReleaseLostUserNamespaces(OptionsOf(call))
                                  : store.ReleaseUserNamespace(call.pod_uid, OptionsOf(call));
  if (!released) return released.error();
  return ReleaseUserNamespace::Answer{*released};
}

Result<AssignUserNamespace::Answer> Do(NodeStore& store, const AssignUserNamespace& call,
                                       const Progress&) {
  return Done(store.AdoptUserNamespace(call.pod_uid, call.host_id, call.length));
}

Result<ListUserNamespaces::Answer> Do(NodeStore& store, const ListUserNamespaces& call,
                                      const Progress&) {
  ListUserNamespaces::Answer answer;
  answer.mappings = TRY(store.ListUserNamespaces());
  answer.quarantined = TRY(store.ListHeldPods());
  answer.use = TRY(store.GetUserNamespaceStatistics());
  if (!call.pod_uid.empty()) {
    const auto is_other = [&](const auto& one) { return one.pod_uid != call.pod_uid; };
    std::erase_if(answer.mappings, is_other);
    std::erase_if(answer.quarantined, is_other);
  }
  return answer;
}

Result<CleanUpUserNamespaces::Answer> Do(NodeStore& store, const CleanUpUserNamespaces& call,
                                         const Progress&) {
  return store.CleanUpUserNamespaces(call.existing, call.running, call.token, OptionsOf(call));
}

// --- The store -----------------------------------------------------------------------------------

Result<GetStatus::Answer> Do(NodeStore& store, const GetStatus& call, const Progress&) {
  GetStatus::Answer answer;
  answer.counts = TRY(store.GetStatistics());
  TrustState trust = TRY(store.GetTrust());
  answer.store_uuid = answer.counts.store_uuid;
  answer.schema_version = answer.counts.schema_version;
  answer.commit = answer.counts.commit_sequence;
  answer.settings = store.settings();
  answer.settings.map_bytes = answer.counts.map_bytes;
  answer.degraded = trust.distrustful;
  if (store.owns()) answer.owner_pid = getpid();
  if (call.brief) return answer;
  answer.history = std::move(trust.journal);
  if (store.owns()) answer.opening = store.recovery_report();
  return answer;
}

Result<GetMetrics::Answer> Do(NodeStore& store, const GetMetrics&, const Progress&) {
  return GetMetrics::Answer{store.GetMetrics().ToPrometheusText()};
}

Result<Flush::Answer> Do(NodeStore& store, const Flush&, const Progress&) {
  return Done(store.Flush());
}

Result<NoteUnrecordedPeriod::Answer> Do(NodeStore& store, const NoteUnrecordedPeriod& call,
                                        const Progress&) {
  return Done(store.NoteGap(call.reason));
}

Result<AcceptLoss::Answer> Do(NodeStore& store, const AcceptLoss& call, const Progress&) {
  return store.ClearDistrust(call.reason, {.images_on_node = call.images,
                                           .adopt = call.allow_all,
                                           .allow_empty = call.allow_empty,
                                           .dry_run = call.dry_run});
}

Result<Verify::Answer> Do(NodeStore& store, const Verify&, const Progress& progress) {
  return store.Verify(progress);
}

Result<MakeBackup::Answer> Do(NodeStore& store, const MakeBackup& call, const Progress& progress) {
  if (call.file.empty()) return store.MakeBackup();
  if (!call.file.is_absolute()) {
    return Invalid("the path of a backup must be absolute", "name the file from / on");
  }
  return store.WriteBackup(call.file, progress);
}

Result<ExportKubeletFiles::Answer> Do(NodeStore& store, const ExportKubeletFiles& call,
                                      const Progress&) {
  return store.Export({.kubelet_directory = call.kubelet_directory,
                       .api_version = call.api_version,
                       .images_on_node = call.images,
                       .allow_empty = call.allow_empty});
}

// --- Without a store -----------------------------------------------------------------------------

Result<Migrate::Answer> Do(const Migrate& call, const Progress& progress) {
  return MigrateStore({.directory = call.directory,
                       .to = call.to == 0 ? kNewestSchema : call.to,
                       .dry_run = call.dry_run,
                       .accept_loss = call.accept_loss,
                       .progress = progress});
}

Result<ListBackups::Answer> Do(const ListBackups& call, const Progress&) {
  ListBackups::Answer answer;
  answer.backups = TRY(BackupsOf(call.directory));
  return answer;
}

Result<Restore::Answer> Do(const Restore& call, const Progress&) {
  return RestoreStore(
      {.directory = call.directory, .backup = call.backup, .dry_run = call.dry_run});
}

Result<WhoChecks::Answer> Do(const WhoChecks& call, const Progress&) {
  const RuntimePulls pulls = TRY(ReadRuntimePulls(call.runtime));
  return PullSourcesOf(pulls, call.image, call.runtime_handler);
}

Result<ChooseManifest::Answer> Do(const ChooseManifest& call, const Progress&) {
  const auto index = TRY(DecodeImageIndex(call.index));
  return ManifestFor(index, call.host, call.guest);
}

Result<ParseImage::Answer> Do(const ParseImage& call, const Progress&) {
  const auto parts = PartsOfImage(call.image);
  if (!parts) return Invalid("the image does not parse", "");
  return ParseImage::Answer{std::string(parts->name),   std::string(parts->domain),
                            std::string(parts->path),   std::string(parts->tag),
                            std::string(parts->digest), NormaliseImage(call.image).value_or("")};
}

Result<CheckStreamUrl::Answer> Do(const CheckStreamUrl& call, const Progress&) {
  StreamUrlCheck check = call.redirect_from.empty()
                             ? StreamUrlChecked(call.url, call.policy)
                             : CheckStreamRedirect(call.redirect_from, call.url, call.policy);
  CheckStreamUrl::Answer answer{.message = std::move(check.message)};
  if (!check.allowed()) {
    answer.refusal = StreamUrlRefusalName(check.refusal);
    return answer;
  }
  answer.scheme = StreamSchemeName(check.address.scheme);
  answer.host = std::move(check.address.host);
  answer.port = check.address.port;
  answer.path = std::move(check.address.path);
  return answer;
}

Result<PlanStreams::Answer> Do(const PlanStreams& call, const Progress&) {
  StreamingPlanRequest request;
  request.api_server = TRY(ParseKubernetesVersion(call.api_server));
  request.kubelet = TRY(ParseKubernetesVersion(call.kubelet));
  const StreamingLintRequest server{StreamingComponent::kApiServer, request.api_server,
                                    call.api_server_flags};
  StreamingLint of_server = TRY(LintStreaming(server));
  const StreamingLintRequest kubelet{StreamingComponent::kKubelet, request.kubelet,
                                     call.kubelet_flags};
  StreamingLint of_kubelet = TRY(LintStreaming(kubelet));
  request.api_server_settings = std::move(of_server.settings);
  request.kubelet_settings = std::move(of_kubelet.settings);
  StreamPlan plan = TRY(StreamingPlan(request));
  // As they were written, and with those that the plan can't know since they don't parse.
  plan.findings = std::move(of_kubelet.findings);
  plan.findings.insert(plan.findings.end(), of_server.findings.begin(), of_server.findings.end());
  for (const auto* notes : {&of_kubelet.notes, &of_server.notes}) {
    plan.notes.insert(plan.notes.end(), notes->begin(), notes->end());
  }
  return plan;
}

// --- Streams -------------------------------------------------------------------------------------

Result<PrepareStream::Answer> Do(StreamingStore& store, const PrepareStream& call,
                                 const Progress&) {
  PrepareStream::Answer answer;
  answer.token = TRY(store.Prepare(call.request));
  return answer;
}

Result<ConsumeStream::Answer> Do(StreamingStore& store, const ConsumeStream& call,
                                 const Progress&) {
  return store.Consume(call.token, call.kind);
}

Result<ListStreams::Answer> Do(StreamingStore& store, const ListStreams&, const Progress&) {
  ListStreams::Answer answer;
  answer.streams = TRY(store.List());
  return answer;
}

Result<GetStatus::Answer> Do(StreamingStore& store, const GetStatus&, const Progress&) {
  GetStatus::Answer answer;
  answer.degraded = store.report().recovery.distrustful;
  answer.streams = store.report();
  answer.streams->open = store.GetCounters().open;
  return answer;
}

Result<GetMetrics::Answer> Do(StreamingStore& store, const GetMetrics&, const Progress&) {
  return GetMetrics::Answer{ToPrometheusText(store.GetCounters().Families())};
}

Result<Verify::Answer> Do(StreamingStore& store, const Verify&, const Progress& progress) {
  return store.Verify(progress);
}

}  // namespace waybill::door

namespace waybill {

#define WAYBILL_DEFINE(C)                                                                        \
  template <>                                                                                    \
  Result<waybill::C::Answer> NodeStore::Call(const waybill::C& call, const Progress& progress) { \
    return internal::Guarded([&] { return door::Do(*this, call, progress); });                   \
  }
WAYBILL_READING_CALLS(WAYBILL_DEFINE)
WAYBILL_CHANGING_CALLS(WAYBILL_DEFINE)
WAYBILL_UNSERVED_CALLS(WAYBILL_DEFINE)
#undef WAYBILL_DEFINE

Result<std::string> NodeStore::CallJson(std::string_view name, std::string_view parameters,
                                        const Progress& progress) {
  return door::CallJson(*this, name, parameters, progress);
}

}  // namespace waybill
