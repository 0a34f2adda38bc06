// Opens the guard's store at its start.

#ifndef WAYBILL_GUARD_OPENING_H_
#define WAYBILL_GUARD_OPENING_H_

#include <filesystem>

#include "guard/life.h"

namespace waybill::guard {

// Whether waybill was used on this directory, and nothing of it is left. Asked before anything is
// made. Marks the directory if so, for a start that ends before it has a store; a store that is
// opened afterwards takes the mark away.
Result<bool> LostAll(const std::filesystem::path& kubelet_directory);

// Whether a guard, or a kubelet with waybill inside, was used on this directory.
bool WasUsed(const std::filesystem::path& kubelet_directory);

// What its opening showed of the store.
struct Opened {
  bool lost_all = false;   // it is new in the place of one of which nothing is left
  bool was_aside = false;  // a guard stood aside meanwhile: that is an unrecorded period
};
// Sets the store in `life`. Errors: those of NodeStore::Open.
Result<Opened> OpenStore(Life& life, bool lost_all);

// Whether something newer than what the store has may have been lost with it.
bool LostSomething(const NodeStore& store);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_OPENING_H_
