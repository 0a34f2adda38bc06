// Opens the guard's store at its start, and finds out what may have been missed until then.

#ifndef WAYBILL_GUARD_OPENING_H_
#define WAYBILL_GUARD_OPENING_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "guard/life.h"
#include "guard/session.h"

namespace waybill::guard {

// Whether waybill was used on this directory, and nothing of it is left. Asked before anything is
// made. Marks the directory if so, for a start that ends before it has a store; a store that is
// opened afterwards takes the mark away.
Result<bool> LostAll(const std::filesystem::path& kubelet_directory);

// Whether a guard, or a kubelet with waybill inside, was used on this directory.
bool WasUsed(const std::filesystem::path& kubelet_directory);

struct StoreState {
  std::string uuid;
  std::uint64_t commit_sequence = 0;
};
// Empty: unknown.
StoreState StateOf(const std::filesystem::path& directory);

// Sets in `life` the store and what is known from its opening: gap, lost, believes_memory. Takes
// the mark, and leaves it if the store can't be opened. `left`: what the guard before this one
// left. Errors: those of NodeStore::Open.
Result<void> OpenStore(Life& life, Session& session, bool lost_all, Left& left);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_OPENING_H_
