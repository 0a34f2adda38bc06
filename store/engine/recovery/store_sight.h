// Whether a store moves while it is looked at. Commands open it one after the other, write and go:
// what a reader takes from two files, or from one at two moments, may then contradict itself.

#ifndef WAYBILL_STORE_ENGINE_RECOVERY_STORE_SIGHT_H_
#define WAYBILL_STORE_ENGINE_RECOVERY_STORE_SIGHT_H_

#include <array>
#include <filesystem>
#include <string>

#include "store/base/files.h"

namespace waybill::internal {

// What writers change, at one moment. Whatever can't be read is empty.
struct StoreSight {
  std::string owner;          // the line of owner.lock
  bool is_opening = false;    // an owner is there, and says nothing of data.mdb yet
  std::array<FileId, 2> ids;  // of data.mdb and lock.mdb
  std::string metas;          // both meta pages: each commit changes one
  std::string mark;           // commit.mark

  friend bool operator==(const StoreSight&, const StoreSight&) = default;
};
StoreSight LookAtStore(const std::filesystem::path& directory);

// Whether the store moved between the two, or may have.
inline bool HasMoved(const StoreSight& before, const StoreSight& after) {
  return before.is_opening || after.is_opening || !(before == after);
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_RECOVERY_STORE_SIGHT_H_
