#include "store/images/list_token.h"

#include <string>

namespace waybill::internal {

Result<void> CheckToken(const StoreTxn& txn, const ListToken& token, Hint begin) {
  const std::string what = "the token " + std::to_string(token.commit);
  if (token.store != txn.store_id()) {
    return Error{ErrorCode::kInvalidArgument,
                 what + " is from another store; nothing was changed",
                 {},
                 begin};
  }
  if (token.commit >= txn.sequence()) {
    return Error{
        ErrorCode::kInvalidArgument, what + " is from the future; nothing was changed", {}, begin};
  }
  return {};
}

}  // namespace waybill::internal
