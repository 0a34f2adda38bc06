// Wraps each function of the C API: no exception leaves it, and every argument is checked before it
// is used.

#ifndef WAYBILL_BINDINGS_C_CALL_H_
#define WAYBILL_BINDINGS_C_CALL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/c/result.h"
#include "bindings/c/waybill.h"
#include "store/base/caught.h"
#include "waybill/result.h"

namespace waybill::c {

// Puts the text into *error, unless `error` is null. Never throws.
waybill_code Fail(waybill_error** error, const Error& what) noexcept;

// What to do next, in calls of waybill.h. Empty for kNone.
std::string_view HintInC(Hint hint);

// False: a null pointer with a length.
inline bool IsText(waybill_string text) { return text.data != nullptr || text.length == 0; }
inline std::string_view View(waybill_string text) {
  return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.length);
}

// No options struct of any version is larger.
inline constexpr std::size_t kMaxOptionsBytes = 4096;

// The size of each struct with a struct_size in the version that introduced it: what the oldest
// callers pass. Never changes.
constexpr std::size_t FirstSize(const waybill_user_namespace_options*) { return 48; }
constexpr std::size_t FirstSize(const waybill_user_namespace_request*) { return 56; }
constexpr std::size_t FirstSize(const waybill_evidence_options*) { return 32; }
constexpr std::size_t FirstSize(const waybill_open_options*) { return 216; }
constexpr std::size_t FirstSize(const waybill_observe_options*) { return 72; }
constexpr std::size_t FirstSize(const waybill_pull_result*) { return 32; }
constexpr std::size_t FirstSize(const waybill_pull_error*) { return 24; }
constexpr std::size_t FirstSize(const waybill_trace_options*) { return 40; }
constexpr std::size_t FirstSize(const waybill_image_list*) { return 56; }
constexpr std::size_t FirstSize(const waybill_clear_options*) { return 24; }
constexpr std::size_t FirstSize(const waybill_export_options*) { return 40; }
constexpr std::size_t FirstSize(const waybill_migrate_options*) { return 88; }
constexpr std::size_t FirstSize(const waybill_restore_options*) { return 88; }
constexpr std::size_t FirstSize(const waybill_change_options*) { return 16; }
constexpr std::size_t FirstSize(const waybill_serve_options*) { return 16; }
constexpr std::size_t FirstSize(const waybill_age_limits*) { return 40; }
constexpr std::size_t FirstSize(const waybill_existing_credentials*) { return 40; }
constexpr std::size_t FirstSize(const waybill_runtime_answers*) { return 72; }
constexpr std::size_t FirstSize(const waybill_streaming_options*) { return 120; }
constexpr std::size_t FirstSize(const waybill_stream_url_policy*) { return 48; }
constexpr std::size_t FirstSize(const waybill_streaming_plan_request*) { return 64; }
constexpr std::size_t FirstSize(const waybill_streaming_lint_request*) { return 40; }

// Checks and converts arguments. Remembers the first that is wrong.
class Arguments {
 public:
  std::string_view Text(waybill_string text, const char* name);
  std::string String(waybill_string text, const char* name) {
    return std::string(Text(text, name));
  }
  // Refuses a zero byte: the system would read only up to it.
  std::string Path(waybill_string path, const char* name);
  std::vector<std::string> Strings(waybill_strings strings, const char* name);

  template <typename T>
  std::span<const T> Array(const T* items, std::size_t count, const char* name) {
    if (items == nullptr && count > 0) {
      Wrong(name, "is a null pointer with a count");
      return {};
    }
    return {items, count};
  }

  // The enumerator, if `number` is `first` to `last`.
  template <typename Enum>
  Enum OneOf(std::int32_t number, Enum first, Enum last, const char* name) {
    if (number < static_cast<std::int32_t>(first) || number > static_cast<std::int32_t>(last)) {
      Wrong(name, "has no such value");
      return first;
    }
    return static_cast<Enum>(number);
  }
  template <typename Enum>
  Enum OneOf(std::int32_t number, Enum last, const char* name) {
    return OneOf(number, Enum{}, last, name);
  }

  // A pointer that must not be null.
  bool Given(const void* pointer, const char* name) {
    if (pointer == nullptr) Wrong(name, "is a null pointer");
    return pointer != nullptr;
  }

  // Options as this version knows them. Those of an earlier version may be shorter, those of a
  // later one longer.
  template <typename T>
  T Options(const T* options, const char* name) {
    constexpr std::size_t kFirst = FirstSize(static_cast<const T*>(nullptr));
    static_assert(kFirst >= sizeof(options->struct_size) && kFirst <= sizeof(T));
    T known{};
    if (!Given(options, name)) return known;
    const std::size_t size = options->struct_size;
    if (size < kFirst) {
      Wrong(name, "has a struct_size that is too small");
      return known;
    }
    // An uninitialised size must not decide how far to read.
    if (size > kMaxOptionsBytes) {
      Wrong(name, "has a struct_size that is too large");
      return known;
    }
    std::memcpy(static_cast<void*>(&known), options, std::min(size, sizeof(T)));
    if (size > sizeof(T) && !IsZero(options, sizeof(T), size)) {
      Wrong(name, "has members set that this version of waybill does not know");
    }
    return known;
  }

  void Wrong(const char* name, const char* what);

  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }

 private:
  static bool IsZero(const void* bytes, std::size_t from, std::size_t to);

  std::optional<Error> error_;
};

// Runs `body(Arguments&)`, which returns Result<void>.
template <typename Body>
waybill_code Call(waybill_error** error, const Body& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    Arguments arguments;
    const Result<void> result = body(arguments);
    return result ? WAYBILL_OK : Fail(error, result.error());
  } catch (...) {
    return Fail(error, internal::Caught());
  }
}

}  // namespace waybill::c

#endif  // WAYBILL_BINDINGS_C_CALL_H_
