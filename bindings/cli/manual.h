// Manual pages in mdoc(7), made from the same declarations as --help.

#ifndef WAYBILL_BINDINGS_CLI_MANUAL_H_
#define WAYBILL_BINDINGS_CLI_MANUAL_H_

#include <string>
#include <vector>

#include "bindings/cli/registry.h"

namespace waybill::cli {

struct ManualPage {
  std::string name;     // "waybill-check"
  std::string section;  // "1"
  std::string text;

  std::string file() const { return name + "." + section; }
};

// waybill.1, a page for each command, waybill-config.5 and waybill-glossary.7.
std::vector<ManualPage> ManualOf(const Registry& registry);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_MANUAL_H_
