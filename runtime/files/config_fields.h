// Fields of a runtime's configuration, in TOML or in the JSON of its own answers. A program in Go
// reads them, which takes a key in another case for its own: that is refused.

#ifndef WAYBILL_RUNTIME_FILES_CONFIG_FIELDS_H_
#define WAYBILL_RUNTIME_FILES_CONFIG_FIELDS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/toml_document.h"
#include "waybill/result.h"

namespace waybill::internal {

// A table, or a missing one, which has no fields. The first thing that can't be understood is kept
// for whoever asks at the end, and reads as missing.
class ConfigFields {
 public:
  // What all fields of a document share.
  struct Document {
    bool is_json = false;  // default_runtime_name is then called defaultRuntimeName
    Result<void> sound = {};
  };

  // Both outlive it.
  ConfigFields(const toml::table* table, Document& document)
      : ConfigFields(table, document, table == nullptr ? 0 : table->source().begin.line) {}

  bool is_there() const { return table_ != nullptr; }
  // In which it begins; 0: none.
  unsigned line() const { return line_; }
  // "FILE, line 3".
  std::string Where(const std::string& file) const {
    return line_ == 0 ? file : file + ", line " + std::to_string(line_);
  }
  // Null: missing.
  const toml::node* Node(std::string_view name) const;
  ConfigFields Table(std::string_view name) const;
  std::string Text(std::string_view name) const;
  // Where it says something, that counts.
  void Read(std::string_view name, std::string& text) const;
  bool Bool(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;
  std::vector<std::string> Keys() const;
  // Each table in the table of that name, with its key: read(std::string, ConfigFields).
  template <typename Do>
  void Each(std::string_view name, const Do& read) const {
    const ConfigFields parent = Table(name);
    if (!parent.is_there()) return;
    for (const auto& [key, node] : *parent.table_) {
      const ConfigFields child(node.as_table(), *document_, key.source().begin.line);
      if (!child.is_there()) {
        Refuse(&node, std::string(key.str()) + " is not a table");
      } else {
        read(std::string(key.str()), child);
      }
    }
  }
  // Each text in the table of that name, whose keys are anything: read(std::string, std::string).
  template <typename Do>
  void EachText(std::string_view name, const Do& read) const {
    const ConfigFields parent = Table(name);
    if (!parent.is_there()) return;
    for (const auto& [key, node] : *parent.table_) {
      if (const auto* text = node.as_string()) {
        read(std::string(key.str()), text->get());
      } else {
        Refuse(&node, "what is not a string in " + std::string(name));
      }
    }
  }
  // Each table in the array of that name: read(ConfigFields).
  template <typename Do>
  void EachIn(std::string_view name, const Do& read) const {
    const toml::array* array = As<toml::array>(name, "an array");
    if (array == nullptr) return;
    for (const toml::node& item : *array) {
      if (item.is_table()) {
        read(ConfigFields(item.as_table(), *document_));
      } else {
        Refuse(&item, std::string(name) + " has what is not a table");
      }
    }
  }
  // Null: missing.
  const toml::table* table() const { return table_; }
  // Keeps an error, if it is the first.
  void Keep(Result<void> read) const {
    if (document_->sound) document_->sound = std::move(read);
  }
  // Says what is wrong with a node of it, or with itself.
  void Refuse(const toml::node* node, std::string_view what) const;
  void Refuse(std::string_view what) const { Refuse(table_, what); }

 private:
  ConfigFields(const toml::table* table, Document& document, unsigned line)
      : table_(table), document_(&document), line_(line) {}

  template <typename T>
  const T* As(std::string_view name, std::string_view what) const {
    const toml::node* node = Node(name);
    const T* value = node == nullptr ? nullptr : node->as<T>();
    if (node != nullptr && value == nullptr) {
      Refuse(node, std::string(name) + " is not " + std::string(what));
    }
    return value;
  }

  const toml::table* table_;
  Document* document_;
  unsigned line_;
};

// A JSON object in TOML, but without members that are null or called "auth", which have passwords.
// Numbers are 0. Errors quote nothing: registries may have passwords elsewhere.
Result<toml::table> TomlOf(std::string_view json);

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_CONFIG_FIELDS_H_
