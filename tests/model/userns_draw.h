// What a random history of ID mappings is made of. Pools are small, so that they fill, and lie
// where pools before them lay, so that there are ranges off the pool.

#ifndef WAYBILL_TESTS_MODEL_USERNS_DRAW_H_
#define WAYBILL_TESTS_MODEL_USERNS_DRAW_H_

#include <string>
#include <vector>

#include "tests/model/userns_model.h"
#include "tests/support/draw.h"

namespace waybill::testing {

// All that a history knows; names of directories that no pod can have among them.
const std::vector<std::string>& PodUids();
std::string DrawPodUid(Draw& draw);
// Names some that nothing is known of.
std::string DrawHandlerName(Draw& draw);
std::vector<RuntimeHandler> DrawUsernsHandlers(Draw& draw);

UserNamespacePool DrawPool(Draw& draw);
UserNamespacePool DrawWrongPool(Draw& draw);
// Aligned, in or near the pools; host IDs that are nobody's are rare.
HostIdRange DrawRange(Draw& draw);
// Perhaps one that no pod may have.
HostIdRange DrawAnyRange(Draw& draw);

// The files of most pods that have a mapping, as a kubelet would have written them, and others:
// sound, overlapping, refused, broken.
DrawnPods DrawPods(Draw& draw, const UsernsModel& model);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_MODEL_USERNS_DRAW_H_
