#include "store/lmdb/commit.h"

#include <unistd.h>

#include <cerrno>
#include <string>

namespace waybill::lmdb {

namespace {

// Both meta pages, one after the other.
Result<std::string> ReadMetaPages(int fd, std::size_t page_bytes) {
  std::string pages(2 * page_bytes, '\0');
  const ssize_t n = pread(fd, pages.data(), pages.size(), 0);
  if (n == static_cast<ssize_t>(pages.size())) return pages;
  return MakeSystemError(n < 0 ? errno : EIO, "reading the meta pages", internal::PathOf(fd));
}

// The page that the commit would have written. Nothing, where the other one is not as it was: then
// somebody else wrote here.
bool PutBack(int fd, const std::string& before, std::size_t page_bytes, std::size_t which) {
  const auto now = ReadMetaPages(fd, page_bytes);
  if (now && *now == before) return true;
  const std::size_t other = (1 - which) * page_bytes;
  if (now && now->compare(other, page_bytes, before, other, page_bytes) != 0) return false;
  const std::size_t at = which * page_bytes;
  const ssize_t written = pwrite(fd, before.data() + at, page_bytes, static_cast<off_t>(at));
  return written == static_cast<ssize_t>(page_bytes) && fsync(fd) == 0;
}

}  // namespace

Result<void> CommitOrPutBack(Txn& txn, const Env& env) {
  mdb_filehandle_t fd = -1;
  mdb_env_get_fd(env.get(), &fd);  // fails without an environment only
  const std::size_t page_bytes = env.GetInfo().page_size;
  auto before = ReadMetaPages(fd, page_bytes);
  if (!before) {
    txn.Abort();
    return before.error();
  }
  const std::size_t which = txn.id() % 2;
  const int rc = txn.Commit();
  if (rc == MDB_SUCCESS) return {};
  if (PutBack(fd, *before, page_bytes, which)) return MakeError(rc, "committing", env.directory());
  return Error{ErrorCode::kOutcomeUnknown,
               "a commit in " + env.directory().string() +
                   " failed half way, and nobody knows what is on the disk",
               "look for disk errors in the kernel's log, then open the store to find out"};
}

}  // namespace waybill::lmdb
