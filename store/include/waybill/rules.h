// The two sets of rules that a store can follow.

#ifndef WAYBILL_RULES_H_
#define WAYBILL_RULES_H_

#include <cstdint>
#include <string_view>

#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

// By which rules a store decides (store/README.md, "Two sets of rules").
enum class Rules : std::uint8_t {
  // An image is open only if a credential was proven for it, or if it is in the ledger of images
  // that came to the node without the kubelet.
  kClosed,
  // Every answer and every stored state is that of the kubelet v1.36.3, which presumes an image
  // preloaded if it has neither record nor intent.
  kKubelet,
};

std::string_view RulesName(Rules rules);  // "closed", "kubelet"
// kInvalidArgument for any other spelling.
Result<Rules> ParseRules(std::string_view name);

}  // namespace waybill

#endif  // WAYBILL_RULES_H_
