// Whether a store may presume that an image without a record was preloaded, and the journal of why
// not.

#ifndef WAYBILL_STORE_TRUST_TRUST_H_
#define WAYBILL_STORE_TRUST_TRUST_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "store/database/store_txn.h"
#include "waybill/result.h"

namespace waybill::internal {

// Records a change of trust in the journal and in the state. Nothing is written where the state is
// `distrustful` already and the journal's last entry has the same reason.
Result<void> SetTrust(StoreTxn& txn, bool distrustful, std::string_view reason);

// While an import is under way, and after one that did not finish, an image whose file was not
// taken yet must not pass for preloaded: the store is distrustful for this reason, which finishing
// takes back.
std::string ImportUnfinished(const std::filesystem::path& kubelet_directory);
// Whether a reason is that of an unfinished import, of any directory.
bool IsOfImport(std::string_view reason);
// Why the store is distrustful, the last reason first; empty: it is not, or that is not known.
Result<std::vector<std::string>> ReasonsOfDistrust(const StoreTxn& txn);
// Takes one reason back, as if it had never been, also from below one that came later; the store
// stays distrustful for the others. Nothing where it is not in force.
Result<void> TakeBackDistrust(StoreTxn& txn, std::string_view reason);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_TRUST_TRUST_H_
