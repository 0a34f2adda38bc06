// A JSON value that is made to be written: an answer of the command, the guard's status. Fields
// keep their order. It is spelled as nlohmann's ordered_json is, so that json_value.cc alone
// compiles that.

#ifndef WAYBILL_STORE_BASE_JSON_VALUE_H_
#define WAYBILL_STORE_BASE_JSON_VALUE_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace waybill::internal {

class Json {
 public:
  // What may stand in braces. Lists of two whose first is a string are fields, if all are: {{"a",
  // 1}}.
  class Item;
  using Field = std::pair<std::string, Json>;

  // NOLINTBEGIN(google-explicit-constructor): values are written as in JSON.
  Json(std::nullptr_t = nullptr) {}
  Json(std::same_as<bool> auto value) : kind_(Kind::kBoolean), number_(value ? 1 : 0) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value)
      : kind_(value < T{0} ? Kind::kNegative : Kind::kNumber),
        number_(static_cast<std::uint64_t>(value)) {}
  Json(double value);
  Json(const char* value) : Json(std::string(value)) {}
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(std::string value);
  // A container that is not a string.
  template <typename T>
  requires(!std::convertible_to<T, std::string_view> && requires { typename T::value_type; })
      Json(const T& values)
      : kind_(Kind::kArray) {
    for (const auto& value : values) elements_.emplace_back(value);
  }
  Json(std::initializer_list<Item> items);
  // NOLINTEND(google-explicit-constructor)
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array();
  static Json object();
  // Null: it is not JSON, or has more than 64 levels.
  static Json Parse(std::string_view text);
  // An object of neither objects nor arrays, without repeated keys; otherwise null.
  static Json ParseFlat(std::string_view text);

  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_boolean() const { return kind_ == Kind::kBoolean; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_object() const { return kind_ == Kind::kObject; }
  bool is_true() const { return is_boolean() && number_ == 1; }
  const std::string& text() const { return text_; }
  // Of the object's fields or the array's elements.
  std::size_t size() const { return fields_.size() + elements_.size(); }
  bool empty() const { return size() == 0; }

  const std::vector<Field>& items() const { return fields_; }
  std::vector<Json>::const_iterator begin() const { return elements_.begin(); }
  std::vector<Json>::const_iterator end() const { return elements_.end(); }
  Json& back() { return elements_.back(); }
  // Null becomes an array, or an object.
  Json& push_back(Json value);
  Json& operator[](std::string_view key);
  // nullptr: there is no such field.
  const Json* Find(std::string_view key) const;
  bool contains(std::string_view key) const { return Find(key) != nullptr; }
  // Where there is no such field, or one of another kind: nothing, or 0.
  std::string TextAt(std::string_view key) const;
  std::uint64_t NumberAt(std::string_view key) const;
  void Erase(std::string_view key);
  void Update(const Json& other);

  bool operator==(const Json& other) const;

  // In ASCII nothing can steer a terminal. A byte that is not UTF-8 becomes U+FFFD.
  enum class Letters { kAscii, kAny };
  // On one line; or each field and element on a line of its own.
  enum class Lines { kOne, kIndented };
  std::string Text(Letters letters = Letters::kAny, Lines lines = Lines::kOne) const;

 private:
  enum class Kind : std::uint8_t {
    kNull,
    kBoolean,
    kNumber,
    kNegative,
    kReal,
    kString,
    kArray,
    kObject
  };
  struct Codec;

  explicit Json(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::kNull;
  std::uint64_t number_ = 0;  // kNegative: as two's complement
  double real_ = 0;
  std::string text_ = {};
  std::vector<Json> elements_ = {};
  std::vector<Field> fields_ = {};
};

class Json::Item {
 public:
  template <typename T>
  // NOLINTNEXTLINE(google-explicit-constructor, bugprone-forwarding-reference-overload)
  Item(T&& value) : value_(std::forward<T>(value)) {}
  Item(std::initializer_list<Item> items) : value_(items) {}

  // A list in braces gives out its items as const, and holds the only copy of each.
  Json Take() const { return std::move(value_); }
  const Json& value() const { return value_; }

 private:
  mutable Json value_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_JSON_VALUE_H_
