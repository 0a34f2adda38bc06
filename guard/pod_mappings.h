// pods/<uid>/userns: the host IDs of pods in user namespaces, in the kubelet's files and in the
// store.

#ifndef WAYBILL_GUARD_POD_MAPPINGS_H_
#define WAYBILL_GUARD_POD_MAPPINGS_H_

#include <filesystem>
#include <string>

#include "guard/life.h"
#include "guard/look.h"
#include "guard/watches.h"

namespace waybill::guard {

class PodMappings {
 public:
  PodMappings(Life& life, Watches& watches)
      : pods_(PodsOf(life.options.kubelet_directory)), life_(life), watches_(watches) {}

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
  Result<void> Write(const PodMapping& allocation);
  Result<void> FreeOfGonePods(const std::string& pod, const HostIdRange& range);

  static std::filesystem::path PodsOf(const std::filesystem::path& kubelet_directory);

  std::filesystem::path pods_;  // behind a symlink that nobody else can change: where that leads
  Life& life_;
  Watches& watches_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_POD_MAPPINGS_H_
