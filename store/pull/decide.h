// "Must this pull be attempted?" (KEP-2535), in nine steps, as the kubelet takes them:
//
//   1. The image is not on the node: pull.
//   2. Read the record of the image ref. What can't be read, or is in quarantine: pull.
//   3. Where the image comes from: a record or an intent says that the kubelet pulled it.
//   4. The policy does not verify such images: use it.
//   5. There is no record, or it has no entry for the image name: pull.
//   6. The entry is open to all pods of the node: use it.
//      Only now the pod's credentials are fetched, by the caller.
//   7. One of the pod's secrets is in the entry: use it.
//   8. Its service account is in the entry: use it.
//   9. Pull.
//
// Reads one snapshot, without writes or locks. Allocates only if something is in quarantine.

#ifndef WAYBILL_STORE_PULL_DECIDE_H_
#define WAYBILL_STORE_PULL_DECIDE_H_

#include <optional>
#include <string_view>

#include "store/database/pulled_record.h"
#include "store/database/reader_pool.h"
#include "waybill/decision.h"
#include "waybill/policy.h"
#include "waybill/rules.h"

namespace waybill::internal {

// What a decision is about.
struct Question {
  Rules rules;
  const VerificationPolicy& policy;
  std::string_view image;
  std::string_view image_ref;
  std::string_view runtime_handler;  // as the caller names it
};

// Maps the runtime handler that a caller names to its stored name: "" for the default handler,
// otherwise `name`. Allocates nothing, and does not read for the empty name.
Lookup FindStoredHandler(const ReaderPool::Lease& snapshot, std::string_view name,
                         std::string_view& stored);

// The result of steps 1 to 6: the answer, or the entry that step 7 compares credentials with.
struct DecisionOrEntry {
  std::optional<Decision> decision;
  std::optional<EntryView> entry;    // set if `decision` is not; valid while the snapshot lives
  Payload record;                    // contains `entry`
  std::string_view runtime_handler;  // as stored: "" for the default handler
};

// Steps 1 to 6.
DecisionOrEntry DecideWithoutCredentials(const ReaderPool::Lease& snapshot,
                                         const Question& question);

// Steps 7 to 9. Sets `write_back` to the pod's secret that should be stored, if any.
Decision CompareCredentials(const EntryView& entry, const PodCredentials& credentials,
                            const ImagePullSecretView** write_back);

// The same with a copy of the record, made before the credentials were fetched. A copy of another
// image's record opens nothing.
Decision CompareWithCopy(Payload record, const Question& question, std::string_view runtime_handler,
                         const PodCredentials& credentials, const ImagePullSecretView** write_back);

// Combines the answer from the copy, `first`, with the store as it is now, `later`. The later look
// can only make the answer stricter: a record that became unreadable or does not verify is "pull"
// under both sets of rules. Under closed rules the matching credentials must still be in the
// record. A record that is gone changes nothing: the kubelet looks only once and would open, too.
Decision ConfirmOrTighten(const Decision& first, const DecisionOrEntry& later, Rules rules,
                          const PodCredentials& credentials);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PULL_DECIDE_H_
