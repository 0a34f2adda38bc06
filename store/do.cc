// What calls do that need no store, or a store of streams, and how the others reach their room:
// store/calls/.

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/files/documents.h"
#include "runtime/files/pull_sources.h"
#include "store/base/caught.h"
#include "store/base/image_name.h"
#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "store/calls/impl.h"
#include "store/calls/node_store.h"
#include "store/calls/streaming_store.h"
#include "store/door.h"
#include "store/maintenance.h"
#include "store/streams/stream_url.h"
#include "store/streams/streaming_plan.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::door {

namespace {

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
  Explain::Answer answer{.what_if = call.policy.has_value()};
  VerificationPolicy other;
  if (call.policy) other = TRY(internal::PolicyOf(*call.policy));
  const VerificationPolicy* const what_if = call.policy ? &other : nullptr;
  answer.explanation = TRY(store.Explain(CopyOf(call), call.names, what_if));
  if (call.secrets || call.service_account) {
    const auto secrets = call.secrets.value_or(std::vector<ImagePullSecret>());
    Credentials credentials(secrets, call.service_account);
    answer.decision = Told(store.PreviewDecision(CopyOf(call), credentials.source(), what_if));
  }
  return answer;
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
  if (call.lost && !call.pod_uid.empty()) return Invalid("give either podUid or lost");
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

Result<Flush::Answer> Do(NodeStore& store, const Flush&, const Progress&) {
  return Done(store.Flush());
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
  return TRY(PullSourcesOf(pulls, call.image, call.runtime_handler)).sources;
}

Result<ChooseManifest::Answer> Do(const ChooseManifest& call, const Progress&) {
  const auto index = TRY(DecodeImageIndex(call.index));
  return ManifestFor(index, call.host, call.guest);
}

Result<ParseImage::Answer> Do(const ParseImage& call, const Progress&) {
  const auto parts = PartsOfImage(call.image);
  if (!parts) return Invalid("the image does not parse");
  return ParseImage::Answer{std::string(parts->name),   std::string(parts->domain),
                            std::string(parts->path),   std::string(parts->tag),
                            std::string(parts->digest), NormaliseImage(call.image).value_or("")};
}

Result<CheckStreamUrl::Answer> Do(const CheckStreamUrl& call, const Progress&) {
  return JudgeStreamUrl(call);
}

Result<PlanStreams::Answer> Do(const PlanStreams& call, const Progress&) {
  const std::uint32_t api_server = TRY(ParseKubernetesRelease(call.api_server));
  const std::uint32_t kubelet = TRY(ParseKubernetesRelease(call.kubelet));
  return StreamingPlan({StreamingComponent::kApiServer, api_server, call.api_server_flags},
                       {StreamingComponent::kKubelet, kubelet, call.kubelet_flags});
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
