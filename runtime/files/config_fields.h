// Fields of a runtime's configuration, in TOML or in the JSON of its own answers. A program in Go
// reads them, which takes a key in another case for its own: that is refused.

#ifndef WAYBILL_RUNTIME_FILES_CONFIG_FIELDS_H_
#define WAYBILL_RUNTIME_FILES_CONFIG_FIELDS_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/json_value.h"
#include "store/base/rooted_files.h"
#include "waybill/result.h"

namespace waybill::internal {

// A table, or a missing one, which has no fields. What can't be understood reads as missing, and is
// one of the document's problems. A member that is null is missing, too.
class ConfigFields {
 public:
  // What all fields of a document share.
  struct Document {
    bool is_answer = false;  // default_runtime_name is then also called defaultRuntimeName
    std::vector<std::string> problems = {};
  };

  // Both outlive it. `table`: an object; null: it is missing.
  ConfigFields(const Json* table, Document& document) : table_(table), document_(&document) {}

  const Json* table() const { return table_; }
  // Null: missing.
  const Json* Node(std::string_view name) const;
  ConfigFields Table(std::string_view name) const {
    return {As(name, Json::value_t::object, "a table"), *document_};
  }
  std::string Text(std::string_view name) const;
  bool Bool(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;
  // The tables in a table, with their keys, or in an array, in their order.
  std::vector<std::pair<std::string, ConfigFields>> Tables(
      std::string_view name, Json::value_t in = Json::value_t::object) const;
  void Refuse(std::string what) const { document_->problems.push_back(std::move(what)); }

 private:
  const Json* As(std::string_view name, Json::value_t type, std::string_view what) const;

  const Json* table_;
  Document* document_;
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
  // False: nothing is there. Otherwise it reads the file, if that is TOML.
  bool ReadToml(const std::string& path,
                const std::function<void(const ConfigFields&)>& read) const;
  // Whether something may be there: what can't be looked at may be.
  bool MayHave(const std::string& path) const;
  // The names in a folder, sorted; none if it is missing.
  std::vector<std::string> List(const std::string& folder) const;
  // The same, as paths.
  std::vector<std::string> FilesIn(const std::string& folder) const;

 private:
  RootedFiles files_;
  std::vector<std::string>* problems_;
};

// Whether one of these headers of a request shows who asks.
bool ShowsCredentials(const ConfigFields& headers);

// TOML as JSON, in the order of the text. Dates and numbers that are not whole become one that is
// not.
Result<Json> JsonOfToml(std::string_view toml);

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_CONFIG_FIELDS_H_
