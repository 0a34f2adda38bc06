#include "bindings/c/convert.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <set>

namespace waybill::c {

bool IsTime(waybill_timestamp time) {
  return time.nanoseconds >= 0 && time.nanoseconds <= 999'999'999 &&
         time.seconds >= -62'135'596'800 && time.seconds <= 253'402'300'799;
}

Timestamp FromC(const waybill_timestamp& time, Arguments& arguments) {
  if (!IsTime(time)) arguments.Wrong("the time", "is outside the years 1 to 9999");
  return {time.seconds, time.nanoseconds};
}

BootTime FromC(const waybill_boot_time& time, Arguments&) {
  BootTime to{.nanoseconds = time.nanoseconds};
  std::copy(std::begin(time.boot_id), std::end(time.boot_id), to.boot_id.begin());
  return to;
}

ListToken FromC(const waybill_list_token& token, Arguments& arguments) {
  return {.commit = token.commit, .drawn = FromC(token.drawn, arguments), .store = token.store};
}

ImageCopy FromC(const waybill_image_copy& copy, Arguments& arguments) {
  return {.image = arguments.Text(copy.image, "copy.image"),
          .image_ref = arguments.Text(copy.image_ref, "copy.image_ref"),
          .runtime_handler = arguments.Text(copy.runtime_handler, "copy.runtime_handler")};
}

ImagePullCredentials FromC(const waybill_image_pull_credentials& credentials,
                           Arguments& arguments) {
  ImagePullCredentials to;
  to.node_pods_accessible = credentials.node_pods_accessible;
  for (const auto& secret :
       arguments.Array(credentials.secrets, credentials.secret_count, "secrets")) {
    to.kubernetes_secrets.push_back({arguments.String(secret.uid, "uid"),
                                     arguments.String(secret.namespace_name, "namespace_name"),
                                     arguments.String(secret.name, "name"),
                                     arguments.String(secret.credential_hash, "credential_hash")});
  }
  for (const auto& account : arguments.Array(
           credentials.service_accounts, credentials.service_account_count, "service_accounts")) {
    to.kubernetes_service_accounts.push_back(
        {arguments.String(account.uid, "uid"),
         arguments.String(account.namespace_name, "namespace_name"),
         arguments.String(account.name, "name")});
  }
  return to;
}

ImagePulledRecord FromC(const waybill_image_pulled_record& record, Arguments& arguments) {
  ImagePulledRecord to;
  to.image_ref = arguments.String(record.image_ref, "image_ref");
  to.last_updated = FromCIfAny(record.last_updated, arguments);
  for (const auto& entry : arguments.Array(record.credential_mapping,
                                           record.credential_mapping_count, "credential_mapping")) {
    const bool is_new = to.credential_mapping
                            .try_emplace(arguments.String(entry.image_name, "image_name"),
                                         FromC(entry.credentials, arguments))
                            .second;
    if (!is_new) arguments.Wrong("credential_mapping", "has two entries of one image name");
  }
  to.runtime_handler = arguments.String(record.runtime_handler, "runtime_handler");
  to.manifest_digest = arguments.String(record.manifest_digest, "manifest_digest");
  to.platform = FromCIfAny(record.platform, arguments);
  return to;
}

ImageList FromC(const waybill_image_list* list, Arguments& arguments) {
  const auto known = arguments.Options(list, "list");
  ImageList to{.images = ListFromC(known.images.items, known.images.count, "images", arguments),
               .token = FromCIfAny(known.token, arguments),
               .complete = known.complete,
               .source = arguments.String(known.source, "source"),
               .quiet_until = FromCIfAny(known.quiet_until, arguments),
               .names_to_come = arguments.Strings(known.names_to_come, "names_to_come")};
  const auto imported = arguments.Strings(known.imported, "imported");
  const std::set<std::string> ids(imported.begin(), imported.end());
  for (ListedImage& image : to.images) image.imported = ids.contains(image.id);
  if (known.sizes != nullptr) {
    for (std::size_t i = 0; i < to.images.size(); ++i) to.images[i].bytes = known.sizes[i];
  }
  return to;
}

ChangeOptions FromC(const waybill_change_options* options, Arguments& arguments) {
  if (options == nullptr) return {};
  const auto known = arguments.Options(options, "options");
  return {.allow_empty = known.allow_empty, .dry_run = known.dry_run};
}

waybill_boot_time ToC(const BootTime& time) {
  waybill_boot_time to{.boot_id = {}, .nanoseconds = time.nanoseconds};
  std::copy(time.boot_id.begin(), time.boot_id.end(), to.boot_id);
  return to;
}

waybill_list_token ToC(const ListToken& token) {
  return {token.commit, ToC(token.drawn), token.store};
}

static waybill_image_pull_credentials ToC(const ImagePullCredentials& credentials, Memory& memory) {
  const auto secret = [](const ImagePullSecret& from, Memory& into) {
    return waybill_image_pull_secret{Copy(from.uid, into), Copy(from.namespace_name, into),
                                     Copy(from.name, into), Copy(from.credential_hash, into)};
  };
  const auto account = [](const ImagePullServiceAccount& from, Memory& into) {
    return waybill_image_pull_service_account{Copy(from.uid, into), Copy(from.namespace_name, into),
                                              Copy(from.name, into)};
  };
  const auto& secrets = credentials.kubernetes_secrets;
  const auto& accounts = credentials.kubernetes_service_accounts;
  return {credentials.node_pods_accessible,
          CopyEach<waybill_image_pull_secret>(secrets, memory, secret), secrets.size(),
          CopyEach<waybill_image_pull_service_account>(accounts, memory, account), accounts.size()};
}

waybill_image_pulled_record ToC(const ImagePulledRecord& record, Memory& memory) {
  const auto entry = [](const auto& from, Memory& into) {
    return waybill_credential_mapping{Copy(from.first, into), ToC(from.second, into)};
  };
  return {.image_ref = Copy(record.image_ref, memory),
          .last_updated = ToCIfAny(record.last_updated, memory),
          .credential_mapping =
              CopyEach<waybill_credential_mapping>(record.credential_mapping, memory, entry),
          .credential_mapping_count = record.credential_mapping.size(),
          .stamp = record.stamp,
          .runtime_handler = Copy(record.runtime_handler, memory),
          .manifest_digest = Copy(record.manifest_digest, memory),
          .platform = ToCIfAny(record.platform, memory),
          .guest_platform = ToCIfAny(record.guest_platform, memory),
          .closed_because = Copy(record.closed_because, memory)};
}

waybill_proven_record ToProvenC(const ImagePulledRecord& record, Memory& memory) {
  const auto proof = [](const auto& credential, Memory& into) {
    return ToC(credential.proof, into);
  };
  const auto entry = [&](const auto& from, Memory& into) {
    const ImagePullCredentials& credentials = from.second;
    return waybill_credential_proofs{
        ToC(credentials.node_pods_proof, into),
        CopyEach<waybill_proof>(credentials.kubernetes_secrets, into, proof),
        CopyEach<waybill_proof>(credentials.kubernetes_service_accounts, into, proof)};
  };
  // In the order of the map, as the record's own entries.
  return {ToC(record, memory),
          CopyEach<waybill_credential_proofs>(record.credential_mapping, memory, entry)};
}

waybill_registry_auth ToC(const RegistryAuth& auth, Memory& memory) {
  return {Copy(auth.registry, memory), Copy(auth.auth.username, memory),
          Copy(auth.auth.password, memory), Copy(auth.auth.email, memory)};
}

namespace {

// Both have the same shape, as their sizes prove.
template <typename From, typename To>
void CopyNumbers(const From& from, To& to) {
  static_assert(sizeof(to) == sizeof(from));
  std::memcpy(&to, &from, sizeof(to));
}

}  // namespace

waybill_store_counters ToC(const StoreCounters& counters, Memory&) {
  waybill_store_counters to{};
  CopyNumbers(counters.decisions, to.decisions);
  CopyNumbers(counters.mustpull_checks, to.mustpull_checks);
  CopyNumbers(counters.ensure_image_requests, to.ensure_image_requests);
  to.commit_failures = counters.commit_failures;
  to.write_back_failures = counters.write_back_failures;
  to.write_backs_dropped = counters.write_backs_dropped;
  to.id_range_failures = counters.id_range_failures;
  CopyNumbers(counters.pulls, to.pulls);
  to.pull_nanoseconds = counters.pull_nanoseconds;
  to.pull_count = counters.pull_count;
  to.reverification_ratio = counters.ReverificationRatio().value_or(-1);
  return to;
}

waybill_streaming_counters ToC(const StreamingCounters& counters, Memory& memory) {
  waybill_streaming_counters to{};
  // The numbers have the same shape; C has the text behind them.
  static_assert(offsetof(waybill_streaming_counters, prometheus_text) == sizeof(counters));
  std::memcpy(static_cast<void*>(&to), &counters, sizeof(counters));
  to.prometheus_text = Copy(ToPrometheusText(counters.Families()), memory);
  return to;
}

}  // namespace waybill::c
