// Forgetting credentials (waybill/values.h). A change looks at every record, in place, and
// takes the credentials out of those that have them: no index says which they are, since each pull
// would write it, and a node forgets rarely. If there are very many, it only stores the revocation,
// unfinished: decisions honour that from then on, and further changes take it out of the records.

#ifndef WAYBILL_STORE_IMAGES_FORGET_H_
#define WAYBILL_STORE_IMAGES_FORGET_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/disk/key.h"
#include "store/disk/reader_pool.h"
#include "store/images/image_row.h"
#include "store/images/images.h"
#include "store/images/proofs.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// `what` without commit, since and unfinished; the handler as stored. kInvalidArgument,
// kLimitExceeded: nothing was changed.
Result<void> CheckForgettable(const Revocation& what);
// `at_once`: as NodeStoreOptions::rows_at_once.
Result<RevokeReport> Forget(Images& images, Revocation what, std::size_t at_once);

// The records keep what was proven by pulls that began after the token. kInvalidArgument: the token
// is older than that of the last truth.
Result<void> CheckTruth(const ExistingCredentials& truth);
Result<RevokeMissingReport> ReconcileWith(Images& images, const ExistingCredentials& truth,
                                          const ListToken& token, std::size_t at_once);

// Where the walk over the records goes on. Not stored: after a crash it begins anew.
struct Unfinished {
  std::vector<Revocation> left;  // that were unfinished when the walk began
  std::optional<Key16> next;     // of the records; nullopt: all were looked at
};
// Looks at `most` records, and takes what was revoked out of them. False: nothing remains.
Result<bool> FinishPart(Images& images, Unfinished& walk, std::size_t most);

// Whether any record mentions a Secret or service account.
Result<bool> MentionsAny(const Images& images);

// Revocations that need not be kept any more: the node ran for `kept` since, and no
// kubelet that ran then still runs; they are older than every backup (`oldest_backup`: its commit,
// or the largest number) and than every open pull, and finished. Of a hash: only if no record has a
// Secret, which might be rotated to it.
Result<std::vector<Revocation>> OldRevocations(const Images& images, std::chrono::seconds kept,
                                               std::uint64_t oldest_backup);
// Whether the record has something that the revocation is about.
bool IsCovered(const Revocation& what, const ImagePulledRecord& record);

// Leaves the entries that count: not what is forgotten but still in a record, nor what is past its
// age, nor what the policy does not count.
void LeaveWhatCounts(const ReaderPool::Lease& snapshot, const VerificationPolicy& policy,
                     const Aging& aging, PulledPart& pulled);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_FORGET_H_
