// Values of the library as JSON, as dev.waybill.varlink has them, and as fields with a label in
// text.

#ifndef WAYBILL_BINDINGS_CLI_RECORD_JSON_H_
#define WAYBILL_BINDINGS_CLI_RECORD_JSON_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/cli/output.h"
#include "store/base/words.h"
#include "store/for_the_command.h"

namespace waybill {

// What only the command shows.
void Describe(auto& v, const ImagePullIntent& x) {
  v("image", x.image);
  v.Optional("runtimeHandler", x.runtime_handler);
}
void Describe(auto& v, const ImagePreloadedRecord& x) {
  v("imageRef", x.image_ref);
  v.Optional("updated", x.last_updated);
  v("names", x.observed_images);
}

}  // namespace waybill

namespace waybill::cli {

// Whether credential hashes are shown, or left out.
enum class Hashes { kLeftOut, kShown };

Json JsonOfText(std::string_view described, Hashes hashes);

template <typename T>
Json JsonOf(const T& value, Hashes hashes = Hashes::kLeftOut) {
  return JsonOfText(internal::ToJson(value), hashes);
}

// `fields`, and each member, with the label that `labels` has for it ({name in JSON, label}), or
// its own name. An empty label: only in JSON.
template <typename T>
std::vector<Field> FieldsOf(
    const T& value, std::initializer_list<std::pair<std::string_view, std::string_view>> labels,
    std::vector<Field> fields = {}) {
  internal::EachField(internal::TypeOf<T>(), &value, true,
                      [&](std::string_view name, std::string_view json) {
                        std::string label = LabelOf(name);
                        for (const auto& [of, given] : labels) {
                          if (of == name) label = given;
                        }
                        fields.push_back({std::string(name), std::move(label), ParseJson(json)});
                      });
  return fields;
}

// Sorts by image ref, then by runtime handler.
void SortForReading(std::vector<ImagePulledRecord>& records);

// "all pods of the node", "2 secrets, 1 service account", "nobody until pulled again".
std::string AccessText(const ImagePullCredentials& credentials);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_RECORD_JSON_H_
