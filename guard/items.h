// What a record says, credential by credential.

#ifndef WAYBILL_GUARD_ITEMS_H_
#define WAYBILL_GUARD_ITEMS_H_

#include <cstdint>
#include <vector>

#include "store/for_the_guard.h"
#include "waybill/values.h"

namespace waybill::guard {

using Item = internal::KubeletItem;
using Items = std::vector<Item>;  // sorted, none twice

// `seed`: the store's (KubeletFilesRead).
Items ItemsOf(const ImagePulledRecord& record, std::uint64_t seed);
// The record with these of its credentials alone.
ImagePulledRecord Only(ImagePulledRecord record, const Items& items, std::uint64_t seed);

Items United(const Items& a, const Items& b);
Items Without(const Items& all, const Items& less);
bool IsIn(const Items& some, const Items& all);

// Whether a kubelet's decision, without a pull, can have added the Secret: its coordinates or its
// hash are among `before` under the same image name.
bool IsAkin(const Item& item, const Items& before);

// Whether the revocation covers it. Not for one of an image: that covers every item of its file.
bool Covers(const Revocation& revocation, const Item& item, std::uint64_t seed);

// `newer`, with the credentials that only `older` has. If both have a hash of one Secret, the newer
// one stays.
ImagePulledRecord United(const ImagePulledRecord& newer, const ImagePulledRecord& older);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_ITEMS_H_
