#include "store/engine/recovery/store_sight.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "store/engine/database/commit_mark.h"
#include "store/engine/lmdb/check/page_format.h"
#include "store/engine/recovery/owner_lock.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxMarkBytes = 16384;

// Of one meta page; empty: the file has none there.
std::string MetaAt(const Fd& file, off_t offset) {
  std::string meta(kMetaBytes, '\0');
  const ssize_t n = pread(file.get(), meta.data(), meta.size(), offset);
  return n == static_cast<ssize_t>(meta.size()) ? meta : std::string();
}

std::string MetasOf(const Fd& file) {
  std::string first = MetaAt(file, 0);
  if (first.empty()) return first;
  MetaRecord record;
  std::memcpy(&record, first.data() + kPageHeaderBytes, sizeof(record));
  return first + MetaAt(file, record.free_tree.pad);
}

FileId IdOf(const std::filesystem::path& path) {
  FileLook look;
  return LookAt(path.c_str(), look) ? look.id : FileId();
}

}  // namespace

StoreSight LookAtStore(const std::filesystem::path& directory) {
  StoreSight sight;
  // First of all: an owner that comes after this, and is gone before the second look, has left its
  // own line.
  OwnerSight owner = LookAtOwner(directory);
  sight.owner = std::move(owner.line);
  sight.is_opening = owner.is_opening;
  const std::filesystem::path data = directory / "data.mdb";
  sight.ids = {IdOf(data), IdOf(directory / "lock.mdb")};
  if (const auto file = OpenFile(data, O_RDONLY)) sight.metas = MetasOf(*file);
  if (auto mark = ReadWholeFile(CommitMarkIn(directory), kMaxMarkBytes)) {
    sight.mark = std::move(*mark);
  }
  return sight;
}

}  // namespace waybill::internal
