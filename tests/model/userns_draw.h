// What a random history of ID mappings is made of. Pools are small, so that they fill up, and near
// earlier pools, so that some ranges are outside the pool.

#ifndef WAYBILL_TESTS_MODEL_USERNS_DRAW_H_
#define WAYBILL_TESTS_MODEL_USERNS_DRAW_H_

#include <string>
#include <vector>

#include "tests/model/userns_model.h"
#include "tests/support/draw.h"

namespace waybill::testing {

// All UIDs of a history, with some directory names that are not valid pod UIDs.
const std::vector<std::string>& PodUids();
std::string DrawPodUid(Draw& draw);
// Perhaps the name of an unknown handler.
std::string DrawHandlerName(Draw& draw);
std::vector<RuntimeHandler> DrawUsernsHandlers(Draw& draw);

IdPool DrawPool(Draw& draw);
IdPool DrawWrongPool(Draw& draw);
// Aligned, in or near the pools; rarely host IDs that no pod may have.
HostIdRange DrawRange(Draw& draw);
// Perhaps a range that no pod may have.
HostIdRange DrawAnyRange(Draw& draw);

// The files of most pods that have a mapping, as a kubelet would have written them, and others:
// sound, overlapping, refused, broken.
DrawnPods DrawPods(Draw& draw, const UsernsModel& model);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_MODEL_USERNS_DRAW_H_
