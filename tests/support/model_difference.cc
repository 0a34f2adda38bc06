// Compares a store with its model, in words.

#include <map>

#include "tests/support/model.h"

namespace waybill::testing {

namespace {

std::string DescribeTime(const std::optional<Timestamp>& time) {
  if (!time) return "never";
  return std::to_string(time->seconds) + "." + std::to_string(time->nanoseconds);
}

}  // namespace

std::string DescribeCredentials(const ImagePullCredentials& credentials) {
  std::string text = credentials.node_pods_accessible ? "node" : "";
  const auto& secrets = credentials.kubernetes_secrets;
  for (std::size_t i = 0; i < secrets.size(); ++i) {
    if (i == 8) {
      text += " … " + std::to_string(secrets.size()) + " secrets";
      break;
    }
    text += " " + secrets[i].namespace_name + "/" + secrets[i].name + "/" +
            secrets[i].uid.substr(0, 8) + "=" + secrets[i].credential_hash.substr(0, 4);
  }
  for (const auto& account : credentials.kubernetes_service_accounts) {
    text += " sa:" + account.namespace_name + "/" + account.name + "/" + account.uid.substr(0, 8);
  }
  return "{" + text + "}";
}

std::string DescribeRecord(const ImagePulledRecord& record) {
  std::string text = record.image_ref + " at " + DescribeTime(record.last_updated);
  for (const auto& [name, credentials] : record.credential_mapping) {
    text += "; " + name + " " + DescribeCredentials(credentials);
  }
  return text;
}

std::string Difference(const Model& model, const std::vector<ImagePulledRecord>& records,
                       const std::vector<ImagePullIntent>& intents) {
  std::map<std::string, ImagePulledRecord> held;
  for (const ImagePulledRecord& record : records) held[record.image_ref] = record;
  for (const auto& [ref, expected] : model.records()) {
    const auto found = held.find(ref);
    if (found == held.end()) return "missing: " + DescribeRecord(expected);
    found->second.stamp = expected.stamp;
    if (found->second != expected) {
      return "record " + DescribeRecord(found->second) + "\n  instead of " +
             DescribeRecord(expected);
    }
    held.erase(found);
  }
  if (!held.empty()) return "too much: " + DescribeRecord(held.begin()->second);

  std::vector<std::string> stored;
  for (const auto& intent : intents) stored.push_back(intent.image);
  std::vector<std::string> expected;
  for (const auto& [image, known] : model.intents()) expected.push_back(image);
  if (stored == expected) return "";
  std::string text = "intents";
  for (const auto& image : stored) text += " \"" + image + "\"";
  text += "\n  instead of";
  for (const auto& image : expected) text += " \"" + image + "\"";
  return text;
}

std::string Difference(const Model& model, const NodeStore& store) {
  const auto records = store.ListRecords();
  if (!records) return records.error().ToString();
  const auto intents = store.ListIntents();
  if (!intents) return intents.error().ToString();
  return Difference(model, *records, *intents);
}

}  // namespace waybill::testing
