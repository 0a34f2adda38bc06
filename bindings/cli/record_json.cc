#include "bindings/cli/record_json.h"

#include <algorithm>
#include <tuple>

namespace waybill::cli {
namespace {

Json WithoutHashes(const Json& value) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& element : value) list.push_back(WithoutHashes(element));
    return list;
  }
  if (!value.is_object()) return value;
  Json object = Json::object();
  for (const auto& [name, member] : value.items()) {
    if (name != "hash" || !member.is_string()) object[name] = WithoutHashes(member);
  }
  return object;
}

}  // namespace

Json JsonOfText(std::string_view described, Hashes hashes) {
  const Json json = ParseJson(described);
  return hashes == Hashes::kShown ? json : WithoutHashes(json);
}

void SortForReading(std::vector<ImagePulledRecord>& records) {
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
    return std::tie(a.image_ref, a.runtime_handler) < std::tie(b.image_ref, b.runtime_handler);
  });
}

std::string AccessText(const ImagePullCredentials& credentials) {
  if (credentials.node_pods_accessible) return "all pods of the node";
  if (credentials.empty()) return "nobody until pulled again";
  std::string text;
  if (!credentials.kubernetes_secrets.empty()) {
    text = HowMany(credentials.kubernetes_secrets.size(), "secret");
  }
  if (!credentials.kubernetes_service_accounts.empty()) {
    if (!text.empty()) text += ", ";
    text += HowMany(credentials.kubernetes_service_accounts.size(), "service account");
  }
  return text;
}

}  // namespace waybill::cli
