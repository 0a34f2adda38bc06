#include "bindings/cli/cluster_list.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "bindings/cli/input.h"
#include "store/base/described.h"
#include "store/base/image_name.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

using internal::Bounds;
using internal::JsonText;
using internal::PathIn;
using internal::ReadForeign;
using internal::WrongAt;

constexpr Bounds kCoordinate = {.bytes = kMaxCoordinateBytes};
// More than fit a document of that size with their names.
constexpr std::size_t kMaxClusterObjects = 1'000'000;

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

struct ObjectKind {
  std::string kind = {};

  void Describe(auto& v) const { v.Optional("kind", kind, kCoordinate); }
};

// Of a container, its status, or a reference to a Secret.
struct NamedObject {
  std::string name = {};
  // Of any length: its decision says that only this container can't start.
  std::string image = {};
  std::string policy = {};
  std::string image_id = {};

  void Describe(auto& v) const {
    v.Optional("name", name, kCoordinate);
    v.Optional("image", image);
    v.Optional("imagePullPolicy", policy);
    v.Optional("imageID", image_id);
  }
};

struct ImageVolume {
  std::string reference = {};
  std::string policy = {};

  void Describe(auto& v) const {
    v.Optional("reference", reference);
    v.Optional("pullPolicy", policy);
  }
};

struct VolumeObject {
  std::string name = {};
  std::optional<ImageVolume> image = {};

  void Describe(auto& v) const {
    v.Optional("name", name, kCoordinate);
    v.Optional("image", image);
  }
};

void DescribeMetadata(auto& v, const auto& object) {
  v.Within("metadata", [&](auto& metadata) {
    metadata.Optional("namespace", object.namespace_name, kCoordinate);
    metadata("name", object.name, kCoordinate);
    metadata.Optional("uid", object.uid, kCoordinate);
  });
}

struct PodObject : PodToStart {
  std::vector<NamedObject> secrets = {};
  std::vector<VolumeObject> volumes = {};
  // Of init, regular and ephemeral ones.
  std::vector<NamedObject> specs[3] = {};
  std::vector<NamedObject> statuses[3] = {};

  void Describe(auto& v) const {
    DescribeMetadata(v, *this);
    v.Within("spec", [&](auto& spec) {
      spec.Optional("nodeName", node_name, kCoordinate);
      spec.Optional("runtimeClassName", runtime_class, kCoordinate);
      spec.Optional("serviceAccountName", service_account, kCoordinate);
      spec.Optional("imagePullSecrets", secrets);
      spec.Optional("initContainers", specs[0]);
      spec.Optional("containers", specs[1]);
      spec.Optional("ephemeralContainers", specs[2]);
      spec.Optional("volumes", volumes);
    });
    v.OptionalWithin("status", [&](auto& status) {
      status.Optional("phase", phase, kCoordinate);
      status.Optional("initContainerStatuses", statuses[0]);
      status.Optional("containerStatuses", statuses[1]);
      status.Optional("ephemeralContainerStatuses", statuses[2]);
    });
  }
};

// A Secret, a ServiceAccount or a RuntimeClass.
struct OtherObject : ListedServiceAccount {
  std::vector<NamedObject> secrets = {};
  std::string handler = {};

  void Describe(auto& v) const {
    DescribeMetadata(v, *this);
    v.Optional("imagePullSecrets", secrets);
    v.Optional("handler", handler, {.bytes = kMaxRuntimeHandlerBytes});
  }
};

struct ObjectList {
  std::string more = {};
  std::vector<JsonText> items = {};

  void Describe(auto& v) const {
    v.OptionalWithin("metadata", [&](auto& metadata) { metadata.Optional("continue", more); });
    // A kubelet without pods writes null.
    v("items", items, {.count = kMaxClusterObjects, .may_be_null = true});
  }
};

// The API server admits an empty name, and a kubelet finds no Secret under it.
std::vector<std::string> NamesIn(const std::vector<NamedObject>& secrets) {
  std::vector<std::string> names;
  for (const NamedObject& secret : secrets) {
    if (!secret.name.empty()) names.push_back(secret.name);
  }
  return names;
}

PullPolicy DefaultPullPolicy(std::string_view image) {
  const auto parts = PartsOfImage(image);
  const bool latest =
      parts && (parts->tag == "latest" || (parts->tag.empty() && parts->digest.empty()));
  return latest ? PullPolicy::kAlways : PullPolicy::kIfNotPresent;
}

Result<void> AddContainer(ContainerToStart added, const std::string& policy,
                          const std::string& path, PodToStart& pod) {
  added.pull_policy = DefaultPullPolicy(added.image);
  if (!policy.empty()) {
    const auto parsed = FromWord<PullPolicy>(policy, "pull policy");
    if (!parsed) return WrongAt(path, "not a pull policy: Always, IfNotPresent or Never");
    added.pull_policy = *parsed;
  }
  pod.containers.push_back(std::move(added));
  return {};
}

