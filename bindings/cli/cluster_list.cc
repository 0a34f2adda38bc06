#include "bindings/cli/cluster_list.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "bindings/cli/input.h"
#include "store/base/image_name.h"
#include "store/base/json_document.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

using internal::JsonDocument;
using internal::JsonKind;
using internal::JsonValue;

// The names that messages may quote: the document may hold credentials under any other.
constexpr auto kQuotableFields = WordsIn<38>(
    "apiVersion items kind metadata continue namespace name uid type data stringData "
    ".dockerconfigjson .dockercfg auths username password email auth spec status phase "
    "nodeName runtimeClassName serviceAccountName imagePullSecrets initContainers containers "
    "ephemeralContainers volumes image reference pullPolicy imagePullPolicy imageID "
    "initContainerStatuses containerStatuses ephemeralContainerStatuses handler");

struct KindOfObject {
  ClusterKind kind;
  std::string_view name;
  std::string_view list;
  std::string_view command;
};
constexpr KindOfObject kKinds[] = {
    {ClusterKind::kPod, "Pod", "PodList", "kubectl get pods -A -o json"},
    {ClusterKind::kSecret, "Secret", "SecretList", "kubectl get secrets -A -o json"},
    {ClusterKind::kServiceAccount, "ServiceAccount", "ServiceAccountList",
     "kubectl get serviceaccounts -A -o json"},
    {ClusterKind::kRuntimeClass, "RuntimeClass", "RuntimeClassList",
     "kubectl get runtimeclasses -o json"},
};

// nullopt: missing or null.
Result<std::optional<JsonValue>> FindOf(JsonValue owner, std::string_view name, JsonKind kind,
                                        std::string_view wanted) {
  auto field = internal::FindField(owner, name);
  if (!field || !*field) return field;
  if ((*field)->is_null()) return std::optional<JsonValue>();
  if ((*field)->kind() != kind) return (*field)->Expected(wanted);
  return field;
}

Result<std::optional<JsonValue>> FindArray(JsonValue owner, std::string_view name) {
  return FindOf(owner, name, JsonKind::kArray, "an array");
}

// Calls `read(JsonValue)` for each object of an array that may be missing.
template <typename Read>
Result<void> ForEachObject(JsonValue owner, std::string_view name, const Read& read) {
  const auto array = TRY(FindArray(owner, name));
  if (!array) return {};
  for (const JsonValue item : array->members()) {
    if (item.kind() != JsonKind::kObject) return item.Expected("an object");
    TRY(read(item));
  }
  return {};
}

Result<void> ReadCoordinate(JsonValue owner, std::string_view name, std::string& out) {
  return internal::ReadStringField(owner, name, kMaxCoordinateBytes, out);
}

// Reads namespace, name and UID of an object.
template <typename Object>
Result<void> ReadMetadata(JsonValue object, Object& out) {
  const auto metadata = TRY(internal::Require(object, "metadata", JsonKind::kObject));
  TRY(ReadCoordinate(metadata, "namespace", out.namespace_name));
  TRY(ReadCoordinate(metadata, "name", out.name));
  TRY(ReadCoordinate(metadata, "uid", out.uid));
  return out.name.empty() ? metadata.Fail("the object has no name") : Result<void>();
}

Result<void> ReadPullSecretNames(JsonValue owner, std::vector<std::string>& out) {
  return ForEachObject(owner, "imagePullSecrets", [&](JsonValue reference) -> Result<void> {
    std::string name;
    TRY(ReadCoordinate(reference, "name", name));
    // The API server admits an empty name, and a kubelet finds no Secret under it.
    if (!name.empty()) out.push_back(std::move(name));
    return {};
  });
}

PullPolicy DefaultPullPolicy(std::string_view image) {
  const auto parts = PartsOfImage(image);
  const bool latest =
      parts && (parts->tag == "latest" || (parts->tag.empty() && parts->digest.empty()));
  return latest ? PullPolicy::kAlways : PullPolicy::kIfNotPresent;
}

Result<void> ReadPolicy(JsonValue owner, std::string_view field, ContainerToStart& out) {
  const auto policy = TRY(FindOf(owner, field, JsonKind::kString, "a string"));
  if (!policy || policy->text().empty()) {
    out.pull_policy = DefaultPullPolicy(out.image);
    return {};
  }
  auto parsed = FromWord<PullPolicy>(policy->text(), "pull policy");
  if (!parsed) return policy->Fail("not a pull policy: Always, IfNotPresent or Never");
  out.pull_policy = *parsed;
  return {};
}

