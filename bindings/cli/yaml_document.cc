#include "bindings/cli/yaml_document.h"

#include <yaml.h>

#include <algorithm>
#include <map>
#include <utility>

#include "store/base/json_value.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

// A parser or an event of libyaml, freed with its scope.
struct YamlParser {
  yaml_parser_t value = {};
  bool ok = yaml_parser_initialize(&value) != 0;

  YamlParser() = default;
  YamlParser(const YamlParser&) = delete;
  YamlParser& operator=(const YamlParser&) = delete;
  ~YamlParser() {
    if (ok) yaml_parser_delete(&value);
  }
};

struct YamlEvent {
  yaml_event_t value = {};

  YamlEvent() = default;
  YamlEvent(const YamlEvent&) = delete;
  YamlEvent& operator=(const YamlEvent&) = delete;
  ~YamlEvent() { yaml_event_delete(&value); }
};

Error YamlError(const std::string& message, std::size_t line) {
  return {ErrorCode::kInvalidArgument, "line " + std::to_string(line + 1) + ": " + message, {}};
}

Error YamlTooLarge(std::size_t most, std::string_view of) {
  return {ErrorCode::kLimitExceeded,
          "it has more than " + std::to_string(most) + " " + std::string(of),
          {}};
}

std::string_view TextOf(const yaml_char_t* text, std::size_t size) {
  return {reinterpret_cast<const char*>(text), size};
}

