// A commit that leaves nothing behind where it fails.
//
// Where LMDB can't write its meta page it writes the old transaction ID back, and leaves the new
// roots: a page whose tree is of another commit than it says, which the next opening takes for
// damage. And it refuses every later write (MDB_PANIC): the environment has to be opened anew.

#ifndef WAYBILL_STORE_LMDB_COMMIT_H_
#define WAYBILL_STORE_LMDB_COMMIT_H_

#include "store/lmdb/env.h"
#include "waybill/result.h"

namespace waybill::lmdb {

// Ends the transaction, whatever comes. Commits; on failure the meta page is put back as it was.
// Nobody reads by it: the other one has the higher transaction ID until the commit is done.
// kOutcomeUnknown: it could not be put back.
Result<void> CommitOrPutBack(Txn& txn, const Env& env);

}  // namespace waybill::lmdb

#endif  // WAYBILL_STORE_LMDB_COMMIT_H_
