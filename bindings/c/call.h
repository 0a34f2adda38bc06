// Wraps each function of the C API: no exception leaves it, and every argument is checked before it
// is used.

#ifndef WAYBILL_BINDINGS_C_CALL_H_
#define WAYBILL_BINDINGS_C_CALL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/c/result.h"
#include "bindings/c/waybill.h"
#include "waybill/result.h"

namespace waybill::c {

// Puts the text into *error, unless `error` is null. Never throws.
waybill_code Fail(waybill_error** error, const Error& what) noexcept;

// What to do next, in calls of waybill.h. Empty for kNone.
std::string_view HintInC(Hint hint);
waybill_code FailWithoutText(waybill_error** error, ErrorCode code, const char* message) noexcept;

// Runs `body`, which returns Result<void>.
template <typename Body>
waybill_code Call(waybill_error** error, const Body& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    const Result<void> result = body();
    return result ? WAYBILL_OK : Fail(error, result.error());
  } catch (const std::bad_alloc&) {
    return FailWithoutText(error, ErrorCode::kOutOfMemory, "out of memory");
  } catch (const std::exception& e) {
    return FailWithoutText(error, ErrorCode::kInternal, e.what());
  } catch (...) {
    return FailWithoutText(error, ErrorCode::kInternal, "an exception of unknown type");
  }
}

// No options struct of any version is larger.
inline constexpr std::size_t kMaxOptionsBytes = 4096;

// The size of each struct with a struct_size in the version that introduced it: what the oldest
// callers pass. Never changes.
template <typename T>
inline constexpr std::size_t kFirstSize = 0;
template <>
inline constexpr std::size_t kFirstSize<waybill_user_namespace_options> = 48;
template <>
inline constexpr std::size_t kFirstSize<waybill_user_namespace_request> = 56;
template <>
inline constexpr std::size_t kFirstSize<waybill_open_options> = 176;
template <>
inline constexpr std::size_t kFirstSize<waybill_observe_options> = 64;
template <>
inline constexpr std::size_t kFirstSize<waybill_export_options> = 40;
template <>
inline constexpr std::size_t kFirstSize<waybill_migrate_options> = 72;
template <>
inline constexpr std::size_t kFirstSize<waybill_restore_options> = 72;
template <>
inline constexpr std::size_t kFirstSize<waybill_change_options> = 16;

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

  // The enumerator, if `number` is 0 to `last`.
  template <typename Enum>
  Enum OneOf(std::int32_t number, Enum last, const char* name) {
    if (number < 0 || number > static_cast<std::int32_t>(last)) {
      Wrong(name, "has no such value");
      return Enum{};
    }
    return static_cast<Enum>(number);
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
    static_assert(kFirstSize<T> >= sizeof(options->struct_size) && kFirstSize<T> <= sizeof(T));
    T known{};
    if (!Given(options, name)) return known;
    const std::size_t size = options->struct_size;
    if (size < kFirstSize<T>) {
      Wrong(name, "has a struct_size that is too small");
      return known;
    }
    // A size that was never set must not decide how far to read.
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

}  // namespace waybill::c

#endif  // WAYBILL_BINDINGS_C_CALL_H_
