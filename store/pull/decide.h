// "Must this pull be attempted?" (KEP-2535), in nine steps, as the kubelet takes them. Reads one
// snapshot; writes nothing, locks nothing, allocates nothing unless something is in quarantine.

#ifndef WAYBILL_STORE_PULL_DECIDE_H_
#define WAYBILL_STORE_PULL_DECIDE_H_

#include <optional>
#include <string_view>

#include "store/record/pulled_record.h"
#include "store/record/reader_pool.h"
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
};
Opening OpenQuestion(const ReaderPool::Lease& snapshot, const Question& question);

// Steps 7 to 9. `write_back` is set to the pod's secret that should be remembered, if any.
Decision CompareCredentials(const EntryView& entry, const PodCredentials& credentials,
                            const ImagePullSecretView** write_back);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PULL_DECIDE_H_
