// Writes ID mappings where a kubelet keeps them, <kubelet-dir>/pods/<pod-uid>/userns
// (migrations/README.md, "Going back").
//
//   pods/<pod-uid>/userns.tmp                        being written
//   pods/<pod-uid>/userns.before-export-<time>[-n]   the earlier file, if its content differed

#ifndef WAYBILL_MIGRATIONS_KUBELET_FILES_USERNS_EXPORT_H_
#define WAYBILL_MIGRATIONS_KUBELET_FILES_USERNS_EXPORT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

class UsernsExport {
 public:
  // Reads the existing files, and writes nothing. kConflict:
  //   a pod is held
  //   mappings have several lengths: a kubelet starts only if all have its idsPerPod
  //   two ranges overlap; one may come from a file in pods/ that the store does not know
  //   such a file has no valid mapping: its range may be unknown, and no kubelet accepts it
  // kUnsafePath, kIo: pods/, or a pod's directory. Without allocations pods/ is not read.
  static Result<UsernsExport> Plan(const std::filesystem::path& kubelet_directory,
                                   const std::vector<PodMapping>& allocations,
                                   const std::vector<QuarantinedPod>& held);

  // Makes missing directories and replaces each file in one step, except files with the same
  // content. Returns the number of mappings, all on disk. After an error or a crash some files are
  // old and some new, each complete: repeat the call.
  Result<std::uint64_t> Write(Timestamp now) const;

  // For each pod that was written, removes the files that earlier exports kept, except the newest
  // kMaxKeptAside: the store has the pod's range. What can't be removed stays. Returns the removed
  // paths.
  std::vector<std::string> RemoveOldAside() const;

 private:
  struct Pod {
    std::string uid;
    std::uint32_t host_id = 0;
    std::uint32_t length = 0;
    bool in_place = false;  // the file has the same mapping already
  };

  explicit UsernsExport(std::filesystem::path pods) : pods_(std::move(pods)) {}

  Result<void> WriteOne(const Pod& pod, Timestamp now) const;

  std::filesystem::path pods_;
  std::vector<Pod> to_write_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_FILES_USERNS_EXPORT_H_
