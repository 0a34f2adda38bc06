#include "doctor/gates.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "store/base/try.h"

namespace waybill::doctor {
namespace {

// As Go's strconv.ParseBool.
std::optional<bool> ParseBool(std::string_view text) {
  for (const char* word : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == word) return true;
  }
  for (const char* word : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// --feature-gates=A=true,B=false, which may be repeated.
std::optional<bool> ByCommandLine(const Node& node, std::string_view name) {
  std::optional<bool> says;
  if (node.kubelet() == nullptr) return says;
  for (const std::string& value : node.kubelet()->Values("feature-gates")) {
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      const std::string_view pair = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const std::size_t sign = pair.find('=');
      if (sign == std::string_view::npos || Trimmed(pair.substr(0, sign)) != name) continue;
      if (auto parsed = ParseBool(Trimmed(pair.substr(sign + 1)))) says = parsed;
    }
  }
  return says;
}

std::optional<bool> ByConfiguration(const Node& node, std::string_view name) {
  if (!node.settings()) return std::nullopt;
  const cli::YamlNode* const gates = node.settings()->Find("featureGates");
  const cli::YamlNode* const gate = gates == nullptr ? nullptr : gates->Find(name);
  if (gate == nullptr || !gate->IsScalar()) return std::nullopt;
  return ParseBool(cli::JsonOfScalar(*gate));
}

}  // namespace

Result<GateState> StateOf(const Gate& gate, const Node& node) {
  const auto said = [&](std::string_view name) -> std::optional<GateState> {
    if (auto on = ByCommandLine(node, name)) return GateState{*on, "by its command line"};
    if (auto on = ByConfiguration(node, name)) return GateState{*on, "by its configuration"};
    return std::nullopt;
  };
  if (auto state = said(gate.name)) return *state;
  // Nothing else can be told of files that say more than could be read.
  if (!node.settings()) return node.settings().error();
  const auto version = TRY(node.Version());
  // What is said of all gates of a stage is for those that are not named.
  const bool is_beta = gate.beta_since != 0 && version.minor >= gate.beta_since;
  const char* const stage = is_beta ? "AllBeta" : "AllAlpha";
  if (auto state = said(stage)) {
    state->by = std::string("by ") + stage + ", " + state->by;
    return *state;
  }
  const std::string doubt =
      node.kubelet() == nullptr ? " (none runs, so its flags are not known)" : "";
  return GateState{gate.on_since != 0 && version.minor >= gate.on_since,
                   "by default in " + version.text + doubt};
}

}  // namespace waybill::doctor
