// Counts, before an answer is parsed, what it would become: two of its bytes may become a message
// object of a hundred.

#ifndef WAYBILL_CRI_COUNT_FIELDS_H_
#define WAYBILL_CRI_COUNT_FIELDS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace waybill::cri {

// The fields of `answer`, with those of the messages in its field path[0], of the messages in their
// field path[1], and so on; it stops above `most`. nullopt: these are no messages.
std::optional<std::size_t> CountFields(const std::string& answer, const std::vector<int>& path,
                                       std::size_t most);

}  // namespace waybill::cri

#endif  // WAYBILL_CRI_COUNT_FIELDS_H_
