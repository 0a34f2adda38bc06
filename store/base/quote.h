// Quotes text from outside for messages.

#ifndef WAYBILL_STORE_BASE_QUOTE_H_
#define WAYBILL_STORE_BASE_QUOTE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace waybill::internal {

// Longer text is cut.
inline constexpr std::size_t kMaxQuotedBytes = 200;

// In quotes, on one line, without terminal control characters, cut to kMaxQuotedBytes.
std::string QuoteForMessage(std::string_view text);
// A pod's UID, which is the name of a directory: unchanged if it is harmless, otherwise quoted.
std::string ShownPodUid(std::string_view pod_uid);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_QUOTE_H_
