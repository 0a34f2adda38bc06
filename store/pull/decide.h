// "Must this pull be attempted?" (KEP-2535), in nine steps, as the kubelet takes them:
//
//   1. The image is not on the node: pull.
//   2. Read the record of the image ref. What can't be read, or is in quarantine: pull.
//   3. Where the image comes from: a record or an intent says that the kubelet pulled it.
//   4. The policy asks for no verification of such an image: use it.
//   5. There is no record, or it has no entry for the image name: pull.
//   6. The entry is open to all pods of the node: use it.
//      Only now the pod's credentials are fetched, by the caller.
//   7. One of the pod's secrets is in the entry: use it.
//   8. Its service account is in the entry: use it.
//   9. Pull.
//
// Reads one snapshot; writes nothing, locks nothing, allocates nothing unless something is in
// quarantine.

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

// From the runtime handler that a caller names to the one that records are kept under: "" for the
// default one, else `name`. Allocates nothing; nothing is read for the empty name.
Lookup FindStoredHandler(const ReaderPool::Lease& snapshot, std::string_view name,
                         std::string_view& stored);

// What steps 1 to 6 come to: the answer, or the entry whose credentials step 7 compares.
struct DecisionOrEntry {
  std::optional<Decision> decision;
  std::optional<EntryView> entry;    // set where `decision` is not; lives as long as the snapshot
  Payload record;                    // that `entry` is in
  std::string_view runtime_handler;  // as it is stored: the default one as ""
};

// Steps 1 to 6.
DecisionOrEntry DecideWithoutCredentials(const ReaderPool::Lease& snapshot,
                                         const Question& question);

// Steps 7 to 9. `write_back` is set to the pod's secret that should be remembered, if any.
Decision CompareCredentials(const EntryView& entry, const PodCredentials& credentials,
                            const ImagePullSecretView** write_back);

// The same, with the entry in a copy of the record that was made before the credentials were
// fetched. A copy of another image's record opens nothing.
Decision CompareWithCopy(Payload record, const Question& question, std::string_view runtime_handler,
                         const PodCredentials& credentials, const ImagePullSecretView** write_back);

// `first` is what the copy says, `later` what is there now. Later looks only make it stricter: what
// can't be read or verified any more is "pull" under both sets of rules. Under closed rules
// credentials that open must still be in the record; one that is gone takes nothing back, since the
// kubelet, which looks once, opens then, too.
Decision ConfirmOrTighten(const Decision& first, const DecisionOrEntry& later, Rules rules,
                          const PodCredentials& credentials);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PULL_DECIDE_H_
