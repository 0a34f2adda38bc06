// JSON as YAML.

#ifndef WAYBILL_BINDINGS_CLI_YAML_TEXT_H_
#define WAYBILL_BINDINGS_CLI_YAML_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace waybill::cli {

// `value` as one document, in ASCII. Strings that YAML would read as something else are quoted.
std::string YamlOf(const nlohmann::ordered_json& value);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_YAML_TEXT_H_
