#include "runtime/files/config_fields.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "store/base/ascii.h"
#include "store/base/json.h"
#include "waybill/limits.h"

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

bool ReadArray(JsonReader& from, toml::array& array);
bool ReadTable(JsonReader& from, toml::table& table);

// Adds what the value is in TOML.
template <typename Add>
bool ReadValue(JsonReader& from, const Add& add) {
  toml::table table;
  toml::array array;
  std::string text;
  std::string_view other;
  switch (from.Peek()) {
    case '{':
      return ReadTable(from, table) && add(std::move(table));
    case '[':
      return ReadArray(from, array) && add(std::move(array));
    case '"':
      return from.String(text) && add(std::move(text));
    default:
      if (!from.Skip(other)) return false;
      if (other == "null") return true;
      return other == "true" || other == "false" ? add(other == "true") : add(std::int64_t{0});
  }
}

bool ReadArray(JsonReader& from, toml::array& array) {
  const auto add = [&](auto value) {
    array.push_back(std::move(value));
    return true;
  };
  if (!from.Open('[')) return false;
  for (bool first = true; from.More('[', first);) {
    if (!ReadValue(from, add)) return false;
  }
  return from.ok();
}

bool ReadTable(JsonReader& from, toml::table& table) {
  if (!from.Open('{')) return false;
  std::string key;
  std::string_view skipped;
  for (bool first = true; from.More('{', first);) {
    if (!from.Key(key)) return false;
    const auto add = [&](auto value) {
      return table.insert(key, std::move(value)).second || from.Fail("a key is there twice");
    };
    if (key == "auth" ? !from.Skip(skipped) : !ReadValue(from, add)) return false;
  }
  return from.ok();
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

Result<toml::table> TomlOf(std::string_view json) {
  toml::table table;
  JsonReader from(json, waybill::kMaxJsonDepth);
  if (ReadTable(from, table)) from.End();
  if (!from.ok()) return Error{from.code(), from.Problem(), {}};
  return table;
}

}  // namespace waybill::internal
