// Verifies a store that is open in this process.

#ifndef WAYBILL_STORE_OPENING_VERIFY_H_
#define WAYBILL_STORE_OPENING_VERIFY_H_

#include <cstdint>
#include <filesystem>

#include "store/base/function_ref.h"
#include "store/disk/committer.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// The call Verify. `committer` is null for an observer, which tells by `sequence`, of the commit
// that it sees, whether the owner wrote meanwhile.
Result<VerifyReport> VerifyStore(const std::filesystem::path& directory, Committer* committer,
                                 FunctionRef<std::uint64_t()> sequence, const Progress& progress);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_VERIFY_H_
