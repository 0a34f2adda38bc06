#include "tests/model/describe.h"

namespace waybill::testing {

namespace {

std::string Join(const std::vector<std::string>& list) {
  std::string text = "[";
  for (const std::string& item : list) text += (text.size() == 1 ? "" : " ") + item;
  return text + "]";
}

}  // namespace

std::string Quote(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string For(const std::string& handler) { return handler.empty() ? "" : " for " + handler; }

std::string Describe(const Decision& decision) {
  return std::string(decision.pull ? "pull" : "no pull") + " " +
         std::string(CheckResultName(decision.result)) + " " +
         std::string(ReasonName(decision.reason)) +
         (decision.credentials_read ? ", credentials read" : "");
}

std::string Describe(const PruneReport& report) {
  return std::to_string(report.examined) + " examined, " + std::to_string(report.removed) +
         " removed, " + std::to_string(report.kept_in_list) + " in list, " +
         std::to_string(report.kept_newer) + " newer, " +
         std::to_string(report.kept_without_credentials) + " without credentials, " +
         std::to_string(report.preloaded_removed) + " preloaded removed";
}

std::string Describe(const ClassifyReport& report) {
  const auto count = [](std::uint64_t number, const char* what) {
    return std::to_string(number) + what;
  };
  return count(report.listed, " listed, ") + count(report.repeated, " repeated, ") +
         count(report.not_names, " no names, ") + count(report.known, " known, ") +
         count(report.preloaded, " preloaded, ") + count(report.closed, " closed, ") +
         count(report.left, " left, ") + count(report.united, " united, ") +
         count(report.pulls_settled, " settled, ") +
         count(report.records_removed, " records removed, ") +
         count(report.preloaded_removed, " preloaded removed") +
         (report.not_judged_because.empty() ? "" : ", not judged");
}

std::string Describe(const RuntimesReport& report) {
  return "added " + Join(report.added) + ", vanished " + Join(report.vanished) + ", changed " +
         Join(report.changed) + ", " + std::to_string(report.records_to_verify) + " to verify, " +
         std::to_string(report.records_collapsed) + " records and " +
         std::to_string(report.intents_collapsed) + " intents collapsed" +
         (report.turned_on ? ", turned on" : "");
}

std::string Describe(const RevokeReport& report) {
  return std::to_string(report.records) + " records, " + std::to_string(report.secrets) +
         " secrets, " + std::to_string(report.service_accounts) + " service accounts, " +
         std::to_string(report.node_pods) + " open to all, " + std::to_string(report.equal_hashes) +
         " equal hashes" + (report.stored ? ", stored" : "");
}

std::string Describe(const RevokeMissingReport& report) {
  return std::to_string(report.known) + " known, " + std::to_string(report.gone) + " gone, " +
         std::to_string(report.newer) + " newer, " + Describe(report.forgotten);
}

std::string DescribePod(const ModelPod& pod) {
  ImagePullCredentials all;
  all.kubernetes_secrets = pod.secrets;
  if (pod.service_account) all.kubernetes_service_accounts.push_back(*pod.service_account);
  return pod.available ? DescribeCredentials(all) : "unavailable";
}

std::string DescribeListed(const std::vector<ListedImage>& images) {
  std::string text;
  for (const ListedImage& image : images) {
    text += " " + image.id + For(image.runtime_handler) + (image.pinned ? " pinned" : "");
    for (const auto* names : {&image.repo_tags, &image.repo_digests}) {
      for (const std::string& name : *names) text += " " + Quote(name);
    }
    text += ";";
  }
  return text;
}

bool Same(const Decision& a, const Decision& b) {
  return a.pull == b.pull && a.result == b.result && a.reason == b.reason &&
         a.credentials_read == b.credentials_read;
}

}  // namespace waybill::testing
