// Fields of a runtime's configuration, in TOML or in the JSON of its own answers. A program in Go
// reads them, which takes a key in another case for its own: that is refused.

#ifndef WAYBILL_RUNTIME_FILES_CONFIG_FIELDS_H_
#define WAYBILL_RUNTIME_FILES_CONFIG_FIELDS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/rooted_files.h"
#include "store/base/toml_document.h"
#include "waybill/result.h"

namespace waybill::internal {

// A table, or a missing one, which has no fields. What can't be understood reads as missing, and is
// one of the document's problems.
class ConfigFields {
 public:
  // What all fields of a document share.
  struct Document {
    bool is_json = false;  // default_runtime_name is then called defaultRuntimeName
    std::vector<std::string> problems = {};
  };

  // Both outlive it.
  ConfigFields(const toml::table* table, Document& document)
      : ConfigFields(table, document, table == nullptr ? 0 : table->source().begin.line) {}

  bool is_there() const { return table_ != nullptr; }
  const toml::table* table() const { return table_; }
  // In which it begins; 0: none.
  unsigned line() const { return line_; }
  // "FILE, line 3".
  std::string Where(const std::string& file) const {
    return line_ == 0 ? file : file + ", line " + std::to_string(line_);
  }
  // Null: missing.
  const toml::node* Node(std::string_view name) const;
  ConfigFields Table(std::string_view name) const {
    return {As<toml::table>(name, "a table"), *document_};
  }
  std::string Text(std::string_view name) const;
  bool Bool(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;
  // Each table in the table of that name, with its key, or in the array of that name:
  // read(std::string, ConfigFields).
  template <typename Do>
  void Each(std::string_view name, const Do& read) const {
    const ConfigFields parent = Table(name);
    if (!parent.is_there()) return;
    for (const auto& [key, node] : *parent.table_) {
      const ConfigFields child(node.as_table(), *document_, key.source().begin.line);
      if (!child.is_there()) Refuse(&node, std::string(key.str()) + " is not a table");
      if (child.is_there()) read(std::string(key.str()), child);
    }
  }
  template <typename Do>
  void EachIn(std::string_view name, const Do& read) const {
    const toml::array* array = As<toml::array>(name, "an array");
    if (array == nullptr) return;
    for (const toml::node& item : *array) {
      if (!item.is_table()) Refuse(&item, std::string(name) + " has what is not a table");
      if (item.is_table()) read(ConfigFields(item.as_table(), *document_));
    }
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

// Reads the files of a runtime below a root. What can't be read, or is not understood, is a
// problem, which begins with the file's name; a missing file is none.
class ConfigReader {
 public:
  // `problems` outlive it.
  ConfigReader(const std::string& root, std::vector<std::string>& problems)
      : files_(root), problems_(&problems) {}

  void Problem(std::string what) const { problems_->push_back(std::move(what)); }
  const RootedFiles& files() const { return files_; }
  // False: nothing is there. Otherwise read(ConfigFields), if it is TOML.
  template <typename Do>
  bool ReadToml(const std::string& path, const Do& read) const {
    const auto table = Parse(path);
    ConfigFields::Document document;
    if (table && *table) read(ConfigFields(&**table, document));
    for (const std::string& problem : document.problems) Problem(path + ": " + problem);
    return table.has_value();
  }
  // Whether something may be there: what can't be looked at may be.
  bool MayHave(const std::string& path) const;
  // The names in a folder, sorted; none if it is missing.
  std::vector<std::string> List(const std::string& folder) const;
  // The same, as paths.
  std::vector<std::string> FilesIn(const std::string& folder) const;

 private:
  // nullopt: nothing is there. Within: it is not TOML.
  std::optional<std::optional<toml::table>> Parse(const std::string& path) const;

  RootedFiles files_;
  std::vector<std::string>* problems_;
};

// Whether one of these headers of a request shows who asks.
bool ShowsCredentials(const ConfigFields& headers);

// A JSON object as TOML has it: null is left out, numbers are 0. nullopt: it is not one.
std::optional<toml::table> TomlOf(std::string_view json);

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_CONFIG_FIELDS_H_
