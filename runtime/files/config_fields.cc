#include "runtime/files/config_fields.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "store/base/ascii.h"
#include "store/base/json_value.h"

namespace waybill::internal {
namespace {

// default_runtime_name is defaultRuntimeName in JSON.
std::string NameInJson(std::string_view name) {
  std::string camel;
  for (const char c : name) {
    const bool begins_word = camel.ends_with('_');
    if (begins_word) camel.pop_back();
    camel += begins_word ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return camel;
}

toml::table TableOf(const Json& object);
toml::array ArrayOf(const Json& list);

// Adds what the value is in TOML.
template <typename Add>
void Convert(const Json& value, const Add& add) {
  if (value.is_object()) {
    add(TableOf(value));
  } else if (value.is_array()) {
    add(ArrayOf(value));
  } else if (value.is_string()) {
    add(value.get_ref<const std::string&>());
  } else if (value.is_boolean()) {
    add(value.get<bool>());
  } else if (!value.is_null()) {
    add(std::int64_t{0});
  }
}

toml::array ArrayOf(const Json& list) {
  toml::array array;
  for (const Json& item : list)
    Convert(item, [&](auto value) { array.push_back(std::move(value)); });
  return array;
}

toml::table TableOf(const Json& object) {
  toml::table table;
  for (const auto& [key, item] : object.items()) {
    Convert(item, [&, &name = key](auto value) { table.insert(name, std::move(value)); });
  }
  return table;
}

}  // namespace

void ConfigFields::Refuse(const toml::node* node, std::string_view what) const {
  const bool has_line = !document_->is_json && node != nullptr;
  document_->problems.push_back(has_line ? AboutLine(node->source(), what).message
                                         : std::string(what));
}

// Go takes some letters that are not ASCII for others' capitals.
const toml::node* ConfigFields::Node(std::string_view name) const {
  if (table_ == nullptr) return nullptr;
  const std::string wanted = document_->is_json ? NameInJson(name) : std::string(name);
  const toml::node* found = nullptr;
  for (const auto& [key, node] : *table_) {
    const bool is_ascii = std::all_of(key.str().begin(), key.str().end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    // Either name counts in an answer.
    if (key.str() == wanted || (document_->is_json && key.str() == name)) {
      if (found != nullptr) Refuse(&node, wanted + " is there twice");
      found = &node;
    } else if (ToLower(key.str()) == ToLower(wanted)) {
      Refuse(&node, wanted + " is written in another case");
    } else if (!is_ascii) {
      Refuse(&node, "a field whose name is not ASCII");
    }
  }
  return found;
}

std::string ConfigFields::Text(std::string_view name) const {
  const auto* text = As<toml::value<std::string>>(name, "a string");
  return text == nullptr ? std::string() : text->get();
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

std::optional<std::optional<toml::table>> ConfigReader::Parse(const std::string& path) const {
  const auto text = files_.Read(path);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::nullopt;
  auto table = text ? internal::ReadToml(*text, kMaxPullConfigBytes) : text.error();
  if (table) return std::optional(*std::move(table));
  Problem(path + ": " + table.error().message);
  return std::optional<toml::table>();
}

std::vector<std::string> ConfigReader::List(const std::string& folder) const {
  auto names = files_.List(folder, kMaxPullConfigFiles);
  if (names) return *std::move(names);
  if (names.error().code != ErrorCode::kNotFound) Problem(folder + ": " + names.error().message);
  return {};
}

bool ConfigReader::MayHave(const std::string& path) const {
  const auto found = files_.Resolve(path);
  return found || found.error().code != ErrorCode::kNotFound;
}

std::vector<std::string> ConfigReader::FilesIn(const std::string& folder) const {
  std::vector<std::string> paths = List(folder);
  for (std::string& name : paths) name.insert(0, folder + "/");
  return paths;
}

bool ShowsCredentials(const ConfigFields& headers) {
  return headers.is_there() && std::ranges::any_of(*headers.table(), [](const auto& header) {
           const std::string name = ToLower(header.first.str());
           return name == "authorization" || name == "cookie";
         });
}

std::optional<toml::table> TomlOf(std::string_view json) {
  const Json object = ParseJson(json);
  if (!object.is_object()) return std::nullopt;
  return TableOf(object);
}

}  // namespace waybill::internal
