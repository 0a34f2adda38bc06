#include "guard/session.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "store/base/try.h"

namespace waybill::guard {
namespace {

struct flock Whole() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

Result<bool> IsLocked(const std::filesystem::path& path) {
  auto lock = internal::OpenFile(path, O_RDONLY);
  if (!lock) {
    return lock.error().code == ErrorCode::kNotFound ? Result<bool>(false) : lock.error();
  }
  struct flock whole = Whole();
  if (::fcntl(lock->get(), F_OFD_GETLK, &whole) != 0) {
    return internal::SystemError(errno, "see who holds", path);
  }
  return whole.l_type != F_UNLCK;
}

Result<bool> Session::Runs(const std::filesystem::path& own) { return IsLocked(own / "lock"); }

Result<Session> Session::Begin(const std::filesystem::path& own) {
  TRY(internal::MakePrivateDirectory(own));
  TRY(internal::CheckPrivateDirectory(own));
  const std::filesystem::path path = own / "lock";
  auto lock = TRY(internal::OpenFile(path, O_RDWR | O_CREAT));
  struct flock whole = Whole();
  if (::fcntl(lock.get(), F_OFD_SETLK, &whole) != 0) {
    if (errno != EAGAIN && errno != EACCES) return internal::SystemError(errno, "lock", path);
    return Error{ErrorCode::kOwned,
                 "another guard runs on this kubelet directory: it holds " + path.string() +
                     "; nothing was changed",
                 "one guard is enough: stop that one first"};
  }
  return Session(std::move(lock));
}

bool Session::InPlace(const std::filesystem::path& own) const {
  const std::filesystem::path path = own / "lock";
  auto held = internal::FileIdOf(lock_, path);
  auto there = internal::FileIdOf(path);
  return held && there && *held == *there;
}

}  // namespace waybill::guard
