#include "tests/support/as_json.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/words.h"
#include "waybill/values.h"

namespace waybill::testing {

namespace {

using nlohmann::json;

// An object without the fields that say nothing.
json Telling(json object) {
  for (auto field = object.begin(); field != object.end();) {
    const json& value = *field;
    const bool nothing = value.is_null() || value == false || value == 0 || value == "" ||
                         (value.is_structured() && value.empty());
    field = nothing ? object.erase(field) : std::next(field);
  }
  return object;
}

template <typename T>
json OrNull(const std::optional<T>& value) {
  return value ? AsJson(*value) : json();
}

// How many, if that tells more than what they are.
json Listed(const std::vector<std::string>& values) {
  constexpr std::size_t kMany = 20;
  if (values.size() <= kMany) return values;
  return std::to_string(values.size()) + " of them";
}

// The names of what was judged so. The report lists the first 1000.
json Judged(const ClassifyReport& report, bool preloaded) {
  const std::uint64_t count = preloaded ? report.preloaded : report.closed;
  std::vector<std::string> names;
  for (const ClassifiedImage& image : report.judged) {
    if (image.preloaded != preloaded) continue;
    if (image.because.empty() || image.image_ref.empty()) return "does not say why";
    names.push_back(image.runtime_handler.empty() ? image.name
                                                  : image.name + " for " + image.runtime_handler);
  }
  std::sort(names.begin(), names.end());
  if (count > 0 && report.judged.size() >= 1000) return std::to_string(count) + " of them";
  return names.size() == count ? Listed(names) : json("contradicts itself");
}

}  // namespace

std::string Words(const Decision& decision, int asked) {
  std::string words = decision.pull ? "pull, " : "no pull, ";
  const std::string_view result = CheckResultName(decision.result);
  words.append(result.empty() ? "not counted" : result).append(", ");
  words.append(ReasonName(decision.reason));
  if (decision.credentials_read != (asked == 1)) words += ", contradicts itself";
  if (asked == 1) words += ", asked once";
  if (asked > 1) words += ", asked again";
  return words;
}

json AsJson(const Error& error) {
  return {{"error", ErrorCodeName(error.code)}, {"message", error.message}};
}

json AsJson(const ImagePulledRecord& record) {
  json object = json::parse(EncodePulledRecord(record));
  object.erase("apiVersion");
  object.erase("kind");
  // What a hundred of them are is told by the decisions; here it is how many.
  for (auto& [name, entry] : object["credentialMapping"].items()) {
    for (json& list : entry) {
      if (list.is_array() && list.size() > 20) list = std::to_string(list.size()) + " of them";
    }
  }
  object["handler"] = record.runtime_handler;
  object["manifest"] = record.manifest_digest;
  object["platform"] = OrNull(record.platform);
  object["guestPlatform"] = OrNull(record.guest_platform);
  object["closedBecause"] = record.closed_because;
  return Telling(std::move(object));
}

json AsJson(const ImagePullIntent& intent) {
  return Telling({{"image", intent.image}, {"handler", intent.runtime_handler}});
}

json AsJson(const UnresolvedPull& pull) {
  return Telling({{"anything", pull.anything},
                  {"image", pull.image},
                  {"handler", pull.runtime_handler},
                  {"state", WordOf(pull.state)},
                  {"several", pull.several}});
}

json AsJson(const PreloadedImage& entry) {
  return Telling({{"imageRef", entry.image_ref},
                  {"handler", entry.runtime_handler},
                  {"names", Listed(entry.names)},
                  {"source", entry.source},
                  {"reason", entry.reason},
                  {"gone", entry.absent_since.has_value()}});
}

json AsJson(const ClassifyReport& report) {
  return Telling({{"listed", report.listed},
                  {"repeated", report.repeated},
                  {"notNames", report.not_names},
                  {"known", report.known},
                  {"preloaded", Judged(report, true)},
                  {"closed", Judged(report, false)},
                  {"left", report.left},
                  {"united", report.united},
                  {"pullsSettled", report.pulls_settled},
                  {"recordsRemoved", report.records_removed},
                  {"preloadedRemoved", report.preloaded_removed},
                  {"sharedDigests", report.shared_digests},
                  {"notJudgedBecause", report.not_judged_because}});
}

json AsJson(const Explanation& explanation) {
  return Telling({{"ledgerEntry", OrNull(explanation.ledger_entry)},
                  {"goneEntry", OrNull(explanation.gone_entry)},
                  {"recorded", explanation.recorded},
                  {"closedBecause", explanation.closed_because},
                  {"pulls", AsJson(explanation.pulls)},
                  {"inQuarantine", explanation.in_quarantine},
                  {"distrustful", explanation.distrustful},
                  {"text", explanation.text},
                  {"hint", explanation.hint}});
}

json AsJson(const Platform& platform) {
  return Telling({{"architecture", platform.architecture},
                  {"os", platform.os},
                  {"osVersion", platform.os_version},
                  {"osFeatures", platform.os_features},
                  {"variant", platform.variant}});
}

json AsJson(const RuntimeHandler& handler) {
  return Telling({{"name", handler.name},
                  {"default", handler.is_default},
                  {"userNamespaces", handler.user_namespaces},
                  {"guestPlatform", OrNull(handler.guest_platform)}});
}

json AsJson(const ManifestDescriptor& manifest) {
  json object = Telling({{"mediaType", manifest.media_type},
                         {"digest", manifest.digest},
                         {"size", manifest.size},
                         {"attestation", manifest.is_attestation}});
  if (manifest.platform) object["platform"] = AsJson(*manifest.platform);
  return object;
}

json AsJson(const RuntimesReport& report) {
  return Telling({{"added", report.added},
                  {"vanished", report.vanished},
                  {"changed", report.changed},
                  {"recordsToVerify", report.records_to_verify},
                  {"turnedOn", report.turned_on},
                  {"recordsCollapsed", report.records_collapsed},
                  {"intentsCollapsed", report.intents_collapsed}});
}

json AsJson(const PruneReport& report) {
  return Telling({{"removed", report.removed},
                  {"keptInList", report.kept_in_list},
                  {"keptNewer", report.kept_newer},
                  {"keptWithoutCredentials", report.kept_without_credentials},
                  {"preloadedRemoved", report.preloaded_removed}});
}

json AsJson(const RevokeReport& report) {
  json object = Telling({{"serviceAccounts", report.service_accounts},
                         {"nodePods", report.node_pods},
                         {"equalHashes", report.equal_hashes}});
  object["records"] = report.records;
  object["secrets"] = report.secrets;
  return object;
}

json AsJson(const IdMappingReport& report) {
  return Telling({{"unchanged", report.unchanged},
                  {"imported", report.imported},
                  {"held", report.held},
                  {"outsidePool", report.outside_pool},
                  {"otherLength", report.other_length},
                  {"offPool", report.off_pool},
                  {"refusedBecause", report.refused_because}});
}

json AsJson(const OpeningReport& report) {
  json observed = OrNull(report.observed);
  // Not where the list says nothing.
  if (report.first_start && !observed.empty()) observed["firstStart"] = true;
  return Telling({{"setAside", report.set_aside},
                  {"distrustful", report.distrustful},
                  {"distrustReason", report.distrust_reason},
                  {"userNamespaces", AsJson(report.user_namespaces)},
                  {"afterGap", report.after_gap},
                  {"gapReason", report.gap_reason},
                  {"gapClosed", report.gap_closed},
                  {"gapImages", report.gap_images},
                  {"intentsFound", report.intents_found},
                  {"intentsReplayed", report.intents_replayed},
                  {"intentsLeft", report.intents_left},
                  {"replayed", report.replayed},
                  {"replaySkipped", report.replay_skipped},
                  {"observed", observed},
                  {"records", report.records},
                  {"quarantineEntries", report.quarantine_entries}});
}

json AsJson(const StoreCounts& statistics) {
  return Telling({{"records", statistics.records},
                  {"ofOtherHandlers", statistics.nondefault_handler_records},
                  {"handlers", statistics.runtime_handlers},
                  {"intents", statistics.intents},
                  {"quarantineEntries", statistics.quarantine_entries},
                  {"ledgerEntries", statistics.ledger_entries},
                  {"distrustful", statistics.distrustful}});
}

json AsJson(const TrustState& trust) {
  json journal = json::array();
  for (const DegradedEvent& event : trust.journal) {
    journal.push_back(std::string(WordOf(event.action)).append(" ").append(WordOf(event.kind)));
  }
  return {{"distrustful", trust.distrustful}, {"journal", journal}};
}

json AsJson(const QuarantinedFile& entry) {
  return {{"sha256", entry.sha256}, {"reason", entry.reason}};
}

json AsJson(const Metrics& metrics) {
  const Counted counted = CountedIn(metrics);
  json object = json::object();
  for (std::size_t i = 0; i < counted.mustpull_checks.size(); ++i) {
    const std::string_view name = CheckResultName(static_cast<CheckResult>(i));
    object[name.empty() ? "not counted" : std::string(name)] = counted.mustpull_checks.at(i);
  }
  constexpr std::string_view kThree[] = {"false", "true", "unknown"};
  for (std::size_t policy = 0; policy < 3; ++policy) {
    for (std::size_t present = 0; present < 3; ++present) {
      for (std::size_t required = 0; required < 3; ++required) {
        std::string name(WordOf(static_cast<PullPolicy>(policy)));
        name.append(", present ").append(kThree[present]).append(", required ");
        name.append(kThree[required]);
        object[name] = counted.ensure_image_requests.at(policy).at(present).at(required);
      }
    }
  }
  for (const auto& [name, series] :
       {std::pair("intents", "kubelet_imagemanager_ondisk_pullintents"),
        {"records", "kubelet_imagemanager_ondisk_pulledrecords"},
        {"of other handlers", "waybill_nondefault_runtime_handler_images"}}) {
    object[name] = static_cast<std::uint64_t>(ValueOf(metrics, series));
  }
  return Telling(std::move(object));
}

}  // namespace waybill::testing
