// Replay under the rules `kubelet`: settles the pulls that an earlier process left in flight
// (KEP-2535, "Kubelet Cache Housekeeping"). The closed rules judge the images instead (observe.h).

#ifndef WAYBILL_STORE_OPENING_FINISH_PULLS_H_
#define WAYBILL_STORE_OPENING_FINISH_PULLS_H_

#include <string>
#include <vector>

#include "store/images/images.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// Each intent whose string names an image on the node closes that image and is removed: if it has
// no record, it gets one without credentials. Strings known by hash only (quarantine) close in the
// same way. Fills the intent fields of `report`. Idempotent. `listed` names handlers as the runtime
// does. `default_name` is the runtime's name of the default handler, or empty. An image without a
// handler may belong to any handler.
Result<void> ReplayIntents(Images& images, const std::vector<ListedImage>& listed,
                           const std::string& default_name, OpeningReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_FINISH_PULLS_H_
