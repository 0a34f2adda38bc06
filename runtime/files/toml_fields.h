// Fields of TOML that a program in Go reads, which takes a key in another case for its own.

#ifndef WAYBILL_RUNTIME_FILES_TOML_FIELDS_H_
#define WAYBILL_RUNTIME_FILES_TOML_FIELDS_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/ascii.h"
#include "store/base/toml_document.h"
#include "store/base/try.h"
#include "waybill/result.h"

namespace waybill::internal {

// Null: missing. kInvalidArgument: it is there in another case, or may be: Go takes some letters
// that are not ASCII for others' capitals.
inline Result<const toml::node*> TomlField(const toml::table& table, std::string_view name) {
  const toml::node* found = nullptr;
  for (const auto& [key, node] : table) {
    if (key.str() == name) {
      found = &node;
    } else if (ToLower(key.str()) == ToLower(name)) {
      return AboutLine(node.source(), std::string(name) + " is written in another case");
    } else if (std::any_of(key.str().begin(), key.str().end(),
                           [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
      return AboutLine(node.source(), "a field whose name is not ASCII");
    }
  }
  return found;
}

// Null: missing.
inline Result<const toml::table*> TomlTable(const toml::table* parent, std::string_view name) {
  if (parent == nullptr) return nullptr;
  const toml::node* node = TRY(TomlField(*parent, name));
  if (node == nullptr) return nullptr;
  if (const toml::table* table = node->as_table()) return table;
  return AboutLine(node->source(), std::string(name) + " is not a table");
}

// Empty: missing.
inline Result<std::string> TomlText(const toml::table* parent, std::string_view name) {
  if (parent == nullptr) return std::string();
  const toml::node* node = TRY(TomlField(*parent, name));
  if (node == nullptr) return std::string();
  if (const auto* text = node->as_string()) return text->get();
  return AboutLine(node->source(), std::string(name) + " is not a string");
}

// False: missing.
inline Result<bool> TomlBool(const toml::table* parent, std::string_view name) {
  if (parent == nullptr) return false;
  const toml::node* node = TRY(TomlField(*parent, name));
  if (node == nullptr) return false;
  if (const auto* value = node->as_boolean()) return value->get();
  return AboutLine(node->source(), std::string(name) + " is neither true nor false");
}

// Empty: missing.
inline Result<std::vector<std::string>> TomlTexts(const toml::table* parent,
                                                  std::string_view name) {
  std::vector<std::string> texts;
  if (parent == nullptr) return texts;
  const toml::node* node = TRY(TomlField(*parent, name));
  if (node == nullptr) return texts;
  const toml::array* array = node->as_array();
  if (array == nullptr) return AboutLine(node->source(), std::string(name) + " is not an array");
  for (const toml::node& item : *array) {
    const auto* text = item.as_string();
    if (text == nullptr) {
      return AboutLine(item.source(), std::string(name) + " has what is not a string");
    }
    texts.push_back(text->get());
  }
  return texts;
}

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_TOML_FIELDS_H_
