#include "guard/watches.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace waybill::guard {
namespace {

constexpr std::uint32_t kMask = IN_MOVED_TO | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE |
                                IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR |
                                IN_DONT_FOLLOW;

}  // namespace

Result<std::unique_ptr<Watches>> Watches::Make() {
  internal::Fd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (fd.valid()) return std::unique_ptr<Watches>(new Watches(std::move(fd)));
  if (errno == EMFILE) {
    return Error{ErrorCode::kLimitExceeded, "the kernel allows no more inotify instances",
                 "raise fs.inotify.max_user_instances"};
  }
  return Error{ErrorCode::kIo, std::string("cannot make an inotify instance: ") + strerror(errno)};
}

Result<bool> Watches::Add(WatchedFolder folder, const std::filesystem::path& path,
                          const std::string& pod) {
  const int wd = ::inotify_add_watch(fd_.get(), path.c_str(), kMask);
  if (wd < 0) {
    if (errno == ENOENT) return false;
    if (errno == ENOSPC) {
      return Error{ErrorCode::kLimitExceeded,
                   "the kernel allows no more inotify watches: cannot watch " + path.string(),
                   "raise fs.inotify.max_user_watches"};
    }
    return internal::SystemError(errno, "watch", path);
  }
  auto id = internal::FileIdOf(path);
  watched_[wd] = {folder, pod, id ? *id : internal::FileId()};
  return true;
}

void Watches::Remove(const std::string& pod) {
  std::erase_if(watched_, [&](const auto& entry) {
    if (entry.second.folder != WatchedFolder::kPod || entry.second.pod != pod) return false;
    static_cast<void>(::inotify_rm_watch(fd_.get(), entry.first));
    return true;
  });
}

bool Watches::IsStale(WatchedFolder folder, const std::filesystem::path& path) const {
  auto there = internal::FileIdOf(path);
  return std::none_of(watched_.begin(), watched_.end(), [&](const auto& entry) {
    return entry.second.folder == folder && there && entry.second.id == *there;
  });
}

Result<std::vector<WatchEvent>> Watches::Read() {
  std::vector<WatchEvent> events;
  alignas(inotify_event) std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t bytes = ::read(fd_.get(), buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) return events;
    if (bytes <= 0) {
      return Error{ErrorCode::kIo, std::string("cannot read from inotify: ") + strerror(errno)};
    }
    for (const char* at = buffer.data(); at < buffer.data() + bytes;) {
      inotify_event raw{};
      std::memcpy(&raw, at, sizeof(raw));
      const char* const name = at + sizeof(raw);
      at += sizeof(raw) + raw.len;
      WatchEvent event;
      if ((raw.mask & IN_Q_OVERFLOW) != 0) {
        event.what = WatchEvent::What::kOverflow;
        events.push_back(std::move(event));
        continue;
      }
      const auto watched = watched_.find(raw.wd);
      if (watched == watched_.end()) continue;
      event.folder = watched->second.folder;
      event.pod = watched->second.pod;
      if (raw.len > 0) event.name = name;
      if ((raw.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0) {
        event.what = WatchEvent::What::kReplaced;
        if ((raw.mask & IN_MOVE_SELF) != 0) ::inotify_rm_watch(fd_.get(), raw.wd);
        if ((raw.mask & IN_IGNORED) != 0) watched_.erase(watched);
      } else if ((raw.mask & (IN_DELETE | IN_MOVED_FROM)) != 0) {
        event.what = WatchEvent::What::kRemoved;
      } else if ((raw.mask & IN_CREATE) != 0) {
        event.what = WatchEvent::What::kMade;
      }
      events.push_back(std::move(event));
    }
  }
}

}  // namespace waybill::guard
