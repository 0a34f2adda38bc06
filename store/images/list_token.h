// Which lists can be placed in time.

#ifndef WAYBILL_STORE_IMAGES_LIST_TOKEN_H_
#define WAYBILL_STORE_IMAGES_LIST_TOKEN_H_

#include "store/disk/store_txn.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// kInvalidArgument: another store drew the token, or a later state of this one, which is lost.
// `begin`: how to draw one for such a list.
Result<void> CheckToken(const StoreTxn& txn, const ListToken& token, Hint begin);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_LIST_TOKEN_H_
