#include "store/lmdb/commit.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "store/base/files.h"
#include "store/lmdb/error.h"

namespace waybill::lmdb {

namespace {

Result<std::string> ReadMetaPages(const internal::Fd& file, std::size_t bytes,
                                  const std::filesystem::path& path) {
  std::string pages(bytes, '\0');
  const ssize_t n = pread(file.get(), pages.data(), pages.size(), 0);
  if (n == static_cast<ssize_t>(pages.size())) return pages;
  return MakeSystemError(n < 0 ? errno : EIO, "reading the meta pages", path);
}

bool PutBack(const internal::Fd& file, const std::string& pages,
             const std::filesystem::path& path) {
  const auto now = ReadMetaPages(file, pages.size(), path);
  if (now && *now == pages) return true;
  return internal::PWriteAll(file, pages, 0, path) && internal::SyncFile(file, path);
}

}  // namespace

Result<void> CommitOrPutBack(Txn& txn, const Env& env) {
  const std::filesystem::path path = env.directory() / "data.mdb";
  auto file = internal::OpenFile(path, O_RDWR);
  if (!file) return file.error();
  auto before = ReadMetaPages(*file, 2 * env.GetInfo().page_size, path);
  if (!before) return before.error();
  const int rc = txn.Commit();
  if (rc == MDB_SUCCESS) return {};
  if (PutBack(*file, *before, path)) return MakeError(rc, "committing", env.directory());
  return Error{ErrorCode::kOutcomeUnknown,
               "a commit in " + env.directory().string() +
                   " failed half way, and nobody knows what is on the disk",
               "look for disk errors in the kernel's log, then open the store to find out"};
}

}  // namespace waybill::lmdb
