// Described values as bytes, and back. Numbers are little-endian. A text or a list begins with its
// count, a struct with its length: of an answer, who knows more members than were sent leaves them
// as they are by default, and who knows fewer skips the rest. A request in which a member is
// missing, or the rest is not zero, is refused: it may say that less is to be changed.
//
//   number, bool, enum   its bytes
//   text, path           4 bytes: how many, then they
//   list                 4 bytes: how many, then each
//   optional             1 byte: 1 or 0, then the value, if any
//   duration             8 bytes: its count
//   struct               4 bytes: how many follow; its members, as described.h has them
//
// Nothing refers to anything else. What a reader allocates is bounded by the size of the message:
// each element of a list takes of an allowance (Take).

#ifndef WAYBILL_STORE_CONTROL_WIRE_H_
#define WAYBILL_STORE_CONTROL_WIRE_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "store/control/described.h"
#include "store/control/frame.h"

namespace waybill::internal {

static_assert(std::endian::native == std::endian::little);

// What RFC 3339 can write (types.h).
inline bool IsTimestamp(const Timestamp& time) {
  return time.nanoseconds >= 0 && time.nanoseconds <= 999'999'999 &&
         time.seconds >= -62'135'596'800 && time.seconds <= 253'402'300'799;
}

// Appends values, and stops before they are more than a message may be.
class Put {
 public:
  explicit Put(Bytes& to) : to_(to) {}
  bool too_large() const { return too_large_; }

  template <typename T>
  void operator()(const T& value) {
    if constexpr (std::is_enum_v<T> || std::is_arithmetic_v<T>) {
      Raw(&value, sizeof(value));
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
      const std::string_view text(value);
      Count(text.size());
      Raw(text.data(), text.size());
    } else if constexpr (requires { value.native(); }) {
      (*this)(value.native());
    } else if constexpr (requires { value.has_value(); }) {
      (*this)(value.has_value());
      if (value) (*this)(*value);
    } else if constexpr (requires { value.count(); }) {
      (*this)(std::int64_t{value.count()});
    } else if constexpr (requires { value.capacity(); }) {
      Count(value.size());
      for (const auto& item : value) {
        if (too_large_) break;
        (*this)(item);
      }
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      for (const auto& item : value) (*this)(item);
    } else {
      const std::size_t at = to_.size();
      Count(0);
      std::apply([&](auto... member) { ((*this)(value.*member.pointer), ...); }, Members<T>::value);
      if (too_large_) return;
      const auto length = static_cast<std::uint32_t>(to_.size() - at - sizeof(std::uint32_t));
      std::memcpy(to_.data() + at, &length, sizeof(length));
    }
  }

 private:
  void Count(std::size_t count) { (*this)(static_cast<std::uint32_t>(count)); }
  void Raw(const void* bytes, std::size_t size) {
    too_large_ = too_large_ || size > kMaxOwnerMessageBytes - to_.size();
    if (too_large_) return;
    const auto* const from = static_cast<const std::uint8_t*>(bytes);
    to_.insert(to_.end(), from, from + size);
  }

  Bytes& to_;
  bool too_large_ = false;
};

// Reads values, any bytes. After the first that is not one, ok() is false, and what was read is of
// no use.
class Take {
 public:
  // What to do where another version sent more members of a struct, or fewer.
  enum class Unknown : std::uint8_t { kSkip, kRefuse };

  explicit Take(std::span<const std::uint8_t> from, Unknown unknown = Unknown::kSkip)
      : from_(from), allowance_(from.size() * kMemoryPerByte), unknown_(unknown) {}
  bool ok() const { return ok_; }
  // Nothing more is to be read.
  void End() {
    const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
    ok_ = ok_ && (unknown_ == Unknown::kSkip || std::all_of(from_.begin(), from_.end(), is_zero));
  }

  template <typename T>
  void operator()(T& value) {
    if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> number{};
      (*this)(number);
      ok_ = ok_ && number <= kLast<T>;
      if (ok_) value = static_cast<T>(number);
    } else if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t byte = 0;
      (*this)(byte);
      ok_ = ok_ && byte <= 1;
      value = byte == 1;
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (const auto* const bytes = Next(sizeof(value))) std::memcpy(&value, bytes, sizeof(value));
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
      std::uint32_t size = 0;
      (*this)(size);
      if (const auto* const bytes = Next(size))
        value = T(reinterpret_cast<const char*>(bytes), size);
    } else if constexpr (requires { value.native(); }) {
      std::string text;
      (*this)(text);
      value = text;
    } else if constexpr (requires { value.has_value(); }) {
      bool has = false;
      (*this)(has);
      if (has && ok_) (*this)(value.emplace());
    } else if constexpr (requires { value.count(); }) {
      std::int64_t count = 0;
      (*this)(count);
      value = T(count);
    } else if constexpr (requires { value.capacity(); }) {
      std::uint32_t count = 0;
      (*this)(count);
      for (std::uint32_t i = 0; ok_ && i < count; ++i) {
        // An honest element takes no less of the message.
        ok_ = sizeof(typename T::value_type) <= allowance_;
        if (!ok_) break;
        allowance_ -= sizeof(typename T::value_type);
        (*this)(value.emplace_back());
      }
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      for (auto& item : value) (*this)(item);
    } else {
      std::uint32_t length = 0;
      (*this)(length);
      if (!ok_ || length > from_.size()) {
        ok_ = false;
        return;
      }
      const auto behind = from_.subspan(length);
      from_ = from_.first(length);
      std::apply([&](auto... member) { (IfAny(value.*member.pointer), ...); }, Members<T>::value);
      End();
      from_ = behind;
      if constexpr (std::is_same_v<T, Timestamp>) ok_ = ok_ && IsTimestamp(value);
    }
  }

 private:
  // The element that is largest beside its least bytes is an empty text: 4 bytes.
  static constexpr std::size_t kMemoryPerByte = sizeof(std::string) / sizeof(std::uint32_t);

  template <typename T>
  void IfAny(T& value) {
    if (ok_ && (unknown_ == Unknown::kRefuse || !from_.empty())) (*this)(value);
  }
  const std::uint8_t* Next(std::size_t size) {
    ok_ = ok_ && size <= from_.size();
    if (!ok_) return nullptr;
    const std::uint8_t* const at = from_.data();
    from_ = from_.subspan(size);
    return at;
  }

  std::span<const std::uint8_t> from_;
  std::size_t allowance_;
  Unknown unknown_;
  bool ok_ = true;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_CONTROL_WIRE_H_