Result<void> ReadContainers(JsonValue spec, std::string_view field, ContainerKind kind,
                            PodToStart& out) {
  return ForEachObject(spec, field, [&](JsonValue container) -> Result<void> {
    ContainerToStart& added = out.containers.emplace_back();
    added.kind = kind;
    TRY(ReadCoordinate(container, "name", added.name));
    // An image of any length is read: its decision says that only this container can't start.
    TRY(internal::ReadStringField(container, "image", kMaxClusterListBytes, added.image));
    return ReadPolicy(container, "imagePullPolicy", added);
  });
}

Result<void> ReadImageVolumes(JsonValue spec, PodToStart& out) {
  return ForEachObject(spec, "volumes", [&](JsonValue volume) -> Result<void> {
    const auto image = TRY(FindOf(volume, "image", JsonKind::kObject, "an object"));
    if (!image) return {};
    ContainerToStart& added = out.containers.emplace_back();
    added.kind = ContainerKind::kImageVolume;
    TRY(ReadCoordinate(volume, "name", added.name));
    TRY(internal::ReadStringField(*image, "reference", kMaxClusterListBytes, added.image));
    return ReadPolicy(*image, "pullPolicy", added);
  });
}

// Where a status says what the runtime called the image: `docker-pullable://r/x@sha256:…`.
std::string_view RefOfImageId(std::string_view image_id) {
  const std::size_t scheme = image_id.find("://");
  return scheme == std::string_view::npos ? image_id : image_id.substr(scheme + 3);
}

Result<void> ReadStatuses(JsonValue status, std::string_view field, ContainerKind kind,
                          PodToStart& out) {
  return ForEachObject(status, field, [&](JsonValue one) -> Result<void> {
    std::string name;
    std::string image_id;
    TRY(ReadCoordinate(one, "name", name));
    TRY(internal::ReadStringField(one, "imageID", kMaxClusterListBytes, image_id));
    for (ContainerToStart& container : out.containers) {
      if (container.kind != kind || container.name != name) continue;
      container.status_ref = RefOfImageId(image_id);
    }
    return {};
  });
}

Result<PodToStart> ReadPod(JsonValue object) {
  PodToStart pod;
  TRY(ReadMetadata(object, pod));
  const auto spec = TRY(internal::Require(object, "spec", JsonKind::kObject));
  TRY(ReadCoordinate(spec, "nodeName", pod.node_name));
  TRY(ReadCoordinate(spec, "runtimeClassName", pod.runtime_class));
  TRY(ReadCoordinate(spec, "serviceAccountName", pod.service_account));
  TRY(ReadPullSecretNames(spec, pod.pull_secrets));
  TRY(ReadContainers(spec, "initContainers", ContainerKind::kInit, pod));
  TRY(ReadContainers(spec, "containers", ContainerKind::kRegular, pod));
  TRY(ReadContainers(spec, "ephemeralContainers", ContainerKind::kEphemeral, pod));
  TRY(ReadImageVolumes(spec, pod));
  const auto status = TRY(FindOf(object, "status", JsonKind::kObject, "an object"));
  if (!status) return pod;
  TRY(ReadCoordinate(*status, "phase", pod.phase));
  TRY(ReadStatuses(*status, "initContainerStatuses", ContainerKind::kInit, pod));
  TRY(ReadStatuses(*status, "containerStatuses", ContainerKind::kRegular, pod));
  TRY(ReadStatuses(*status, "ephemeralContainerStatuses", ContainerKind::kEphemeral, pod));
  return pod;
}

Result<ListedSecret> ReadListedSecret(JsonValue object) {
  ListedSecret secret;
  TRY(ReadMetadata(object, secret));
  auto registries = internal::HashPullSecret(object);
  if (registries) {
    secret.registries = *std::move(registries);
  } else if (registries.error().code == ErrorCode::kOutOfMemory) {
    return registries.error();
  } else {
    secret.unreadable_because = registries.error().message;
  }
  return secret;
}

Result<ListedServiceAccount> ReadServiceAccount(JsonValue object) {
  ListedServiceAccount account;
  TRY(ReadMetadata(object, account));
  TRY(ReadPullSecretNames(object, account.pull_secrets));
  return account;
}

