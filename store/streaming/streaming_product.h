// A store of streaming requests, as the engine sees it: whatever is lost, no token is worth
// keeping, since an older copy has some that opened a stream since.

#ifndef WAYBILL_STORE_STREAMING_STREAMING_PRODUCT_H_
#define WAYBILL_STORE_STREAMING_STREAMING_PRODUCT_H_

#include "store/engine/recovery/product.h"

namespace waybill::internal {

const Product& StreamingProduct();

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_STREAMING_STREAMING_PRODUCT_H_
