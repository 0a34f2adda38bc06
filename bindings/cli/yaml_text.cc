#include "bindings/cli/yaml_text.h"

#include <yaml.h>

#include <algorithm>
#include <cctype>
#include <new>
#include <string_view>
#include <utility>

namespace waybill::cli {
namespace {

class YamlEmitter {
 public:
  YamlEmitter() {
    if (yaml_emitter_initialize(&emitter_) == 0) throw std::bad_alloc();
    yaml_emitter_set_output(&emitter_, Append, &text_);
    yaml_emitter_set_width(&emitter_, -1);
  }
  YamlEmitter(const YamlEmitter&) = delete;
  YamlEmitter& operator=(const YamlEmitter&) = delete;
  ~YamlEmitter() { yaml_emitter_delete(&emitter_); }

  std::string Document(const internal::Json& value) {
    yaml_event_t event;
    Emit(event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    Emit(event, yaml_document_start_event_initialize(&event, nullptr, nullptr, nullptr, 1));
    Value(value);
    Emit(event, yaml_document_end_event_initialize(&event, 1));
    Emit(event, yaml_stream_end_event_initialize(&event));
    return std::move(text_);
  }

 private:
  static int Append(void* text, unsigned char* bytes, std::size_t size) {
    static_cast<std::string*>(text)->append(reinterpret_cast<const char*>(bytes), size);
    return 1;
  }

  // Memory is all that can run out: the events are in order, and every string is UTF-8.
  void Emit(yaml_event_t& event, int made) {
    if (made == 0 || yaml_emitter_emit(&emitter_, &event) == 0) throw std::bad_alloc();
  }

  void Scalar(std::string_view text, yaml_scalar_style_t style) {
    yaml_event_t event;
    Emit(event, yaml_scalar_event_initialize(&event, nullptr, nullptr,
                                             reinterpret_cast<const yaml_char_t*>(text.data()),
                                             static_cast<int>(text.size()), 1, 1, style));
  }

  // Plain where every reader of YAML, 1.1 or 1.2, takes it for the same string.
  void String(const std::string& text) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    constexpr std::string_view kRest = "0123456789/._:@-";
    constexpr std::string_view kValues[] = {"y",     "n",  "yes", "no",  "true",
                                            "false", "on", "off", "null"};
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const bool is_plain =
        !text.empty() && kLetters.find(text.front()) != std::string_view::npos &&
        text.find_first_not_of(std::string(kLetters).append(kRest)) == std::string::npos &&
        text.back() != ':' &&
        std::find(std::begin(kValues), std::end(kValues), lower) == std::end(kValues);
    Scalar(text, is_plain ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
  }

  void Value(const internal::Json& value) {
    yaml_event_t event;
    if (value.is_object()) {
      Emit(event, yaml_mapping_start_event_initialize(
                      &event, nullptr, nullptr, 1,
                      value.empty() ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE));
      for (const auto& [key, item] : value.items()) {
        String(key);
        Value(item);
      }
      return Emit(event, yaml_mapping_end_event_initialize(&event));
    }
    if (value.is_array()) {
      Emit(event, yaml_sequence_start_event_initialize(
                      &event, nullptr, nullptr, 1,
                      value.empty() ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE));
      for (const auto& item : value) Value(item);
      return Emit(event, yaml_sequence_end_event_initialize(&event));
    }
    if (value.is_string()) return String(value.text());
    Scalar(value.Text(), YAML_PLAIN_SCALAR_STYLE);
  }

  yaml_emitter_t emitter_ = {};
  std::string text_;
};

}  // namespace

std::string YamlOf(const internal::Json& value) {
  // By way of JSON, which replaces what is not UTF-8.
  return YamlEmitter().Document(internal::Json::Parse(value.Text()));
}

}  // namespace waybill::cli
