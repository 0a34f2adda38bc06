// JSON as YAML.

#ifndef WAYBILL_BINDINGS_CLI_YAML_TEXT_H_
#define WAYBILL_BINDINGS_CLI_YAML_TEXT_H_

#include <string>

#include "store/base/json_value.h"

namespace waybill::cli {

// `value` as one document, in ASCII. Strings that YAML would read as something else are quoted.
std::string YamlOf(const internal::Json& value);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_YAML_TEXT_H_
