// A commit that leaves nothing behind where it fails.
//
// Where LMDB can't write its meta page it writes the old transaction ID back, and leaves the new
// roots: a page whose tree is of another commit than it says, which the next opening takes for
// damage.

#ifndef WAYBILL_STORE_LMDB_COMMIT_H_
#define WAYBILL_STORE_LMDB_COMMIT_H_

#include "store/lmdb/env.h"
#include "waybill/result.h"

namespace waybill::lmdb {

// Commits; on failure both meta pages are put back as they were. For an environment that is closed
// after a failure, and that nobody else has open. kOutcomeUnknown: they could not be put back.
Result<void> CommitOrPutBack(Txn& txn, const Env& env);

}  // namespace waybill::lmdb

#endif  // WAYBILL_STORE_LMDB_COMMIT_H_
