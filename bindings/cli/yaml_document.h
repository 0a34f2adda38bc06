// The first document of YAML or JSON, read with libyaml, as a kubelet reads it. For small files
// that people wrote: tags and merge keys are refused.

#ifndef WAYBILL_BINDINGS_CLI_YAML_DOCUMENT_H_
#define WAYBILL_BINDINGS_CLI_YAML_DOCUMENT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"

namespace waybill::cli {

inline constexpr std::size_t kMaxYamlBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxYamlNodes = 100'000;
inline constexpr std::size_t kMaxYamlDepth = 32;

struct YamlNode {
  enum class Kind { kScalar, kList, kMap };

  Kind kind = Kind::kScalar;
  std::string text;               // of a scalar
  bool plain = false;             // a scalar without quotes
  std::vector<std::string> keys;  // of a map: of the items, in their order; each is there once
  std::vector<YamlNode> items;    // of a list or a map

  bool IsMap() const { return kind == Kind::kMap; }
  bool IsList() const { return kind == Kind::kList; }
  bool IsScalar() const { return kind == Kind::kScalar; }
  bool IsNull() const;
  // The item of a map; nullptr: there is none.
  const YamlNode* Find(std::string_view key) const;
};

// Aliases are expanded. kInvalidArgument, with the line: the text is not YAML; it has tags, merge
// keys, keys that are not scalars, or a key twice; it is empty. kLimitExceeded: above one of the
// bounds, of which each alias counts as what it stands for.
Result<YamlNode> ReadYaml(std::string_view text);

// A scalar as JSON, by the rules of the YAML that Kubernetes reads (1.1): a plain yes is true.
std::string JsonOfScalar(const YamlNode& scalar);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_YAML_DOCUMENT_H_
