#include "bindings/cli/yaml_document.h"

#include <yaml.h>

#include <algorithm>
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
      if (event.value.type == YAML_STREAM_END_EVENT) break;
      TRY(Take(event.value));
    }
    if (documents_ == 0) return Error{ErrorCode::kInvalidArgument, "it has no document", {}};
    return std::move(root_);
  }

 private:
  Result<void> Take(const yaml_event_t& event) {
    const std::size_t line = event.start_mark.line;
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (documents_++ == 0) return {};
        return Error{ErrorCode::kInvalidArgument, "it has more than one document",
                     "give each of them in a file of its own"};
      case YAML_ALIAS_EVENT:
        return YamlError("aliases are not read", line);
      case YAML_SCALAR_EVENT: {
        const auto& scalar = event.data.scalar;
        const bool plain = scalar.style == YAML_PLAIN_SCALAR_STYLE;
        TRY(CheckPlain(scalar.anchor, scalar.tag, line));
        return TakeScalar(TextOf(scalar.value, scalar.length), plain, line);
      }
      case YAML_SEQUENCE_START_EVENT: {
        const auto& list = event.data.sequence_start;
        TRY(CheckPlain(list.anchor, list.tag, line));
        return Open(YamlNode::Kind::kList, line);
      }
      case YAML_MAPPING_START_EVENT: {
        const auto& map = event.data.mapping_start;
        TRY(CheckPlain(map.anchor, map.tag, line));
        return Open(YamlNode::Kind::kMap, line);
      }
      case YAML_SEQUENCE_END_EVENT:
        open_.pop_back();
        return {};
      case YAML_MAPPING_END_EVENT:
        return CloseMap(line);
      default:
        return {};
    }
  }

  static Result<void> CheckPlain(const yaml_char_t* anchor, const yaml_char_t* tag,
                                 std::size_t line) {
    if (anchor != nullptr) return YamlError("anchors are not read", line);
    if (tag != nullptr) return YamlError("tags are not read", line);
    return {};
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

  Result<void> TakeScalar(std::string_view text, bool plain, std::size_t line) {
    if (!open_.empty()) {
      YamlNode& parent = *open_.back();
      if (parent.IsMap() && parent.keys.size() == parent.items.size()) {
        if (plain && text == "<<") return YamlError("merge keys are not read", line);
        if (++nodes_ > kMaxYamlNodes) return YamlTooLarge(kMaxYamlNodes, "values");
        parent.keys.emplace_back(text);
        return {};
      }
    }
    auto place = TRY(Place(line));
    place->text = text;
    place->plain = plain;
    return {};
  }

  Result<void> Open(YamlNode::Kind kind, std::size_t line) {
    if (open_.size() >= kMaxYamlDepth) return YamlTooLarge(kMaxYamlDepth, "levels");
    auto place = TRY(Place(line));
    place->kind = kind;
    // Stays where it is: nothing is added to its parent before it is closed.
    open_.push_back(place);
    return {};
  }

  Result<void> CloseMap(std::size_t line) {
    std::vector<std::string_view> keys(open_.back()->keys.begin(), open_.back()->keys.end());
    open_.pop_back();
    std::sort(keys.begin(), keys.end());
    if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) {
      return YamlError("the map that ends here has a key twice", line);
    }
    return {};
  }

  YamlNode root_;
  std::vector<YamlNode*> open_;
  std::size_t nodes_ = 0;
  std::size_t documents_ = 0;
};

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

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
  return internal::Json(text).Text();
}

}  // namespace waybill::cli
