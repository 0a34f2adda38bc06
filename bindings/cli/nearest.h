// "Did you mean …?"

#ifndef WAYBILL_BINDINGS_CLI_NEAREST_H_
#define WAYBILL_BINDINGS_CLI_NEAREST_H_

#include <string>
#include <string_view>
#include <vector>

namespace waybill::cli {

// The one of `known` that `word` is most likely a slip of the pen for; empty: none is near.
std::string Nearest(std::string_view word, const std::vector<std::string>& known);

// "did you mean NEAREST?", or `otherwise`.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& known,
                       std::string_view otherwise);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_NEAREST_H_
