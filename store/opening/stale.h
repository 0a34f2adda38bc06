// Whether a store is what it was. How far it had come says a line inside its directory
// (commit.mark), one outside (the witness), and the tree itself. What an opening makes of the
// three; the first row that fits:
//
//   tree     inside                    outside                   answer
//   missing  gone                      not asked, gone           new, but for other traces
//   missing  any                       any                       lost: distrustful
//   whole    gone, spoilt,             not asked,                it goes on
//            tells of no later commit  tells of no later commit
//   whole    any                       any                       stale: distrustful, and without
//                                                                credentials
//   torn     tells of no later         not asked,                the last commit is taken back
//            commit, but one may have  tells of no later commit  (unfinished_commit.h)
//            begun
//   torn     any                       any                       damage: rebuilt, distrustful
//
// A line that tells of another store, or of a later commit, stands for "any"; so does a witness
// that is gone or spoilt, and one of an original that went on beside its copy.
//
// A copy: the directory is not the one that the line outside names, nor the same one under another
// path (device and inode: renamed, or a bind mount) or with another inode (the path: restored in
// place). If the witness is gone, the line inside names it. The first row that fits:
//
//   opened by            the named directory      the witness
//   any                  this one                 is its own
//   a dry run            any                      is read only: it plays in a copy
//   a node, a restart    has a live owner         is read only
//     that names it      any                      is taken over: otherwise the original could run
//                                                 the node later, and not know what was forgotten
//                                                 here
//   a command, with      has the store no more    is taken over
//     Witness::Anew
//   a command            any                      is read only
//
// Who only reads it notes how far it was: the copy is stale as soon as the original goes on.
// With another witness or none a copy is another store from then on.
//
// Which witness is asked:
//
//   the remembered one            and it stays
//   another path                  a witness is made there; any other file is refused. The
//                                 remembered one is asked as well, unless Witness::Anew confirms
//                                 that the store is the newest
//   below the kubelet directory,  the remembered one, which stays; without one the store is
//     a file that is no witness   distrustful. No state of a disk keeps a node from starting
//   Witness::None                 none: the store forgets it

#ifndef WAYBILL_STORE_OPENING_STALE_H_
#define WAYBILL_STORE_OPENING_STALE_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "store/base/options.h"
#include "store/disk/header.h"
#include "store/disk/mark_line.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

struct OwnedStore;
class Product;

// What a line says of a store.
enum class Says : std::uint8_t {
  kNotAsked,
  kGone,
  kSpoilt,   // it can't be read
  kAnother,  // it is of another store
  kLater,    // of a commit that the tree does not have
  kWentOn,   // the store is a copy, and its original went on
  kNoLater,
  kMayHaveBegun,  // inside: of none either, but one more may have begun
};
enum class Tree : std::uint8_t { kMissing, kWhole, kTorn };
enum class Verdict : std::uint8_t { kNew, kLost, kGoesOn, kStale, kTakenBack, kDamage };

// The table.
Verdict VerdictOf(Tree tree, Says inside, Says outside);

struct Said {
  Says what = Says::kNotAsked;
  std::string why;  // the sentence of what stands against the store
};

// What both lines say. It must be known before the store is changed.
struct Signs {
  Said inside;
  Said outside;
  std::optional<MarkLine> mark;     // inside, if it is valid
  std::optional<MarkLine> witness;  // outside: the one that was believed, or that contradicts
  std::filesystem::path path;       // of the witness from now on; empty: none
  bool is_there = false;            // something is under that path
  std::string foreign;  // what is under the named path is no witness, and stays; empty: it is none

  // Why the store may be an older copy; empty: no sign of that.
  const std::string& stale() const { return outside.why.empty() ? inside.why : outside.why; }
  Verdict VerdictFor(Tree tree) const { return VerdictOf(tree, inside.what, outside.what); }
  // The last commit of that store that either of them tells of; 0: none.
  std::uint64_t LastCommitOf(const std::array<std::uint8_t, 16>& uuid) const;
};

// For an owner. `identity` and `state` are the stored ones; nullopt if there is no store, or they
// can't be read. Writes nothing. kInvalidArgument: a new witness would lie in the store's
// directory, or would overwrite a file that is not a witness. kIo, kUnsafePath: the file under the
// path can't be read.
Result<Signs> ReadSigns(const NodeStoreOptions& options, const MarkReading& mark,
                        const std::optional<Identity>& identity, const std::optional<State>& state);
// For an observer, and for a restore: by the remembered witness, wherever it lies.
Result<Signs> ReadSigns(const MarkReading& mark, const Identity& identity, const State& state,
                        const BootTime& now);

// Why a store without data.mdb counts as lost: which trace of it is left. Empty: it is new.
Result<std::string> FindLoss(const std::filesystem::path& directory, const Signs& signs,
                             bool owned_before);

// The directory of the store that this one is a copy of, by its remembered witness; empty: it is
// none, or that directory has the store no more.
std::filesystem::path OriginalOf(const Identity& identity, const std::filesystem::path& directory);
// The same by a line.
std::filesystem::path OriginalOf(const MarkLine& line, const std::array<std::uint8_t, 16>& uuid,
                                 const std::filesystem::path& directory);

// Acts on the signs, and notes that in `report`. Writes both lines: `mark` is the one inside as it
// was found last. The store remembers a witness only once the witness is on disk. Distrust is on
// disk before a new witness or mark confirms the store.
Result<void> SettleSigns(const NodeStoreOptions& options, const Signs& signs,
                         const MarkReading& mark, const Product& product, OwnedStore& store,
                         OpeningReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_STALE_H_
