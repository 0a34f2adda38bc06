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

#include <map>

#include "runtime/files/documents.h"
#include "store/base/caught.h"
#include "store/base/described.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using PodAnnotations = std::map<std::string, internal::JsonText>;

constexpr const char* kStaticPodUids[] = {"kubernetes.io/config.hash",
                                          "kubernetes.io/config.mirror"};

struct PodItem {
  std::string uid = {};
  PodAnnotations annotations = {};
  PodAnnotations by_crictl = {};

  void Describe(auto& v) const {
    v.Within("metadata", [&](auto& metadata) {
      metadata("uid", uid, {.bytes = kMaxPodUidBytes});
      metadata.Optional("annotations", annotations);
    });
    v.Optional("annotations", by_crictl);
  }
};

struct PodItems {
  std::string more = {};
  std::vector<PodItem> items = {};

  void Describe(auto& v) const {
    v.OptionalWithin("metadata", [&](auto& metadata) { metadata.Optional("continue", more); });
    // A kubelet without pods writes null.
    v("items", items, {.may_be_null = true});
  }
};

// Anyone may annotate a pod, so a value that can't be a UID is ignored.
void AddUids(const PodAnnotations& annotations, std::vector<std::string>& uids) {
  for (const char* const name : kStaticPodUids) {
    const auto found = annotations.find(name);
    std::string uid;
    if (found != annotations.end() &&
        internal::ReadForeign(found->second.text, kMaxDocumentBytes, uid) && !uid.empty() &&
        uid.size() <= kMaxPodUidBytes) {
      uids.push_back(std::move(uid));
    }
  }
}

}  // namespace

Result<std::vector<std::string>> DecodePodList(std::string_view json) {
  return internal::Guarded([&]() -> Result<std::vector<std::string>> {
    PodItems read;
    TRY(internal::ReadForeign(json, kMaxDocumentBytes, read));
    if (!read.more.empty()) {
      Error error = internal::WrongAt("metadata.continue", "this is a part of the list only");
      error.hint = "ask for the whole list at once";
      return error;
    }
    std::vector<std::string> uids;
    for (PodItem& pod : read.items) {
      uids.push_back(std::move(pod.uid));
      AddUids(pod.annotations, uids);
      AddUids(pod.by_crictl, uids);
    }
    return uids;
  });
}

}  // namespace waybill
