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

#include "runtime/files/documents.h"
#include "store/base/caught.h"
#include "store/base/json_document.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using internal::JsonKind;
using internal::JsonValue;

constexpr std::string_view kStaticPodUids[] = {"kubernetes.io/config.hash",
                                               "kubernetes.io/config.mirror"};

// nullopt: missing or null.
Result<std::optional<JsonValue>> FindObject(JsonValue owner, std::string_view name) {
  auto field = internal::FindField(owner, name);
  if (!field || !*field) return field;
  if ((*field)->is_null()) return std::optional<JsonValue>();
  if ((*field)->kind() != JsonKind::kObject) return (*field)->Expected("an object");
  return field;
}

// Anyone may annotate a pod, so a value that can't be a UID is ignored.
Result<void> ReadAnnotations(JsonValue owner, std::vector<std::string>& out) {
  const auto annotations = TRY(FindObject(owner, "annotations"));
  if (!annotations) return {};
  for (const std::string_view name : kStaticPodUids) {
    const auto uid = annotations->Find(name);
    if (!uid || !uid->is_string()) continue;
    if (uid->text().empty() || uid->text().size() > kMaxPodUidBytes) continue;
    out.emplace_back(uid->text());
  }
  return {};
}

Result<void> ReadPod(JsonValue pod, std::vector<std::string>& out) {
  if (auto fields = internal::CheckFields(pod, {"metadata"}); !fields) return fields;
  const auto metadata = TRY(internal::Require(pod, "metadata", JsonKind::kObject));
  if (auto fields = internal::CheckFields(metadata, {"uid"}); !fields) return fields;
  const auto uid = TRY(internal::Require(metadata, "uid", JsonKind::kString));
  if (uid.text().empty()) return uid.Fail("is empty");
  TRY(internal::ReadString(uid, kMaxPodUidBytes, out.emplace_back()));
  TRY(ReadAnnotations(metadata, out));
  return ReadAnnotations(pod, out);
}

Result<void> CheckWhole(JsonValue root) {
  const auto metadata = TRY(FindObject(root, "metadata"));
  if (!metadata) return {};
  const auto more = TRY(internal::FindField(*metadata, "continue"));
  if (!more || more->is_null()) return {};
  if (!more->is_string()) return more->Expected("a string");
  if (more->text().empty()) return {};
  Error error = more->Fail("is set: this is a part of the list only");
  error.hint = "ask for the whole list at once";
  return error;
}

}  // namespace

Result<std::vector<std::string>> DecodePodList(std::string_view json) try {
  const auto document = TRY(internal::JsonDocument::Parse(json, kMaxDocumentBytes));
  const JsonValue root = document.root();
  if (root.kind() != JsonKind::kObject) return root.Expected("an object");
  TRY(CheckWhole(root));
  TRY(internal::CheckFields(root, {"items"}));
  std::vector<std::string> uids;
  // A kubelet without pods writes null.
  if (const auto items = root.Find("items"); items && items->is_null()) return uids;
  const auto items = TRY(internal::Require(root, "items", JsonKind::kArray));
  for (const JsonValue pod : items.members()) TRY(ReadPod(pod, uids));
  return uids;
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
