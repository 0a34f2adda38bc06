// inotify on the folders that a kubelet changes.

#ifndef WAYBILL_GUARD_WATCHES_H_
#define WAYBILL_GUARD_WATCHES_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::guard {

enum class WatchedFolder : std::uint8_t { kRoot, kPulled, kPulling, kPods, kPod };

struct WatchEvent {
  enum class What : std::uint8_t {
    kWritten,   // renamed into place, or closed after writing
    kMade,      // linked into place
    kRemoved,   // removed, or renamed away
    kOverflow,  // events were lost
    kReplaced,  // a watched folder is gone, or is another one
  };
  What what = What::kWritten;
  WatchedFolder folder = WatchedFolder::kPulled;
  std::string pod = {};  // of kPod: the pod's UID
  std::string name = {};
  int tries = 0;  // counted by who handles it
};

class Watches {
 public:
  // kLimitExceeded: the system's bound of inotify instances.
  static Result<std::unique_ptr<Watches>> Make();

  int fd() const { return fd_.get(); }

  // Watches the folder from now on. One that does not exist is not an error; false then.
  Result<bool> Add(WatchedFolder folder, const std::filesystem::path& path,
                   const std::string& pod = {});
  void Remove(const std::string& pod);
  // Whether the path leads to another folder than the one that is watched, or is not watched.
  bool IsStale(WatchedFolder folder, const std::filesystem::path& path) const;

  // All that is queued. Never waits.
  Result<std::vector<WatchEvent>> Read();

 private:
  struct Watched {
    WatchedFolder folder = WatchedFolder::kPulled;
    std::string pod;
    internal::FileId id;
  };
  explicit Watches(internal::Fd fd) : fd_(std::move(fd)) {}

  internal::Fd fd_;
  std::map<int, Watched> watched_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_WATCHES_H_
