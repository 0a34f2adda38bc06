// Writes ID mappings where a kubelet keeps them, <kubelet-dir>/pods/<pod-uid>/userns
// (migrations/README.md, "Going back").
//
//   pods/<pod-uid>/userns.tmp                        being written
//   pods/<pod-uid>/userns.before-export-<time>[-n]   what was there and said something else

#ifndef WAYBILL_MIGRATIONS_KUBELET_USERNS_EXPORT_H_
#define WAYBILL_MIGRATIONS_KUBELET_USERNS_EXPORT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "waybill/result.h"
#include "waybill/types.h"
#include "waybill/user_namespace.h"

namespace waybill::internal {

class UsernsExport {
 public:
  // Looks at all that is there, and writes nothing. kConflict:
  //   a pod is held
  //   mappings of several lengths: a kubelet starts beside those of its idsPerPod only
  //   two ranges overlap, one of them perhaps that of a file in pods/ of which the store knows
  //     nothing
  //   such a file has no sound mapping: its range may be unknown, and no kubelet takes it
  // kUnsafePath, kIo: pods/, or a pod's directory. Without allocations pods/ is not looked at.
  static Result<UsernsExport> Plan(const std::filesystem::path& kubelet_directory,
                                   const std::vector<UserNamespaceAllocation>& allocations,
                                   const std::vector<HeldPod>& held);

  // Makes what directories are missing, replaces each file in one step, and leaves alone those that
  // say the same. How many mappings there are; all of them on disk. Where it fails, or a crash
  // comes between, some files are old and some are new, each of them whole: do it all again.
  Result<std::uint64_t> Write(Timestamp now) const;

  // Of each pod that was written to, removes the files that earlier exports kept beyond the newest
  // kMaxKeptAside: the pod's range is in the store. What can't be removed stays. Returns what went.
  std::vector<std::string> RemoveOldAside() const;

 private:
  struct Pod {
    std::string uid;
    std::string content;
    bool in_place = false;  // a file that says the same
  };

  explicit UsernsExport(std::filesystem::path pods) : pods_(std::move(pods)) {}

  Result<void> WriteOne(const Pod& pod, Timestamp now) const;

  std::filesystem::path pods_;
  std::vector<Pod> to_write_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_USERNS_EXPORT_H_
