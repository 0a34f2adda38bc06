// A guest platform as runtimes write it, in JSON or TOML. Field names are compared by their letters
// alone: KEP-4216 prints those of Go's struct ("OSVersion"), JSON those of an image index
// ("os.version"), TOML others ("os_version").

#ifndef WAYBILL_RUNTIME_FILES_GUEST_PLATFORM_H_
#define WAYBILL_RUNTIME_FILES_GUEST_PLATFORM_H_

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/platform.h"
#include "waybill/values.h"

namespace waybill::internal {

class GuestPlatformFields {
 public:
  // Where to put a field's value: `text` or `list`. Neither for an unknown field, which is ignored.
  struct Target {
    std::string* text = nullptr;
    std::vector<std::string>* list = nullptr;
    bool repeated = false;  // the field occurred before, perhaps in another spelling
  };

  Target Find(std::string_view key) {
    const std::array<std::pair<std::string_view, Target>, 5> fields = {{
        {"architecture", {.text = &platform_.architecture}},
        {"os", {.text = &platform_.os}},
        {"osversion", {.text = &platform_.os_version}},
        {"variant", {.text = &platform_.variant}},
        {"osfeatures", {.list = &platform_.os_features}},
    }};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].first != LettersOf(key)) continue;
      Target target = fields[i].second;
      target.repeated = std::exchange(seen_[i], true);
      return target;
    }
    return {};
  }

  // Every field is empty, as containerd prints an unset guest platform.
  bool is_unset() const { return platform_ == Platform{}; }
  bool is_complete() const { return !platform_.os.empty() && !platform_.architecture.empty(); }
  static constexpr std::string_view kIncomplete =
      "a guest platform needs an OS and an architecture";

  Platform Take() { return NormalisePlatform(std::move(platform_)); }

 private:
  static std::string LettersOf(std::string_view key) {
    std::string letters;
    for (const char c : key) {
      if (c == '.' || c == '_') continue;
      letters += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return letters;
  }

  Platform platform_;
  std::array<bool, 5> seen_{};
};

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_GUEST_PLATFORM_H_
