// A configuration file of a kubelet: no crash on any text, no tree beyond the bounds, and an error
// that can be printed.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "bindings/cli/yaml_document.h"

namespace {

using waybill::cli::YamlNode;

void Judge(const YamlNode& node, std::size_t depth) {
  if (depth > waybill::cli::kMaxYamlDepth) std::abort();
  if (node.IsMap() && node.keys.size() != node.items.size()) std::abort();
  if (node.IsScalar() && waybill::cli::JsonOfScalar(node).empty()) std::abort();
  for (const YamlNode& item : node.items) Judge(item, depth + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto root = waybill::cli::ReadYaml({reinterpret_cast<const char*>(data), size});
  if (root) {
    Judge(*root, 0);
  } else {
    for (const char c : root.error().ToString()) {
      if (static_cast<unsigned char>(c) < 0x20) std::abort();
    }
  }
  return 0;
}
