// Lists of what to keep. An empty list would delete everything, and a runtime that starts up lists
// nothing.

#ifndef WAYBILL_STORE_BASE_EMPTY_LIST_H_
#define WAYBILL_STORE_BASE_EMPTY_LIST_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "waybill/result.h"

namespace waybill::internal {

// "1 record", "2 records".
std::string HowMany(std::uint64_t count, std::string_view noun);

// kInvalidArgument: `list` ("the list of images is") is empty, but the store `holds` something
// ("2 records"); `outcome` says what was left unchanged.
Error EmptyList(std::string_view list, std::string_view holds, std::string_view outcome);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_EMPTY_LIST_H_
