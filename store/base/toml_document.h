// TOML that people wrote, read with toml++ within bounds.

#ifndef WAYBILL_STORE_BASE_TOML_DOCUMENT_H_
#define WAYBILL_STORE_BASE_TOML_DOCUMENT_H_

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16
// 3.3 asserts that a table's name begins as a key does, say, and refuses it afterwards all the
// same.
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>

#include <cstddef>
#include <string_view>

#include "waybill/result.h"

namespace waybill::internal {

// kInvalidArgument, with the line: it is not TOML 1.0. kLimitExceeded: it has more than `most`
// bytes, or too many dots in a line.
Result<toml::table> ReadToml(std::string_view text, std::size_t most);

// "line 3: …".
Error AboutLine(const toml::source_region& source, std::string_view what,
                ErrorCode code = ErrorCode::kInvalidArgument);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_TOML_DOCUMENT_H_
