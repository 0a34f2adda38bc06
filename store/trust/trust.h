// Whether a store may presume that an image without a record was preloaded, and the journal of why
// not.

#ifndef WAYBILL_STORE_TRUST_TRUST_H_
#define WAYBILL_STORE_TRUST_TRUST_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "store/database/store_txn.h"
#include "waybill/report.h"
#include "waybill/result.h"

namespace waybill::internal {

// Why a store is distrustful: what the journal says of it.
struct Distrust {
  TrustKind kind = TrustKind::kOther;
  std::string reason;  // empty: there is none

  bool empty() const { return reason.empty(); }
};

// Notes a reason for distrust. Nothing is written where the same one is in force already.
Result<void> SetDistrust(StoreTxn& txn, const Distrust& why);
// An operator's word: no reason is in force any longer.
Result<void> SetTrust(StoreTxn& txn, std::string_view reason);
// Takes one reason back, also from below one that came later; the store stays distrustful for the
// others. Nothing where it is not in force.
Result<void> TakeBackDistrust(StoreTxn& txn, const Distrust& why);
// Those in force, the last one first; empty: the store is trustful, or that is not known.
Result<std::vector<Distrust>> ReasonsOfDistrust(const StoreTxn& txn);

// While an import is under way, and after one that did not finish, an image whose file was not
// taken yet must not pass for preloaded: the store is distrustful for this reason, which finishing
// takes back, under whatever spelling of the directory's path.
Distrust ImportUnfinished(const std::filesystem::path& kubelet_directory);

// Whether records of a kubelet may be taken over with their credentials: nothing was lost that they
// could be older than.
bool LosesNothing(const Distrust& why);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_TRUST_TRUST_H_
