// The calls, each described once, and the lists of them.

#ifndef WAYBILL_STORE_DOOR_CALLS_H_
#define WAYBILL_STORE_DOOR_CALLS_H_

#include "store/door/values.h"
#include "waybill/calls.h"

namespace waybill {

WAYBILL_DESCRIBE(Nothing, (), ());
WAYBILL_DESCRIBE(PullDecision, (pull, result, reason, why), ());
WAYBILL_DESCRIBE(MustPull, (image), (image_ref, runtime_handler, secrets, service_account));

void Describe(auto& v, const EnsureImage& x) {
  WAYBILL_NEEDS(x, pull_policy);
  v.Flat(x.question);
}
WAYBILL_DESCRIBE(EnsureImage::Answer, (action, message, decision), ());

void Describe(auto& v, const Explain& x) {
  WAYBILL_MAY_HAVE(x, image);
  WAYBILL_NEEDS(x, image_ref);
  WAYBILL_MAY_HAVE(x, runtime_handler, names, secrets, service_account, policy);
}
void Describe(auto& v, const Explanation& x) {
  WAYBILL_NEEDS(x, steps);
  v("why", x.text);
  WAYBILL_NEEDS(x, hint);
  v("preloaded", x.ledger_entry);
  v("retained", x.gone_entry);
  WAYBILL_NEEDS(x, record, credentials, image_names, unreadable, pulls);
  v("quarantined", x.quarantine);
  v("aliases", x.spellings);
  WAYBILL_NEEDS(x, other_handlers);
  v("degraded", x.distrustful);
}
void Describe(auto& v, const Explain::Answer& x) {
  WAYBILL_MAY_HAVE(x, decision, what_if);
  v.Flat(x.explanation);
}

WAYBILL_DESCRIBE(BeginPull, (image), (runtime_handler, unless_running));
WAYBILL_DESCRIBE(BeginPull::Answer, (pull), ());

WAYBILL_DESCRIBE(PullDetails, (),
                 (verified_by, valid_until, node_had_no_credentials, manifest_digest, platform,
                  listed, error));
void Describe(auto& v, const EndPull& x) {
  WAYBILL_NEEDS(x, image);
  WAYBILL_MAY_HAVE(x, image_ref, runtime_handler, pull);
  WAYBILL_NEEDS(x, outcome);
  WAYBILL_MAY_HAVE(x, credentials);
  v.Flat(x.details);
}

WAYBILL_DESCRIBE(ListPulls, (), (image, runtime_handler));
WAYBILL_DESCRIBE(ListPulls::Answer, (pulls), ());

WAYBILL_DESCRIBE(DropPulls, (), (pull, image, runtime_handler, reason, dry_run));
WAYBILL_DESCRIBE(DropPulls::Answer, (dropped), ());
WAYBILL_DESCRIBE(BeginList, (), ());
WAYBILL_DESCRIBE(BeginList::Answer, (token), ());

void Describe(auto& v, const ClassifyImages& x) {
  WAYBILL_NEEDS(x.list, images, token, complete);
  WAYBILL_MAY_HAVE(x.list, source, quiet_until, names_to_come);
  WAYBILL_MAY_HAVE(x, allow_empty, dry_run);
}

WAYBILL_DESCRIBE(ListImages, (), (image_ref, runtime_handler, hashes));
WAYBILL_DESCRIBE(ListImages::Answer, (records, preloaded, quarantined), ());

void Describe(auto& v, const AllowImage& x) {
  WAYBILL_NEEDS(x, image);
  WAYBILL_MAY_HAVE(x, source);
  WAYBILL_NEEDS(x, reason);
  WAYBILL_MAY_HAVE(x, only_unconfirmed, pulled_too, dry_run);
}
WAYBILL_DESCRIBE(AllowImage::Answer, (changed), ());

void Describe(auto& v, const DenyImage& x) {
  WAYBILL_NEEDS(x, image_ref);
  WAYBILL_MAY_HAVE(x, runtime_handler);
  WAYBILL_NEEDS(x, reason);
  WAYBILL_MAY_HAVE(x, only_unconfirmed, dry_run);
}
WAYBILL_DESCRIBE(DenyImage::Answer, (changed), ());

void Describe(auto& v, const PutImage& x) {
  WAYBILL_NEEDS(x, record);
  v.Optional("verifiedBy", x.terms.checker);
  v("validUntil", x.terms.good_until);
  WAYBILL_MAY_HAVE(x.terms, node_had_no_credentials);
}

WAYBILL_DESCRIBE(DeleteImage, (image_ref), (runtime_handler));
WAYBILL_DESCRIBE(PruneBefore, (images), (before, token, allow_empty, dry_run));

void Describe(auto& v, const Revoke& x) {
  WAYBILL_NEEDS(x.what, kind);
  v.Optional("namespace", x.what.who.namespace_name);
  WAYBILL_MAY_HAVE(x.what.who, name, uid);
  WAYBILL_MAY_HAVE(x.what, image_ref, runtime_handler);
  v.Optional("hash", x.what.credential_hash);
  WAYBILL_MAY_HAVE(x, dry_run);
}

void Describe(auto& v, const RevokeMissing& x) {
  WAYBILL_NEEDS(x.existing, secrets, service_accounts);
  WAYBILL_NEEDS(x, token);
  WAYBILL_MAY_HAVE(x, more, parts_before, allow_empty, dry_run);
}

WAYBILL_DESCRIBE(ListRevocations, (), (hashes));
WAYBILL_DESCRIBE(ListRevocations::Answer, (revocations), ());
WAYBILL_DESCRIBE(ListRuntimes, (), ());
WAYBILL_DESCRIBE(ListRuntimes::Answer, (handlers), ());
WAYBILL_DESCRIBE(SetRuntimes, (), (handlers, status, off, allow_empty, dry_run));
WAYBILL_DESCRIBE(ClaimUserNamespace, (pod_uid), (host_users, runtime_handler, length));
WAYBILL_DESCRIBE(ClaimUserNamespace::Answer, (mapping), ());
WAYBILL_DESCRIBE(ReleaseUserNamespace, (), (pod_uid, lost, dry_run));
WAYBILL_DESCRIBE(ReleaseUserNamespace::Answer, (released), ());
WAYBILL_DESCRIBE(AssignUserNamespace, (pod_uid, host_id, length), ());
WAYBILL_DESCRIBE(ListUserNamespaces, (), (pod_uid));
WAYBILL_DESCRIBE(ListUserNamespaces::Answer, (mappings, quarantined, use), ());
WAYBILL_DESCRIBE(CleanUpUserNamespaces, (existing, running, token), (allow_empty, dry_run));
WAYBILL_DESCRIBE(GetStatus, (), (brief));
WAYBILL_DESCRIBE(GetStatus::Answer,
                 (store_uuid, schema_version, commit, owner_pid, settings, degraded, history,
                  counts, opening, streams),
                 ());
WAYBILL_DESCRIBE(GetMetrics, (), ());
WAYBILL_DESCRIBE(GetMetrics::Answer, (text), ());
WAYBILL_DESCRIBE(Flush, (), ());
WAYBILL_DESCRIBE(NoteUnrecordedPeriod, (reason), ());
WAYBILL_DESCRIBE(AcceptLoss, (reason), (images, allow_all, allow_empty, dry_run));
WAYBILL_DESCRIBE(Verify, (), ());
WAYBILL_DESCRIBE(MakeBackup, (), (file));
WAYBILL_DESCRIBE(ExportKubeletFiles, (kubelet_directory), (api_version, images, allow_empty));
WAYBILL_DESCRIBE(ListKubeletFiles, (kubelet_directory), (images));
WAYBILL_DESCRIBE(MissingFile, (path, content), ());
WAYBILL_DESCRIBE(ListKubeletFiles::Answer, (missing, needless), ());
WAYBILL_DESCRIBE(Migrate, (directory), (to, accept_loss, dry_run));
WAYBILL_DESCRIBE(ListBackups, (directory), ());
WAYBILL_DESCRIBE(ListBackups::Answer, (backups), ());
WAYBILL_DESCRIBE(Restore, (directory, backup), (dry_run));

void Describe(auto& v, const WhoChecks& x) {
  WAYBILL_NEEDS(x, image);
  WAYBILL_MAY_HAVE(x, runtime_handler);
  v("runtime", x.runtime.version);
  WAYBILL_MAY_HAVE(x.runtime, status, config, root);
}

WAYBILL_DESCRIBE(ChooseManifest, (index, host, guest), ());
WAYBILL_DESCRIBE(ParseImage, (image), ());
WAYBILL_DESCRIBE(ParseImage::Answer, (name, domain, path, tag, digest, full), ());

void Describe(auto& v, const CheckStreamUrl& x) {
  WAYBILL_NEEDS(x, url);
  WAYBILL_MAY_HAVE(x, redirect_from);
  WAYBILL_MAY_HAVE(x.policy, hosts, ports, require_https, same_host_redirects);
}
WAYBILL_DESCRIBE(CheckStreamUrl::Answer, (refusal, message, scheme, host, port, path), ());
WAYBILL_DESCRIBE(PlanStreams, (api_server, kubelet), (api_server_flags, kubelet_flags));

void Describe(auto& v, const PrepareStream& x) { v.Flat(x.request); }
WAYBILL_DESCRIBE(PrepareStream::Answer, (token), ());
WAYBILL_DESCRIBE(ConsumeStream, (token, kind), ());
WAYBILL_DESCRIBE(ListStreams, (), ());
WAYBILL_DESCRIBE(ListStreams::Answer, (streams), ());

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
#define WAYBILL_CHANGING_CALLS(X)                                                               \
  X(BeginPull)                                                                                  \
  X(EndPull)                                                                                    \
  X(DropPulls)                                                                                  \
  X(BeginList)                                                                                  \
  X(ClassifyImages)                                                                             \
  X(AllowImage)                                                                                 \
  X(DenyImage)                                                                                  \
  X(PutImage)                                                                                   \
  X(DeleteImage)                                                                                \
  X(PruneBefore)                                                                                \
  X(Revoke)                                                                                     \
  X(RevokeMissing)                                                                              \
  X(SetRuntimes)                                                                                \
  X(ClaimUserNamespace) X(ReleaseUserNamespace) X(AssignUserNamespace) X(CleanUpUserNamespaces) \
      X(Flush) X(NoteUnrecordedPeriod) X(AcceptLoss) X(MakeBackup)
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