Result<void> ReadObject(JsonValue object, ClusterKind kind, ClusterObjects& out) {
  switch (kind) {
    case ClusterKind::kPod:
      out.pods.push_back(TRY(ReadPod(object)));
      return {};
    case ClusterKind::kSecret:
      out.secrets.push_back(TRY(ReadListedSecret(object)));
      return {};
    case ClusterKind::kServiceAccount:
      out.service_accounts.push_back(TRY(ReadServiceAccount(object)));
      return {};
    case ClusterKind::kRuntimeClass:
      break;
  }
  PodToStart named;  // for its name only
  TRY(ReadMetadata(object, named));
  std::string handler;
  auto read = internal::ReadStringField(object, "handler", kMaxRuntimeHandlerBytes, handler);
  if (read && !out.handlers.emplace(named.name, std::move(handler)).second) {
    return object.Fail("this runtime class is there twice");
  }
  return read;
}

// Two objects of one name: it would not be clear which one counts.
template <typename Object>
Result<void> CheckNamesOnce(const std::vector<Object>& objects, std::string_view kind) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const Object& object : objects) {
    if (seen.emplace(object.namespace_name, object.name).second) continue;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the {} {}/{} is there twice", kind, object.namespace_name, object.name),
        "list the objects once"};
  }
  return {};
}

Result<void> CheckWholeList(JsonValue root) {
  const auto metadata = TRY(FindOf(root, "metadata", JsonKind::kObject, "an object"));
  if (!metadata) return {};
  std::string more;
  auto read = internal::ReadStringField(*metadata, "continue", kMaxClusterListBytes, more);
  if (!read || more.empty()) return read;
  Error error = metadata->Fail("\"continue\" is set: this is a part of the list only");
  error.hint = "ask for the whole list at once";
  return error;
}

// "Pod" of a List's item; nullptr: of a kind that is ignored. Items of a PodList do not say it.
const KindOfObject* FindKind(std::string_view name) {
  for (const KindOfObject& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

Result<std::string> KindText(JsonValue object) {
  std::string text;
  TRY(internal::ReadStringField(object, "kind", kMaxCoordinateBytes, text));
  return text;
}

Result<void> ReadItems(JsonValue root, std::string_view list_kind, ClusterObjects& out,
                       std::size_t& count) {
  const KindOfObject* of_list = nullptr;
  for (const KindOfObject& kind : kKinds) {
    if (kind.list == list_kind) of_list = &kind;
  }
  return ForEachObject(root, "items", [&](JsonValue item) -> Result<void> {
    ++count;
    const auto text = TRY(KindText(item));
    const KindOfObject* kind = text.empty() ? of_list : FindKind(text);
    return kind == nullptr ? Result<void>() : ReadObject(item, kind->kind, out);
  });
}

std::size_t CountOf(const ClusterObjects& objects, ClusterKind kind) {
  switch (kind) {
    case ClusterKind::kPod:
      return objects.pods.size();
    case ClusterKind::kSecret:
      return objects.secrets.size();
    case ClusterKind::kServiceAccount:
      return objects.service_accounts.size();
    case ClusterKind::kRuntimeClass:
      break;
  }
  return objects.handlers.size();
}

Error WrongDocument(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message), {}};
}

}  // namespace

std::string_view CommandThatLists(ClusterKind kind) {
  return kKinds[static_cast<std::size_t>(kind)].command;
}

std::string_view ContainerKindName(ContainerKind kind) {
  constexpr std::string_view kNames[] = {"initContainer", "container", "ephemeralContainer",
                                         "imageVolume"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<ClusterObjects> DecodeClusterList(std::string_view json, ClusterKind wanted) {
  const KindOfObject& of_wanted = kKinds[static_cast<std::size_t>(wanted)];
  const auto document = TRY(JsonDocument::ParseSecret(json, kMaxClusterListBytes, kQuotableFields));
  const JsonValue root = document.root();
  if (root.kind() != JsonKind::kObject) return root.Expected("an object");
  const auto text = TRY(KindText(root));
  ClusterObjects objects;
  std::size_t count = 0;
  if (const KindOfObject* single = FindKind(text)) {
    count = 1;
    TRY(ReadObject(root, single->kind, objects));
  } else {
    TRY(CheckWholeList(root));
    const auto items = TRY(internal::FindField(root, "items"));
    // A kubelet without pods writes null.
    if (!items) return WrongDocument("field \"items\" is missing");
    TRY(ReadItems(root, text, objects, count));
  }
  if (count > 0 && CountOf(objects, wanted) == 0) {
    return WrongDocument(fmt::format("none of its {} {} is a {}", count,
                                     count == 1 ? "object" : "objects", of_wanted.name));
  }
  TRY(CheckNamesOnce(objects.pods, "Pod"));
  TRY(CheckNamesOnce(objects.secrets, "Secret"));
  TRY(CheckNamesOnce(objects.service_accounts, "ServiceAccount"));
  return objects;
}

}  // namespace waybill::cli
