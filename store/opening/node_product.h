// A node's store, as opening sees it: what a loss means for it, and what it keeps.

#ifndef WAYBILL_STORE_OPENING_NODE_PRODUCT_H_
#define WAYBILL_STORE_OPENING_NODE_PRODUCT_H_

#include "store/opening/product.h"

namespace waybill::internal {

const Product& NodeProduct();

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_NODE_PRODUCT_H_
