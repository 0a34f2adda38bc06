#include "store/recovery/private_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "store/base/files.h"

namespace waybill::internal {

namespace {

constexpr const char* kUnfinished = "new.tmp";
constexpr const char* kBackup = "backup";
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
// quarantine/<time>/data.mdb
constexpr int kMaxDepth = 3;

enum class Type { kFile, kFolder, kEither };

Error Unsafe(const std::filesystem::path& path, const std::string& what, const char* hint) {
  return {ErrorCode::kUnsafePath, path.string() + " " + what + "; nothing was changed", hint};
}

Result<void> Mend(const std::filesystem::path& path, mode_t mode,
                  std::vector<std::string>& mended) {
  if ((mode & kOthers) == 0) return {};
  // Not a symlink, and no other user can put one there: the directory is private.
  if (chmod(path.c_str(), mode & S_IRWXU) != 0) return SystemError(errno, "chmod", path);
  char modes[64];
  std::snprintf(modes, sizeof(modes), " had mode %04o, and has %04o now", mode & 07777U,
                mode & S_IRWXU);
  mended.push_back(path.string() + modes);
  return {};
}

Result<void> Look(const std::filesystem::path& path, Type type, int depth,
                  std::vector<std::string>* mended) {
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return {};
    return SystemError(errno, "look at", path);
  }
  if (S_ISLNK(st.st_mode)) {
    return Unsafe(path, "is a symlink", "put what it leads to in its place, or remove it");
  }
  const bool folder = S_ISDIR(st.st_mode);
  if (folder ? type == Type::kFile : type == Type::kFolder || !S_ISREG(st.st_mode)) {
    return Unsafe(path, folder ? "is a directory" : "is not what it should be",
                  "move it away while nothing has the store open");
  }
  if (st.st_uid != geteuid()) {
    return Unsafe(path,
                  "belongs to user " + std::to_string(st.st_uid) + ", not to user " +
                      std::to_string(geteuid()) + " who runs this",
                  "find out who put it there; chown it only if you trust what is in it");
  }
  if (mended != nullptr) {
    if (auto r = Mend(path, st.st_mode, *mended); !r) return r;
  }
  if (!folder) return {};
  if (depth == kMaxDepth) return Unsafe(path, "lies too deep for a store", "move it away");
  auto names = ListDirectory(path);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    // An unfinished backup is never opened, and is removed before the next one.
    if (name == kUnfinished && path.filename() == kBackup) continue;
    if (auto r = Look(path / name, Type::kEither, depth + 1, mended); !r) return r;
  }
  return {};
}

}  // namespace

Result<void> CheckStoreFiles(const std::filesystem::path& directory,
                             std::vector<std::string>* mended) {
  for (const char* name : {"data.mdb", "lock.mdb", "owner.lock"}) {
    if (auto r = Look(directory / name, Type::kFile, 1, mended); !r) return r;
  }
  for (const char* name : {kUnfinished, kBackup, "quarantine"}) {
    if (auto r = Look(directory / name, Type::kFolder, 1, mended); !r) return r;
  }
  return {};
}

}  // namespace waybill::internal
