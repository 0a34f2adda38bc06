// What witnesses say about a store that is opened, and which witness it has from now on. The
// commit mark is heard with them: it tells of a later commit as a witness does, but lies in the
// store's directory and is lost or put back with that.
//
//   remembered and present        must belong to this store, and must not be ahead of it
//   remembered, but missing       the store may be an older copy: it turns distrustful, and its
//     or invalid                  records lose their credentials
//   another path than the         a witness is made there; any other existing file is refused. The
//     remembered one              remembered witness is read as well, unless Witness::Anew confirms
//                                 that the store is the newest
//   the first witness             is made; an existing one must agree, and an empty or half-written
//                                 one is distrusted and replaced
//   one that another directory    is read. An opening that runs the node takes it over, unless that
//     is noted for (witness.h)    directory's store has a live owner; a command leaves it alone and
//                                 notes how far it was: a copy beside which the original goes on
//                                 is an older one. With another or no witness: another store
//   below the kubelet directory,  the store keeps the witness that it remembers; without one it is
//     a file that is no witness   distrustful. No state of a disk keeps a node from starting
//   Witness::None                 the store forgets its witness

#ifndef WAYBILL_STORE_ENGINE_RECOVERY_WITNESS_SETTLING_H_
#define WAYBILL_STORE_ENGINE_RECOVERY_WITNESS_SETTLING_H_

#include <filesystem>
#include <optional>
#include <string>

#include "store/base/options.h"
#include "store/engine/database/header.h"
#include "store/engine/recovery/witness.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

struct MarkedCommits;
struct OwnedStore;
class Product;

// What the witnesses say. It must be known before the store is changed.
struct Hearing {
  std::filesystem::path path;  // of the witness from now on; empty: none
  bool is_there = false;       // something is under that path
  bool is_foreign = false;     // it is no witness, and stays as it is: the remembered one counts
  std::string foreign;         // says so
  // Why the store may be an older copy; empty: no sign of that.
  std::string contradiction;
  std::optional<Testimony> testimony;  // of the witness that was believed, or that contradicts
  std::optional<Testimony> mark;       // the last commit that commit.mark acknowledges

  // The last commit of that store that any of them tells of; 0: none.
  std::uint64_t LastCommitOf(const std::array<std::uint8_t, 16>& uuid) const;
};

// `identity` and `state` are the stored ones; nullopt if they are unreadable. Writes nothing.
// kInvalidArgument: a new witness would lie in the store's directory, or would overwrite a file
// that is not a witness. kIo, kUnsafePath: the file under the path can't be read.
Result<Hearing> HearWitness(const NodeStoreOptions& options,
                            const std::optional<Identity>& identity,
                            const std::optional<State>& state);

// The same for a new store. Reads nothing unless options.witness has a path.
Result<Hearing> HearWitnessOfNewStore(const NodeStoreOptions& options);

// Why the store is older than its mark; empty: the mark does not say so.
std::string AskMark(const std::optional<MarkedCommits>& mark, const Identity& identity,
                    const State& state);
// Adds what the mark says. What a witness says goes first.
void HearMark(const std::optional<MarkedCommits>& mark, const std::optional<Identity>& identity,
              const std::optional<State>& state, Hearing& hearing);

// For observers: the directory of the store that this one is a copy of; empty: it is none.
std::filesystem::path OriginalOf(const Identity& identity, const std::filesystem::path& directory);

// For observers and migrations: why the store may be stale; empty: no sign of that.
Result<std::string> AskRememberedWitness(const Identity& identity, const State& state);

// Acts on what the witnesses said, and notes it in `report`. The store remembers a witness only
// once the witness is on disk. Distrust is on disk before a new witness confirms the store.
Result<void> SettleWitness(const NodeStoreOptions& options, const Hearing& hearing,
                           const Product& product, OwnedStore& store, OpeningReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_RECOVERY_WITNESS_SETTLING_H_
