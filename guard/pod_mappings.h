// pods/<uid>/userns: the host IDs of pods in user namespaces, in the kubelet's files and in the
// store.

#ifndef WAYBILL_GUARD_POD_MAPPINGS_H_
#define WAYBILL_GUARD_POD_MAPPINGS_H_

#include <filesystem>
#include <functional>
#include <string>

#include "guard/watches.h"
#include "waybill/node_store.h"

namespace waybill::guard {

class PodMappings {
 public:
  using Say = std::function<void(const std::string&)>;
  // `say` gets what an operator must know.
  PodMappings(std::filesystem::path pods, NodeStore& store, Watches& watches, Say say);

  // Before the kubelet starts: takes over the files of pods that the store does not know, and
  // writes those that are lost, damaged or name other IDs than the pod got.
  Result<void> PutRight();
  // Watches all pods that are there.
  Result<void> WatchAll();
  // All pods anew: events may have been missed.
  Result<void> Compare();
  Result<void> Handle(const WatchEvent& event);

 private:
  Result<void> Take(const std::string& pod);
  Result<void> WatchPod(const std::string& pod);
  Result<void> Write(const UserNamespaceAllocation& allocation);
  Result<void> FreeOfGonePods(const std::string& pod, const HostIdRange& range);

  std::filesystem::path pods_;
  NodeStore& store_;
  Watches& watches_;
  Say say_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_POD_MAPPINGS_H_
