#include "runtime/files/config_fields.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "store/base/ascii.h"

namespace waybill::internal {
namespace {

// default_runtime_name is defaultRuntimeName in JSON.
std::string NameInJson(std::string_view name) {
  std::string camel;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool begins_word = i > 0 && name[i - 1] == '_';
    if (name[i] == '_') continue;
    camel += begins_word ? static_cast<char>(name[i] - 'a' + 'A') : name[i];
  }
  return camel;
}

toml::array ArrayOf(JsonValue list);

// Adds to a table or an array what `value` has.
template <typename Add>
void AddValue(JsonValue value, const Add& add) {
  switch (value.kind()) {
    case JsonKind::kNull:
      return;
    case JsonKind::kObject:
      return add(TomlOf(value));
    case JsonKind::kArray:
      return add(ArrayOf(value));
    case JsonKind::kString:
      return add(std::string(value.text()));
    case JsonKind::kNumber:
      return add(std::int64_t{0});
    case JsonKind::kFalse:
    case JsonKind::kTrue:
      return add(value.kind() == JsonKind::kTrue);
  }
}

toml::array ArrayOf(JsonValue list) {
  toml::array array;
  for (const JsonValue member : list.members()) {
    AddValue(member, [&](auto one) { array.push_back(std::move(one)); });
  }
  return array;
}

}  // namespace

void ConfigFields::Refuse(const toml::node* node, std::string_view what) const {
  const bool has_line = !document_->is_json && node != nullptr;
  Keep(has_line ? AboutLine(node->source(), what)
                : Error{ErrorCode::kInvalidArgument, std::string(what), {}});
}

// Go takes some letters that are not ASCII for others' capitals.
const toml::node* ConfigFields::Node(std::string_view name) const {
  if (table_ == nullptr) return nullptr;
  const std::string wanted = document_->is_json ? NameInJson(name) : std::string(name);
  const toml::node* found = nullptr;
  for (const auto& [key, node] : *table_) {
    const bool is_ascii = std::all_of(key.str().begin(), key.str().end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (key.str() == wanted) {
      found = &node;
    } else if (ToLower(key.str()) == ToLower(wanted)) {
      Refuse(&node, wanted + " is written in another case");
    } else if (!is_ascii) {
      Refuse(&node, "a field whose name is not ASCII");
    }
  }
  return found;
}

ConfigFields ConfigFields::Table(std::string_view name) const {
  return {As<toml::table>(name, "a table"), *document_};
}

std::string ConfigFields::Text(std::string_view name) const {
  const auto* text = As<toml::value<std::string>>(name, "a string");
  return text == nullptr ? std::string() : text->get();
}

void ConfigFields::Read(std::string_view name, std::string& text) const {
  if (std::string said = Text(name); !said.empty()) text = std::move(said);
}

bool ConfigFields::Bool(std::string_view name) const {
  const auto* value = As<toml::value<bool>>(name, "either true or false");
  return value != nullptr && value->get();
}

std::vector<std::string> ConfigFields::Texts(std::string_view name) const {
  std::vector<std::string> texts;
  const auto* array = As<toml::array>(name, "an array");
  if (array == nullptr) return texts;
  for (const toml::node& item : *array) {
    if (const auto* text = item.as_string()) {
      texts.push_back(text->get());
    } else {
      Refuse(&item, std::string(name) + " has what is not a string");
    }
  }
  return texts;
}

std::vector<std::string> ConfigFields::Keys() const {
  std::vector<std::string> keys;
  if (table_ == nullptr) return keys;
  for (const auto& [key, node] : *table_) keys.emplace_back(key.str());
  return keys;
}

toml::table TomlOf(JsonValue object) {
  toml::table table;
  for (const JsonValue member : object.members()) {
    if (member.key() == "auth") continue;
    AddValue(member, [&](auto value) { table.insert(member.key(), std::move(value)); });
  }
  return table;
}

}  // namespace waybill::internal