// Where a status says what the runtime called the image: `docker-pullable://r/x@sha256:…`.
std::string_view RefOfImageId(std::string_view image_id) {
  const std::size_t scheme = image_id.find("://");
  return scheme == std::string_view::npos ? image_id : image_id.substr(scheme + 3);
}

void AddStatus(const NamedObject& status, ContainerKind kind, PodToStart& pod) {
  for (ContainerToStart& container : pod.containers) {
    if (container.kind != kind || container.name != status.name) continue;
    container.status_ref = RefOfImageId(status.image_id);
  }
}

Result<PodToStart> ReadPod(std::string_view json) {
  PodObject pod;
  TRY(ReadForeign(json, kMaxClusterListBytes, pod));
  pod.pull_secrets = NamesIn(pod.secrets);
  constexpr std::string_view kLists[] = {"spec.initContainers", "spec.containers",
                                         "spec.ephemeralContainers"};
  for (std::size_t list = 0; list < std::size(kLists); ++list) {
    const auto kind = static_cast<ContainerKind>(list);
    for (std::size_t i = 0; i < pod.specs[list].size(); ++i) {
      const NamedObject& spec = pod.specs[list][i];
      TRY(AddContainer({.kind = kind, .name = spec.name, .image = spec.image}, spec.policy,
                       PathIn(kLists[list], i, "imagePullPolicy"), pod));
    }
    for (const NamedObject& status : pod.statuses[list]) AddStatus(status, kind, pod);
  }
  for (std::size_t i = 0; i < pod.volumes.size(); ++i) {
    const auto& [name, image] = pod.volumes[i];
    if (!image) continue;
    TRY(AddContainer({.kind = ContainerKind::kImageVolume, .name = name, .image = image->reference},
                     image->policy, PathIn("spec.volumes", i, "image.pullPolicy"), pod));
  }
  return PodToStart(std::move(pod));
}

Result<void> ReadObject(std::string_view json, ClusterKind kind, ClusterObjects& out) {
  if (kind == ClusterKind::kPod) {
    out.pods.push_back(TRY(ReadPod(json)));
    return {};
  }
  OtherObject read;
  TRY(ReadForeign(json, kMaxClusterListBytes, read));
  if (kind == ClusterKind::kServiceAccount) {
    read.pull_secrets = NamesIn(read.secrets);
    out.service_accounts.push_back(std::move(read));
    return {};
  }
  if (kind == ClusterKind::kRuntimeClass) {
    if (out.handlers.emplace(read.name, std::move(read.handler)).second) return {};
    return WrongAt("metadata.name", "this runtime class is there twice");
  }
  ListedSecret& secret =
      out.secrets.emplace_back(ListedSecret{read.namespace_name, read.name, read.uid});
  auto registries = internal::HashPullSecret(json);
  if (registries) {
    secret.registries = *std::move(registries);
  } else if (registries.error().code == ErrorCode::kOutOfMemory) {
    return registries.error();
  } else {
    secret.unreadable_because = registries.error().message;
  }
  return {};
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

// "Pod" of a List's item; nullptr: of a kind that is ignored. Items of a PodList do not say it.
const KindOfObject* FindKind(std::string_view name) {
  for (const KindOfObject& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

Result<void> ReadItems(const ObjectList& list, std::string_view list_kind, ClusterObjects& out) {
  const KindOfObject* of_list = nullptr;
  for (const KindOfObject& kind : kKinds) {
    if (kind.list == list_kind) of_list = &kind;
  }
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const std::string_view json = list.items[i].text;
    ObjectKind item;
    auto read = ReadForeign(json, kMaxClusterListBytes, item);
    const KindOfObject* const kind = item.kind.empty() ? of_list : FindKind(item.kind);
    if (read && kind != nullptr) read = ReadObject(json, kind->kind, out);
    if (!read) return internal::Inside(PathIn("items", i), read.error());
  }
  return {};
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
  ObjectKind root;
  TRY(ReadForeign(json, kMaxClusterListBytes, root));
  ClusterObjects objects;
  std::size_t count = 1;
  if (const KindOfObject* const single = FindKind(root.kind)) {
    TRY(ReadObject(json, single->kind, objects));
  } else {
    ObjectList list;
    TRY(ReadForeign(json, kMaxClusterListBytes, list));
    if (!list.more.empty()) {
      Error error = WrongAt("metadata.continue", "this is a part of the list only");
      error.hint = "ask for the whole list at once";
      return error;
    }
    TRY(ReadItems(list, root.kind, objects));
    count = list.items.size();
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
