// A JSON document, parsed strictly and within bounds.
//
// The document is a flat list of nodes in the order in which they were read, and one buffer with
// all keys and strings, no longer than the document itself. {"a":[1,"x"]} is
//
//   node  parent  end  kind    key  text
//   0     0       4    object            end: one past the last node inside
//   1     0       4    array   a
//   2     1       3    number       1
//   3     1       4    string       x
//
// Only whole numbers from 0 to 2⁶⁴-1 keep their text; other numbers are checked and dropped.
// Refused: invalid JSON or UTF-8, a byte order mark, text after the document, a repeated key in an
// object, more than kMaxJsonDepth levels or kMaxJsonNodes nodes. The buffer may hold credentials,
// so it is wiped at the end, and error messages never quote a value.

#ifndef WAYBILL_STORE_BASE_JSON_DOCUMENT_H_
#define WAYBILL_STORE_BASE_JSON_DOCUMENT_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/quote.h"
#include "waybill/result.h"

namespace waybill::internal {

// Bounds the memory: some 28 bytes for each node, plus the text.
inline constexpr std::size_t kMaxJsonNodes = std::size_t{16} << 20;

enum class JsonKind : std::uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

struct JsonDocument;

// A place in a document. Borrowed: the document must outlive it and must not move.
class JsonValue {
 public:
  class Iterator;
  struct Range;

  JsonValue(const JsonDocument& document, std::uint32_t node) : document_(&document), node_(node) {}

  JsonKind kind() const;
  bool is_null() const { return kind() == JsonKind::kNull; }
  bool is_string() const { return kind() == JsonKind::kString; }
  std::string_view key() const;   // empty outside an object
  std::string_view text() const;  // of a string, or a kept number's digits; empty otherwise

  // The members of an object or array, in the document's order; empty for other kinds.
  Range members() const;
  std::optional<JsonValue> Find(std::string_view key) const;

  // `items[0].metadata["a b"].uid`; "document" for the root. In a document with credentials, keys
  // that are not field names are replaced by their position:
  // `credentialMapping{0}.kubernetesSecrets[0].uid`.
  std::string Path() const;
  // kInvalidArgument, or `code`: "<path>: <what>".
  Error Fail(std::string_view what, ErrorCode code = ErrorCode::kInvalidArgument) const;
  // "<path>: expected <wanted>, got a number".
  Error Expected(std::string_view wanted) const;
  // "<path>: unknown field".
  Error UnknownField() const { return Fail("unknown field"); }
  // Whether a message may quote that key.
  bool MayQuote(std::string_view key) const;

 private:
  const JsonDocument* document_;
  std::uint32_t node_;
};

struct JsonDocument {
  // kInvalidArgument with the byte offset or path; kLimitExceeded above `max_bytes` or the bounds
  // above. Does not throw.
  static Result<JsonDocument> Parse(std::string_view json, std::size_t max_bytes) {
    return Parse(json, max_bytes, std::nullopt);
  }
  // A document with credentials: messages quote only these field names from it.
  static Result<JsonDocument> ParseSecret(std::string_view json, std::size_t max_bytes,
                                          std::span<const std::string_view> field_names) {
    return Parse(json, max_bytes, field_names);
  }

  JsonDocument() = default;
  JsonDocument(JsonDocument&&) = default;
  JsonDocument& operator=(JsonDocument&&) = delete;
  ~JsonDocument();

  JsonValue root() const { return {*this, 0}; }

  struct Node {
    std::uint32_t parent = 0;
    std::uint32_t end = 0;
    std::uint32_t key_at = 0;
    std::uint32_t key_size = 0;
    std::uint32_t text_at = 0;
    std::uint32_t text_size = 0;
    JsonKind kind = JsonKind::kNull;
  };

  static Result<JsonDocument> Parse(std::string_view json, std::size_t max_bytes,
                                    std::optional<std::span<const std::string_view>> may_quote);
  std::string_view Text(std::uint32_t at, std::uint32_t size) const {
    return {text.data() + at, size};
  }

  // Keys that messages may quote; nullopt: all.
  std::optional<std::span<const std::string_view>> may_quote;
  std::vector<Node> nodes;
  std::vector<char> text;  // not a string: a short one would leave a copy behind when moved
};

class JsonValue::Iterator {
 public:
  Iterator(const JsonDocument& document, std::uint32_t node) : document_(&document), node_(node) {}
  JsonValue operator*() const { return {*document_, node_}; }
  Iterator& operator++() {
    node_ = document_->nodes[node_].end;
    return *this;
  }
  bool operator==(const Iterator& other) const { return node_ == other.node_; }

 private:
  const JsonDocument* document_;
  std::uint32_t node_;
};

struct JsonValue::Range {
  Iterator first;
  Iterator last;
  Iterator begin() const { return first; }
  Iterator end() const { return last; }
  std::size_t size() const;
};

// null leaves `out` unchanged, as in Go. kLimitExceeded above `max_bytes`.
Result<void> ReadString(JsonValue value, std::size_t max_bytes, std::string& out);
// An array of strings: null leaves `out` unchanged, but a null among the strings is refused.
Result<void> ReadStrings(JsonValue value, std::size_t max_bytes, std::vector<std::string>& out);
Result<void> ReadBool(JsonValue value, bool& out);
// kInvalidArgument: not a whole number from 0 to 2⁶⁴-1.
Result<void> ReadUnsigned(JsonValue value, std::uint64_t& out);
// "expected an object" unless `value` is one, or null.
Result<void> CheckObject(JsonValue value);
Result<void> CheckArray(JsonValue value);
// kLimitExceeded if `value` has more than `max` members, which the message calls `what`.
Result<void> CheckCount(JsonValue value, std::size_t max, std::string_view what);
// For an object whose unknown fields are ignored: refuses `name` in another case, which Go would
// take for `name` itself.
Result<void> CheckCase(JsonValue object, std::string_view name);
// `value` is an object, and CheckCase holds for all `names`.
Result<void> CheckFields(JsonValue value, std::initializer_list<std::string_view> names);
// After CheckCase. nullopt: missing.
Result<std::optional<JsonValue>> FindField(JsonValue object, std::string_view name);
Result<void> ReadStringField(JsonValue object, std::string_view name, std::size_t max_bytes,
                             std::string& out);
// "field "name" is missing", or "expected …" if it is of another kind.
Result<JsonValue> Require(JsonValue object, std::string_view name, JsonKind kind);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_JSON_DOCUMENT_H_
