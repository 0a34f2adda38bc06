// A node's store, as the engine sees it: what a loss means for it, and what it keeps.

#ifndef WAYBILL_STORE_NODE_UPKEEP_NODE_PRODUCT_H_
#define WAYBILL_STORE_NODE_UPKEEP_NODE_PRODUCT_H_

#include "store/engine/recovery/product.h"

namespace waybill::internal {

// Carried over into a rebuilt store:
//
//   records             if provably nothing is missing or stale (the tree is the newest, no witness
//                       contradicts, and the table's digest matches) with their credentials;
//                       otherwise without, so that they must be verified again
//   preloaded records   only if proven in the same way
//   intents, quarantine entries, imported files, runtime handlers
//                       all that verify: each can only close
const Product& NodeProduct();

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_UPKEEP_NODE_PRODUCT_H_
