// Text from outside within a message.

#ifndef WAYBILL_STORE_BASE_QUOTE_H_
#define WAYBILL_STORE_BASE_QUOTE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace waybill::internal {

// Of longer text the rest is left out.
inline constexpr std::size_t kMaxQuotedBytes = 200;

// Between quotes, in one line, with nothing in it that a terminal obeys, and cut where it is long.
std::string QuoteForMessage(std::string_view text);
// A pod's UID, which is the name of a directory: as it is where that does no harm, else quoted.
std::string ShownPodUid(std::string_view pod_uid);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_QUOTE_H_
