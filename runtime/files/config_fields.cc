#include "runtime/files/config_fields.h"

#include <algorithm>

#include "store/base/ascii.h"
#include "store/base/toml_document.h"
#include "store/base/try.h"

namespace waybill::internal {
namespace {

// default_runtime_name is defaultRuntimeName in an answer.
std::string NameInAnswer(std::string_view name) {
  std::string camel;
  for (const char c : name) {
    const bool begins_word = camel.ends_with('_');
    if (begins_word) camel.pop_back();
    camel += begins_word ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return camel;
}

Json Converted(const toml::node& node) {
  if (const toml::table* const table = node.as_table()) {
    using Item = std::pair<const toml::key*, const toml::node*>;
    std::vector<Item> items;
    for (const auto& [key, item] : *table) items.emplace_back(&key, &item);
    std::ranges::stable_sort(items, {},
                             [](const Item& item) { return item.first->source().begin.line; });
    Json object = Json::object();
    // Its keys differ, so none is looked for.
    auto& members = object.get_ref<Json::object_t&>();
    members.reserve(items.size());  // growing copies whatever is below
    for (const auto& [key, item] : items) members.emplace_back(key->str(), Converted(*item));
    return object;
  }
  if (const toml::array* const array = node.as_array()) {
    Json list = Json::array();
    for (const toml::node& item : *array) list.push_back(Converted(item));
    return list;
  }
  if (node.is_string()) return node.as_string()->get();
  if (node.is_boolean()) return node.as_boolean()->get();
  if (node.is_integer()) return node.as_integer()->get();
  return 0.5;  // a fraction or a date, which no field is that anybody asks for
}

}  // namespace

// Go takes some letters that are not ASCII for others' capitals.
const Json* ConfigFields::Node(std::string_view name) const {
  if (table_ == nullptr) return nullptr;
  const std::string wanted = document_->is_answer ? NameInAnswer(name) : std::string(name);
  const Json* found = nullptr;
  for (const auto& [key, node] : table_->items()) {
    const bool is_ascii = std::ranges::all_of(key, [](char c) { return (c & 0x80) == 0; });
    // Either name counts in an answer.
    if (key == wanted || key == name) {
      if (found != nullptr) Refuse(wanted + " is there twice");
      found = &node;
    } else if (ToLower(key) == ToLower(wanted)) {
      Refuse(wanted + " is written in another case");
    } else if (!is_ascii) {
      Refuse("a field whose name is not ASCII");
    }
  }
  return found == nullptr || found->is_null() ? nullptr : found;
}

const Json* ConfigFields::As(std::string_view name, Json::value_t type,
                             std::string_view what) const {
  const Json* node = Node(name);
  if (node == nullptr || node->type() == type) return node;
  Refuse(std::string(name) + " is not " + std::string(what));
  return nullptr;
}

std::string ConfigFields::Text(std::string_view name) const {
  const Json* text = As(name, Json::value_t::string, "a string");
  return text == nullptr ? std::string() : text->get<std::string>();
}

bool ConfigFields::Bool(std::string_view name) const {
  const Json* value = As(name, Json::value_t::boolean, "either true or false");
  return value != nullptr && value->get<bool>();
}

std::vector<std::string> ConfigFields::Texts(std::string_view name) const {
  std::vector<std::string> texts;
  const Json* array = As(name, Json::value_t::array, "an array");
  for (const Json& item : array == nullptr ? Json::array() : *array) {
    if (item.is_string()) texts.push_back(item);
    if (!item.is_string()) Refuse(std::string(name) + " has what is not a string");
  }
  return texts;
}

std::vector<std::pair<std::string, ConfigFields>> ConfigFields::Tables(std::string_view name,
                                                                       Json::value_t in) const {
  std::vector<std::pair<std::string, ConfigFields>> tables;
  const Json* node = As(name, in, in == Json::value_t::array ? "an array" : "a table");
  if (node == nullptr) return tables;
  for (const auto& [key, item] : node->items()) {
    if (item.is_object()) tables.emplace_back(key, ConfigFields(&item, *document_));
    if (item.is_object() || item.is_null()) continue;
    const bool is_in_array = in == Json::value_t::array;
    Refuse(is_in_array ? std::string(name) + " has what is not a table" : key + " is not a table");
  }
  return tables;
}

bool ConfigReader::ReadToml(const std::string& path,
                            const std::function<void(const ConfigFields&)>& read) const {
  const auto text = files_.Read(path);
  if (!text && text.error().code == ErrorCode::kNotFound) return false;
  const auto json = text ? JsonOfToml(*text) : text.error();
  ConfigFields::Document document;
  if (json) read(ConfigFields(&*json, document));
  if (!json) document.problems.push_back(json.error().message);
  for (const std::string& problem : document.problems) Problem(path + ": " + problem);
  return true;
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
  const Json none = Json::object();
  for (const auto& [key, value] : (headers.table() == nullptr ? none : *headers.table()).items()) {
    const std::string name = ToLower(key);
    if (name == "authorization" || name == "cookie") return true;
  }
  return false;
}

Result<Json> JsonOfToml(std::string_view toml) {
  return Converted(TRY(ReadToml(toml, kMaxPullConfigBytes)));
}

}  // namespace waybill::internal
