// What a crash leaves of a commit that flushes once (disk/committer.h), and how an opening
// settles it before anything is served or written:
//
//   1  Walk the newest tree. If that fails, look for a whole one: of the commit before, if the
//      newest is torn; or the newest itself, if the other meta page was being written over and is
//      neither the old nor the new one. It is taken if it is sound and nobody can have been told of
//      a later commit (the torn tree of stale.h): the mark is open and acknowledges none, and the
//      witness knows of none. In the boot in which the mark was written it must say, too, that a
//      later one may have begun, which an older mark does not. Otherwise: rebuild, distrust.
//   2  Take the other commit back: say in the mark that it was begun in this boot; remove lock.mdb,
//      which may have its transaction ID; put a meta page without roots in the place of its own;
//      flush. Cut short, this is done again.
//   3  If a flush may have failed or not have begun (the mark was left open, or step 2 was done):
//      write every page again, as it reads, and flush. After a flush that failed the kernel may
//      take pages for written that never reached the disk, and may drop them; written again, they
//      are flushed again. Then walk again: that is what is on the disk.
//   4  Flush data.mdb, with its size, unless the mark is shut at the newest commit. The mark is
//      shut once the store has said itself what it found (stale.h).
//   5  The first commit flushes twice: pages of the one that was taken back, with its transaction
//      ID, may lie where the next one's will.
//
// Some virtual machines keep their boot ID over a power cut. They have booted if the time since
// then is less than it was when the mark was written; a machine that ran longer since is taken for
// one that did not boot, and a torn commit of which the mark does not know for damage.
//
// Bounds. What is acknowledged is lost only if damage hits the newest commit's own pages, and the
// power fails within 200 ms of its acknowledgement, before the mark is flushed: then it looks torn.

#ifndef WAYBILL_STORE_OPENING_UNFINISHED_COMMIT_H_
#define WAYBILL_STORE_OPENING_UNFINISHED_COMMIT_H_

#include <filesystem>
#include <memory>
#include <string>

#include "store/base/files.h"
#include "store/base/function_ref.h"
#include "store/disk/commit_mark.h"
#include "store/opening/inspect.h"
#include "store/opening/stale.h"
#include "waybill/result.h"

namespace waybill::internal {

// What the lines say of a store that ends with that commit.
using ReadSignsOf = FunctionRef<Result<Signs>(const Identity&, const State&)>;
// Step 1, for a file that is not sound: the inspection of the tree that counts, else of the newest
// again. Changes nothing.
Result<Inspection> FindWhole(const Fd& file, const Inspection& newest, OnReadError on_error,
                             ReadSignsOf read_signs);
// Step 2: `whole` is a sound inspection that FindWhole returned, `mark` what allowed it.
// Idempotent.
Result<void> TakeBack(const std::filesystem::path& directory, const Fd& file,
                      const Inspection& whole, MarkLine mark, const BootTime& now);
// Whether step 3 is needed. The caller walks the file again then, and does not ask twice.
bool MayBeUnwritten(const MarkReading& mark, const Identity& identity);
Result<void> WriteAgain(const std::filesystem::path& directory, const Fd& file);

// Whether one flush a commit is safe in that directory: its file system is known to write in place,
// or not at all, and whole sectors (ext2 to ext4, xfs and tmpfs, without DAX).
bool WritesWholeSectors(const std::filesystem::path& directory);
// The owner's mark. It allows one flush a commit unless the caller asks for two, the boot is not
// known, or one is not safe there.
std::unique_ptr<CommitMark> MarkFor(const std::filesystem::path& directory, MarkLine line,
                                    const BootClock& boot_clock, bool flushes_twice);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_UNFINISHED_COMMIT_H_
