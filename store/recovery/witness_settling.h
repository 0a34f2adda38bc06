// What witnesses say of a store that is opened, and which one it has from now on.
//
//   remembered and there          must be a witness of this store, and not ahead of it
//   remembered and gone,          the store may be an older copy: distrustful, and its records lose
//     or no sound witness         their credentials
//   another path than the         made there; what is there and is no witness is refused. The one
//     remembered one              that is remembered is asked as well, unless Witness::Anew says
//                                 that the store is the newest
//   a first one                   made; a witness that is there already must agree
//   none (Witness::None)          what was remembered is forgotten

#ifndef WAYBILL_STORE_RECOVERY_WITNESS_SETTLING_H_
#define WAYBILL_STORE_RECOVERY_WITNESS_SETTLING_H_

#include <filesystem>
#include <optional>
#include <string>

#include "store/database/header.h"
#include "store/recovery/witness.h"
#include "waybill/node_store.h"
#include "waybill/report.h"
#include "waybill/result.h"

namespace waybill::internal {

struct OwnedStore;

// What is to be known before a store is touched.
struct Hearing {
  std::filesystem::path path;  // of the witness from now on; empty: none
  bool is_there = false;       // something is under that path
  // Why the store may be older than it was; empty: nothing says so.
  std::string contradiction;
  std::optional<Testimony> testimony;  // of the witness that was believed, or that contradicts
};

// `identity` and `state` are what is stored, null where that can't be read. Writes nothing.
// kInvalidArgument: a new witness would lie in the store's directory, or overwrite what is no
// witness. kIo, kUnsafePath: nobody knows what is under the path.
Result<Hearing> HearWitness(const OpenOptions& options, const Identity* identity,
                            const State* state);

// The same where there is no store yet. Nothing is looked at unless options.witness names a path.
Result<Hearing> HearWitnessOfNone(const OpenOptions& options);

// For whoever does not own the store: why it may be stale; empty: nothing says so.
Result<std::string> AskRememberedWitness(const Identity& identity, const State& state);

// Does what was heard makes necessary, and notes in `report` what that was. The store remembers a
// witness once that is on disk, and distrust is on disk before a new witness vouches for the store.
Result<void> SettleWitness(const OpenOptions& options, const Hearing& hearing, OwnedStore& store,
                           RecoveryReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_WITNESS_SETTLING_H_
