// The UIDs of pods, as a kubelet, a cluster or a runtime lists them (`kubectl get pods -o json`,
// the kubelet's /pods and /runningpods, `crictl pods -o json`):
//
//   {"items":[{"metadata":{"uid":"…","annotations":{"kubernetes.io/config.hash":"…",
//                                                   "kubernetes.io/config.mirror":"…"}}}, …],
//    "metadata":{"continue":"…"}}
//
// On the node a static pod's UID is its hash; in the cluster it has another. Its mirror pod has
// both. crictl prints annotations beside "metadata".
//
// A pod that is in no list loses its host IDs. So a missing or partial list and a pod without a UID
// are errors. A UID too many does no harm.

#include "store/base/caught.h"
#include "store/base/json_document.h"
#include "waybill/kubelet_format.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using internal::JsonDocument;
using internal::JsonKind;
using internal::JsonValue;

constexpr std::string_view kStaticPodUids[] = {"kubernetes.io/config.hash",
                                               "kubernetes.io/config.mirror"};

// Anyone may annotate a pod, so a value that can't be a UID is ignored.
Result<void> ReadAnnotations(JsonValue owner, std::vector<std::string>& out) {
  if (auto spelled = internal::CheckCase(owner, "annotations"); !spelled) return spelled;
  const auto annotations = owner.Find("annotations");
  if (!annotations || annotations->is_null()) return {};
  if (annotations->kind() != JsonKind::kObject) return annotations->Expected("an object");
  for (const std::string_view name : kStaticPodUids) {
    const auto uid = annotations->Find(name);
    if (!uid || !uid->is_string()) continue;
    if (uid->text().empty() || uid->text().size() > kMaxPodUidBytes) continue;
    out.emplace_back(uid->text());
  }
  return {};
}

Result<JsonValue> MetadataOf(JsonValue object) {
  if (auto spelled = internal::CheckCase(object, "metadata"); !spelled) return spelled.error();
  const auto metadata = object.Find("metadata");
  if (!metadata) return object.Fail("field \"metadata\" is missing");
  if (metadata->kind() != JsonKind::kObject) return metadata->Expected("an object");
  return *metadata;
}

Result<void> ReadPod(JsonValue pod, std::vector<std::string>& out) {
  if (pod.kind() != JsonKind::kObject) return pod.Expected("an object");
  const auto metadata = MetadataOf(pod);
  if (!metadata) return metadata.error();
  if (auto spelled = internal::CheckCase(*metadata, "uid"); !spelled) return spelled;
  const auto uid = metadata->Find("uid");
  if (!uid) return metadata->Fail("field \"uid\" is missing");
  if (!uid->is_string()) return uid->Expected("a string");
  if (uid->text().empty()) return uid->Fail("is empty");
  if (auto read = internal::ReadString(*uid, kMaxPodUidBytes, out.emplace_back()); !read) {
    return read;
  }
  if (auto read = ReadAnnotations(*metadata, out); !read) return read;
  return ReadAnnotations(pod, out);
}

Result<void> CheckWhole(JsonValue root) {
  if (auto spelled = internal::CheckCase(root, "metadata"); !spelled) return spelled;
  const auto metadata = root.Find("metadata");
  if (!metadata || metadata->is_null()) return {};
  if (metadata->kind() != JsonKind::kObject) return metadata->Expected("an object");
  if (auto spelled = internal::CheckCase(*metadata, "continue"); !spelled) return spelled;
  const auto more = metadata->Find("continue");
  if (!more || more->is_null()) return {};
  if (!more->is_string()) return more->Expected("a string");
  if (more->text().empty()) return {};
  Error error = more->Fail("is set: this is a part of the list only");
  error.hint = "ask for the whole list at once";
  return error;
}

}  // namespace

Result<std::vector<std::string>> DecodePodList(std::string_view json) try {
  const auto document = JsonDocument::Parse(json, kMaxDocumentBytes);
  if (!document) return document.error();
  const JsonValue root = document->root();
  if (root.kind() != JsonKind::kObject) return root.Expected("an object");
  if (auto whole = CheckWhole(root); !whole) return whole.error();
  if (auto spelled = internal::CheckCase(root, "items"); !spelled) return spelled.error();
  const auto items = root.Find("items");
  if (!items) return root.Fail("field \"items\" is missing");
  std::vector<std::string> uids;
  // A kubelet without pods writes null.
  if (items->is_null()) return uids;
  if (items->kind() != JsonKind::kArray) return items->Expected("an array");
  for (const JsonValue pod : items->members()) {
    if (auto read = ReadPod(pod, uids); !read) return read.error();
  }
  return uids;
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
