// What one record of an image says more, or less, than another.

#ifndef WAYBILL_GUARD_RECORD_CHANGES_H_
#define WAYBILL_GUARD_RECORD_CHANGES_H_

#include "waybill/values.h"

namespace waybill::guard {

// A record that the guard writes for an image that the store does not judge yet. No kubelet writes
// one without a time.
bool IsPlaceholder(const ImagePulledRecord& record);

// Whether both records have the same credentials, in whatever order.
bool SaysTheSame(const ImagePulledRecord& a, const ImagePulledRecord& b);

// `newer`, with the credentials that only `older` has. If both have a hash of one secret, the newer
// one stays.
ImagePulledRecord United(const ImagePulledRecord& newer, const ImagePulledRecord& older);

// The part of `after` that `before` does not have.
ImagePulledRecord Added(const ImagePulledRecord& after, const ImagePulledRecord& before);

// The part of `a` that `b` has, too.
ImagePulledRecord Common(const ImagePulledRecord& a, const ImagePulledRecord& b);

// Whether only a successful pull can have written `after` over `before` (nullptr: nothing), under
// one image name. A pull adds the credential that it was made with. A decision adds a secret whose
// hash or coordinates are known already, and several writes may be read as one, so nothing else may
// have changed.
bool OnlyAPullWrites(const ImagePullCredentials* before, const ImagePullCredentials& after);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_RECORD_CHANGES_H_
