// The calls, each described once, and the lists of them.

#ifndef WAYBILL_STORE_DOOR_CALLS_H_
#define WAYBILL_STORE_DOOR_CALLS_H_

#include "store/door/values.h"
#include "waybill/calls.h"

namespace waybill {

void Describe(auto&, const Nothing&) {}

void Describe(auto& v, const PullDecision& x) {
  v("pull", x.pull);
  v("result", x.result);
  v("reason", x.reason);
  v("why", x.why);
}

void Describe(auto& v, const MustPull& x) {
  v("image", x.image);
  v.Optional("imageRef", x.image_ref);
  v.Optional("runtimeHandler", x.runtime_handler);
  v.Optional("secrets", x.secrets);
  v("serviceAccount", x.service_account);
}

void Describe(auto& v, const EnsureImage& x) {
  v("pullPolicy", x.pull_policy);
  v.Flat(x.question);
}
void Describe(auto& v, const EnsureImage::Answer& x) {
  v("action", x.action);
  v("message", x.message);
  v("decision", x.decision);
}

void Describe(auto& v, const Explain& x) {
  v.Optional("image", x.image);
  v("imageRef", x.image_ref);
  v.Optional("runtimeHandler", x.runtime_handler);
  v.Optional("names", x.names);
  v("secrets", x.secrets);
  v("serviceAccount", x.service_account);
  v("policy", x.policy);
}
void Describe(auto& v, const Explanation& x) {
  v("steps", x.steps);
  v("why", x.text);
  v("hint", x.hint);
  v("preloaded", x.ledger_entry);
  v("retained", x.gone_entry);
  v("record", x.record);
  v("credentials", x.credentials);
  v("imageNames", x.image_names);
  v("unreadable", x.unreadable);
  v("pulls", x.pulls);
  v("quarantined", x.quarantine);
  v("aliases", x.spellings);
  v("otherHandlers", x.other_handlers);
  v("degraded", x.distrustful);
}
void Describe(auto& v, const Explain::Answer& x) {
  v("decision", x.decision);
  v.Optional("whatIf", x.what_if);
  v.Flat(x.explanation);
}

void Describe(auto& v, const BeginPull& x) {
  v("image", x.image);
  v.Optional("runtimeHandler", x.runtime_handler);
  v.Optional("unlessRunning", x.unless_running);
}
void Describe(auto& v, const BeginPull::Answer& x) { v("pull", x.pull); }

void Describe(auto& v, const PullDetails& x) {
  v.Optional("verifiedBy", x.verified_by);
  v("validUntil", x.valid_until);
  v.Optional("nodeHadNoCredentials", x.node_had_no_credentials);
  v.Optional("manifestDigest", x.manifest_digest);
  v("platform", x.platform);
  v("listed", x.listed);
  v.Optional("error", x.error);
}
void Describe(auto& v, const EndPull& x) {
  v("image", x.image);
  v.Optional("imageRef", x.image_ref);
  v.Optional("runtimeHandler", x.runtime_handler);
  v.Optional("pull", x.pull);
  v("outcome", x.outcome);
  v("credentials", x.credentials);
  v.Flat(x.details);
}

void Describe(auto& v, const ListPulls& x) {
  v("image", x.image);
  v.Optional("runtimeHandler", x.runtime_handler);
}
void Describe(auto& v, const ListPulls::Answer& x) { v("pulls", x.pulls); }

void Describe(auto& v, const DropPulls& x) {
  v.Optional("pull", x.pull);
  v("image", x.image);
  v.Optional("runtimeHandler", x.runtime_handler);
  v.Optional("reason", x.reason);
  v.Optional("dryRun", x.dry_run);
}
void Describe(auto& v, const DropPulls::Answer& x) { v("dropped", x.dropped); }

void Describe(auto&, const BeginList&) {}
void Describe(auto& v, const BeginList::Answer& x) { v("token", x.token); }

void Describe(auto& v, const ClassifyImages& x) {
  v("images", x.list.images);
  v("token", x.list.token);
  v("complete", x.list.complete);
  v.Optional("source", x.list.source);
  v("quietUntil", x.list.quiet_until);
  v.Optional("namesToCome", x.list.names_to_come);
  v.Optional("allowEmpty", x.allow_empty);
  v.Optional("dryRun", x.dry_run);
}

void Describe(auto& v, const ListImages& x) {
  v.Optional("imageRef", x.image_ref);
  v.Optional("runtimeHandler", x.runtime_handler);
  v.Optional("hashes", x.hashes);
}
void Describe(auto& v, const ListImages::Answer& x) {
  v("records", x.records);
  v("preloaded", x.preloaded);
  v("quarantined", x.quarantined);
}

void Describe(auto& v, const AllowImage& x) {
  v("image", x.image);
  v.Optional("source", x.source);
  v("reason", x.reason);
  v.Optional("onlyUnconfirmed", x.only_unconfirmed);
  v.Optional("pulledToo", x.pulled_too);
  v.Optional("dryRun", x.dry_run);
}
void Describe(auto& v, const AllowImage::Answer& x) { v("changed", x.changed); }

void Describe(auto& v, const DenyImage& x) {
  v("imageRef", x.image_ref);
  v.Optional("runtimeHandler", x.runtime_handler);
  v("reason", x.reason);
  v.Optional("onlyUnconfirmed", x.only_unconfirmed);
  v.Optional("dryRun", x.dry_run);
}
void Describe(auto& v, const DenyImage::Answer& x) { v("changed", x.changed); }

void Describe(auto& v, const PutImage& x) {
  v("record", x.record);
  v.Optional("verifiedBy", x.terms.checker);
  v("validUntil", x.terms.good_until);
  v.Optional("nodeHadNoCredentials", x.terms.node_had_no_credentials);
}

void Describe(auto& v, const DeleteImage& x) {
  v("imageRef", x.image_ref);
  v.Optional("runtimeHandler", x.runtime_handler);
}

void Describe(auto& v, const PruneBefore& x) {
  v("images", x.images);
  v("before", x.before);
  v("token", x.token);
  v.Optional("allowEmpty", x.allow_empty);
  v.Optional("dryRun", x.dry_run);
}

void Describe(auto& v, const Revoke& x) {
  v("kind", x.what.kind);
  v.Optional("namespace", x.what.who.namespace_name);
  v.Optional("name", x.what.who.name);
  v.Optional("uid", x.what.who.uid);
  v.Optional("imageRef", x.what.image_ref);
  v.Optional("runtimeHandler", x.what.runtime_handler);
  v.Optional("hash", x.what.credential_hash);
  v.Optional("dryRun", x.dry_run);
}

void Describe(auto& v, const RevokeMissing& x) {
  v("secrets", x.existing.secrets);
  v("serviceAccounts", x.existing.service_accounts);
  v("token", x.token);
  v.Optional("more", x.more);
  v.Optional("partsBefore", x.parts_before);
  v.Optional("allowEmpty", x.allow_empty);
  v.Optional("dryRun", x.dry_run);
}

void Describe(auto& v, const ListRevocations& x) { v.Optional("hashes", x.hashes); }
void Describe(auto& v, const ListRevocations::Answer& x) { v("revocations", x.revocations); }

void Describe(auto&, const ListRuntimes&) {}
void Describe(auto& v, const ListRuntimes::Answer& x) { v("handlers", x.handlers); }

void Describe(auto& v, const SetRuntimes& x) {
  v.Optional("handlers", x.handlers);
  v.Optional("status", x.status);
  v.Optional("off", x.off);
  v.Optional("allowEmpty", x.allow_empty);
  v.Optional("dryRun", x.dry_run);
}

void Describe(auto& v, const ClaimUserNamespace& x) {
  v("podUid", x.pod_uid);
  v("hostUsers", x.host_users);
  v.Optional("runtimeHandler", x.runtime_handler);
  v.Optional("length", x.length);
}
void Describe(auto& v, const ClaimUserNamespace::Answer& x) { v("mapping", x.mapping); }

void Describe(auto& v, const ReleaseUserNamespace& x) {
  v.Optional("podUid", x.pod_uid);
  v.Optional("lost", x.lost);
  v.Optional("dryRun", x.dry_run);
}
void Describe(auto& v, const ReleaseUserNamespace::Answer& x) { v("released", x.released); }

void Describe(auto& v, const AssignUserNamespace& x) {
  v("podUid", x.pod_uid);
  v("hostId", x.host_id);
  v("length", x.length);
}

void Describe(auto& v, const ListUserNamespaces& x) { v.Optional("podUid", x.pod_uid); }
void Describe(auto& v, const ListUserNamespaces::Answer& x) {
  v("mappings", x.mappings);
  v("quarantined", x.quarantined);
  v("use", x.use);
}

void Describe(auto& v, const CleanUpUserNamespaces& x) {
  v("existing", x.existing);
  v("running", x.running);
  v("token", x.token);
  v.Optional("allowEmpty", x.allow_empty);
  v.Optional("dryRun", x.dry_run);
}

void Describe(auto& v, const GetStatus& x) { v.Optional("brief", x.brief); }
void Describe(auto& v, const GetStatus::Answer& x) {
  v("storeUuid", x.store_uuid);
  v("schemaVersion", x.schema_version);
  v("commit", x.commit);
  v("ownerPid", x.owner_pid);
  v("settings", x.settings);
  v("degraded", x.degraded);
  v("history", x.history);
  v("counts", x.counts);
  v("opening", x.opening);
  v("streams", x.streams);
}

void Describe(auto&, const GetMetrics&) {}
void Describe(auto& v, const GetMetrics::Answer& x) { v("text", x.text); }

void Describe(auto&, const Flush&) {}

void Describe(auto& v, const NoteUnrecordedPeriod& x) { v("reason", x.reason); }

void Describe(auto& v, const AcceptLoss& x) {
  v("reason", x.reason);
  v("images", x.images);
  v.Optional("allowAll", x.allow_all);
  v.Optional("allowEmpty", x.allow_empty);
  v.Optional("dryRun", x.dry_run);
}

void Describe(auto&, const Verify&) {}

void Describe(auto& v, const MakeBackup& x) { v.Optional("file", x.file); }

void Describe(auto& v, const ExportKubeletFiles& x) {
  v("kubeletDirectory", x.kubelet_directory);
  v.Optional("apiVersion", x.api_version);
  v("images", x.images);
  v.Optional("allowEmpty", x.allow_empty);
}

void Describe(auto& v, const ListKubeletFiles& x) {
  v("kubeletDirectory", x.kubelet_directory);
  v("images", x.images);
}
void Describe(auto& v, const MissingFile& x) {
  v("path", x.path);
  v("content", x.content);
}
void Describe(auto& v, const ListKubeletFiles::Answer& x) {
  v("missing", x.missing);
  v("needless", x.needless);
}

void Describe(auto& v, const Migrate& x) {
  v("directory", x.directory);
  v.Optional("to", x.to);
  v.Optional("acceptLoss", x.accept_loss);
  v.Optional("dryRun", x.dry_run);
}

void Describe(auto& v, const ListBackups& x) { v("directory", x.directory); }
void Describe(auto& v, const ListBackups::Answer& x) { v("backups", x.backups); }

void Describe(auto& v, const Restore& x) {
  v("directory", x.directory);
  v("backup", x.backup);
  v.Optional("dryRun", x.dry_run);
}

void Describe(auto& v, const WhoChecks& x) {
  v("image", x.image);
  v.Optional("runtimeHandler", x.runtime_handler);
  v("runtime", x.runtime.version);
  v.Optional("status", x.runtime.status);
  v.Optional("config", x.runtime.config);
  v.Optional("root", x.runtime.root);
}

void Describe(auto& v, const ChooseManifest& x) {
  v("index", x.index);
  v("host", x.host);
  v("guest", x.guest);
}

void Describe(auto& v, const ParseImage& x) { v("image", x.image); }
void Describe(auto& v, const ParseImage::Answer& x) {
  v("name", x.name);
  v("domain", x.domain);
  v("path", x.path);
  v("tag", x.tag);
  v("digest", x.digest);
  v("full", x.full);
}

void Describe(auto& v, const CheckStreamUrl& x) {
  v("url", x.url);
  v.Optional("redirectFrom", x.redirect_from);
  v.Optional("hosts", x.policy.hosts);
  v.Optional("ports", x.policy.ports);
  v.Optional("requireHttps", x.policy.require_https);
  v.Optional("sameHostRedirects", x.policy.same_host_redirects);
}
void Describe(auto& v, const CheckStreamUrl::Answer& x) {
  v("refusal", x.refusal);
  v("message", x.message);
  v("scheme", x.scheme);
  v("host", x.host);
  v("port", x.port);
  v("path", x.path);
}

void Describe(auto& v, const PlanStreams& x) {
  v("apiServer", x.api_server);
  v("kubelet", x.kubelet);
  v.Optional("apiServerFlags", x.api_server_flags);
  v.Optional("kubeletFlags", x.kubelet_flags);
}

void Describe(auto& v, const PrepareStream& x) { v.Flat(x.request); }
void Describe(auto& v, const PrepareStream::Answer& x) { v("token", x.token); }

void Describe(auto& v, const ConsumeStream& x) {
  v("token", x.token);
  v("kind", x.kind);
}

void Describe(auto&, const ListStreams&) {}
void Describe(auto& v, const ListStreams::Answer& x) { v("streams", x.streams); }

namespace internal {

// The calls that read, in the order of dev.waybill.varlink; an observer may make them.
#define WAYBILL_READING_CALLS(X) \
  X(MustPull)                    \
  X(EnsureImage)                 \
  X(Explain)                     \
  X(ListPulls)                   \
  X(ListImages)                  \
  X(ListRevocations) X(ListRuntimes) X(ListUserNamespaces) X(GetStatus) X(GetMetrics) X(Verify)
// Those that change the store. BeginList draws a number that no other process may draw.
#define WAYBILL_CHANGING_CALLS(X)                                                         \
  X(BeginPull)                                                                            \
  X(EndPull)                                                                              \
  X(DropPulls)                                                                            \
  X(BeginList)                                                                            \
  X(ClassifyImages)                                                                       \
  X(AllowImage)                                                                           \
  X(DenyImage)                                                                            \
  X(PutImage)                                                                             \
  X(DeleteImage)                                                                          \
  X(PruneBefore)                                                                          \
  X(Revoke) X(RevokeMissing) X(SetRuntimes) X(ClaimUserNamespace) X(ReleaseUserNamespace) \
      X(AssignUserNamespace) X(CleanUpUserNamespaces) X(Flush) X(NoteUnrecordedPeriod)    \
          X(AcceptLoss) X(MakeBackup)
// Those of a store that are not served: they write or look where the caller says.
#define WAYBILL_UNSERVED_CALLS(X) X(ExportKubeletFiles) X(ListKubeletFiles)
// Those that need no store.
#define WAYBILL_LIBRARY_CALLS(X) \
  X(Migrate)                     \
  X(ListBackups)                 \
  X(Restore) X(WhoChecks) X(ChooseManifest) X(ParseImage) X(CheckStreamUrl) X(PlanStreams)
// Those of a store of streams, beside GetStatus, GetMetrics and Verify.
#define WAYBILL_STREAM_CALLS(X) X(PrepareStream) X(ConsumeStream) X(ListStreams)

}  // namespace internal

}  // namespace waybill

#endif  // WAYBILL_STORE_DOOR_CALLS_H_
