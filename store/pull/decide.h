// "Must this pull be attempted?" (KEP-2535), in nine steps, as the kubelet takes them. Reads one
// snapshot; writes nothing, locks nothing, allocates nothing unless something is in quarantine.

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
  std::string_view runtime_handler;  // as it is stored: the default one as ""
};

// Steps 1 to 6: the answer, or the entry whose credentials step 7 compares.
struct Opening {
  std::optional<Decision> decision;
  std::optional<EntryView> entry;  // set where `decision` is not; lives as long as the snapshot
  std::string_view image_name;
  Payload record;  // that `entry` is in
};
Opening OpenQuestion(const ReaderPool::Lease& snapshot, const Question& question);

// Steps 7 to 9. `write_back` is set to the pod's secret that should be remembered, if any.
Decision CompareCredentials(const EntryView& entry, const PodCredentials& credentials,
                            const ImagePullSecretView** write_back);

// The entry that step 7 compares, in a copy of the record that an earlier look made. nullopt: the
// copy is of another question.
std::optional<EntryView> EntryOfCopy(Payload record, const Question& question);

// `first` is what the copy says, `later` what is there now. Later looks only make it stricter: what
// can't be read or verified any more is "pull" under both sets of rules. Under closed rules
// credentials that open must still be in the record; one that is gone takes nothing back, since the
// kubelet, which looks once, opens then, too.
Decision Stricter(const Decision& first, const Opening& later, Rules rules,
                  const PodCredentials& credentials);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PULL_DECIDE_H_