class YamlReader {
 public:
  Result<YamlNode> Read(std::string_view text) {
    YamlParser parser;
    if (!parser.ok) return Error{ErrorCode::kOutOfMemory, "memory ran out", {}};
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
    yaml_parser_set_encoding(&parser.value, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser.value, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
    for (;;) {
      YamlEvent event;
      if (yaml_parser_parse(&parser.value, &event.value) == 0) {
        return YamlError(
            parser.value.problem == nullptr ? "it can't be read" : parser.value.problem,
            parser.value.problem_mark.line);
      }
      if (event.value.type == YAML_DOCUMENT_END_EVENT) return std::move(root_);
      if (event.value.type == YAML_STREAM_END_EVENT) break;
      TRY(Take(event.value));
    }
    return Error{ErrorCode::kInvalidArgument, "it has no document", {}};
  }

 private:
  Result<void> Take(const yaml_event_t& event) {
    const std::size_t line = event.start_mark.line;
    switch (event.type) {
      case YAML_ALIAS_EVENT:
        return TakeAlias(event.data.alias.anchor, line);
      case YAML_SCALAR_EVENT: {
        const auto& scalar = event.data.scalar;
        const bool plain = scalar.style == YAML_PLAIN_SCALAR_STYLE;
        if (scalar.tag != nullptr) return YamlError("tags are not read", line);
        return TakeScalar(TextOf(scalar.value, scalar.length), plain, scalar.anchor, line);
      }
      case YAML_SEQUENCE_START_EVENT: {
        const auto& list = event.data.sequence_start;
        if (list.tag != nullptr) return YamlError("tags are not read", line);
        return Open(YamlNode::Kind::kList, list.anchor, line);
      }
      case YAML_MAPPING_START_EVENT: {
        const auto& map = event.data.mapping_start;
        if (map.tag != nullptr) return YamlError("tags are not read", line);
        return Open(YamlNode::Kind::kMap, map.anchor, line);
      }
      case YAML_SEQUENCE_END_EVENT:
        return Close();
      case YAML_MAPPING_END_EVENT:
        TRY(CheckKeys(line));
        return Close();
      default:
        return {};
    }
  }

  // One that is still open has no name yet: nothing contains itself.
  Result<void> TakeAlias(const yaml_char_t* anchor, std::size_t line) {
    const auto found = anchors_.find(NameOf(anchor));
    if (found == anchors_.end()) return YamlError("an alias of nothing", line);
    nodes_ += found->second.nodes;
    if (open_.size() + found->second.levels > kMaxYamlDepth) {
      return YamlTooLarge(kMaxYamlDepth, "levels");
    }
    auto place = TRY(Place(line));
    *place = found->second.node;
    return {};
  }

  static std::string NameOf(const yaml_char_t* anchor) {
    return anchor == nullptr ? "" : reinterpret_cast<const char*>(anchor);
  }

  // Where the next node goes; a map must have its key.
  Result<YamlNode*> Place(std::size_t line) {
    if (++nodes_ > kMaxYamlNodes) return YamlTooLarge(kMaxYamlNodes, "values");
    if (open_.empty()) return &root_;
    YamlNode& parent = *open_.back();
    if (parent.IsMap() && parent.keys.size() == parent.items.size()) {
      return YamlError("a key is not a word", line);
    }
    return &parent.items.emplace_back();
  }

  Result<void> TakeScalar(std::string_view text, bool plain, const yaml_char_t* anchor,
                          std::size_t line) {
    if (!open_.empty()) {
      YamlNode& parent = *open_.back();
      if (parent.IsMap() && parent.keys.size() == parent.items.size()) {
        if (plain && text == "<<") return YamlError("merge keys are not read", line);
        if (++nodes_ > kMaxYamlNodes) return YamlTooLarge(kMaxYamlNodes, "values");
        if (anchor != nullptr) return YamlError("a key has an anchor", line);
        parent.keys.emplace_back(text);
        return {};
      }
    }
    auto place = TRY(Place(line));
    place->text = text;
    place->plain = plain;
    if (anchor != nullptr) anchors_[NameOf(anchor)] = {*place, 1, 0};
    return {};
  }

  Result<void> Open(YamlNode::Kind kind, const yaml_char_t* anchor, std::size_t line) {
    if (open_.size() >= kMaxYamlDepth) return YamlTooLarge(kMaxYamlDepth, "levels");
    auto place = TRY(Place(line));
    place->kind = kind;
    // Stays where it is: nothing is added to its parent before it is closed.
    open_.push_back(place);
    names_.push_back({NameOf(anchor), nodes_});
    return {};
  }

  Result<void> Close() {
    const auto [name, before] = names_.back();
    if (!name.empty()) {
      const std::size_t levels = LevelsOf(*open_.back());
      anchors_[name] = {*open_.back(), nodes_ - before + 1, levels};
    }
    names_.pop_back();
    open_.pop_back();
    return {};
  }

  static std::size_t LevelsOf(const YamlNode& node) {
    std::size_t levels = 0;
    for (const YamlNode& item : node.items) levels = std::max(levels, LevelsOf(item));
    return levels + (node.IsScalar() ? 0 : 1);
  }

  Result<void> CheckKeys(std::size_t line) const {
    std::vector<std::string_view> keys(open_.back()->keys.begin(), open_.back()->keys.end());
    std::sort(keys.begin(), keys.end());
    if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) {
      return YamlError("the map that ends here has a key twice", line);
    }
    return {};
  }

  struct Anchor {
    YamlNode node = {};
    std::size_t nodes = 0;
    std::size_t levels = 0;
  };

  YamlNode root_;
  std::vector<YamlNode*> open_;
  std::vector<std::pair<std::string, std::size_t>> names_;  // of those that are open, and nodes_
  std::map<std::string, Anchor> anchors_;
  std::size_t nodes_ = 0;
};

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

bool YamlNode::IsNull() const { return IsScalar() && JsonOfScalar(*this) == "null"; }

Result<YamlNode> ReadYaml(std::string_view text) {
  if (text.size() > kMaxYamlBytes) return YamlTooLarge(kMaxYamlBytes, "bytes");
  return YamlReader().Read(text);
}

std::string JsonOfScalar(const YamlNode& scalar) {
  const std::string& text = scalar.text;
  if (scalar.plain) {
    if (IsOneOf(text, {"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})) {
      return "true";
    }
    if (IsOneOf(text,
                {"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"})) {
      return "false";
    }
    if (IsOneOf(text, {"", "~", "null", "Null", "NULL"})) return "null";
    const std::string_view digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
    if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos) {
      return text;
    }
  }
  return internal::TextOf(text);
}

}  // namespace waybill::cli
