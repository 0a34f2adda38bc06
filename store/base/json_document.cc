#include "store/base/json_document.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/base/ascii.h"
#include "store/base/go_json.h"
#include "store/base/names.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::internal {

static_assert(kMaxDocumentBytes < std::numeric_limits<std::uint32_t>::max());
static_assert(kMaxJsonNodes < std::numeric_limits<std::uint32_t>::max());

namespace {

std::string_view KindName(JsonKind kind) {
  constexpr std::string_view kNames[] = {"null",     "a boolean", "a boolean", "a number",
                                         "a string", "an array",  "an object"};
  return NameIn(kNames, kind, "an unknown kind");
}

bool IsIdentifier(std::string_view key) {
  if (key.empty() || key.size() > kMaxQuotedBytes) return false;
  return std::all_of(key.begin(), key.end(), [](char c) {
    return (ToLower(c) >= 'a' && ToLower(c) <= 'z') || IsDigit(c) || c == '_';
  });
}

Error Broken(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message), ""}; }

Error TooLarge(std::string message) { return {ErrorCode::kLimitExceeded, std::move(message), ""}; }

}  // namespace

// Receives the events of nlohmann's parser, which builds nothing and keeps its stack on the heap,
// one bit a level. A handler that returns false stops it.
class JsonBuilder {
 public:
  JsonBuilder(std::size_t document_bytes,
              std::optional<std::span<const std::string_view>> may_quote) {
    document_.may_quote = may_quote;
    // Decoded text is never longer than its JSON, so this buffer does not grow and leaves no copy.
    document_.text.reserve(document_bytes);
    document_bytes_ = document_bytes;
  }

  bool null() { return Add(JsonKind::kNull); }
  bool boolean(bool value) { return Add(value ? JsonKind::kTrue : JsonKind::kFalse); }
  bool number_integer(nlohmann::json::number_integer_t) { return Add(JsonKind::kNumber); }
  bool number_unsigned(nlohmann::json::number_unsigned_t value) {
    if (!Add(JsonKind::kNumber)) return false;
    // JSON has no leading zeros, so these are the digits that were read.
    Store(std::to_string(value), document_.nodes.back().text_at, document_.nodes.back().text_size);
    return true;
  }
  bool number_float(nlohmann::json::number_float_t, const std::string&) {
    return Add(JsonKind::kNumber);
  }
  bool binary(nlohmann::json::binary_t&) { return false; }  // not in JSON
  bool string(std::string& value) {
    if (!Add(JsonKind::kString)) return false;
    Store(value, document_.nodes.back().text_at, document_.nodes.back().text_size);
    return true;
  }
  bool key(std::string& value) {
    Store(value, key_at_, key_size_);
    return true;
  }
  bool start_object(std::size_t) { return Open(JsonKind::kObject); }
  bool start_array(std::size_t) { return Open(JsonKind::kArray); }
  bool end_object() {
    Close();
    return CheckKeys(last_closed_);
  }
  bool end_array() {
    Close();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const std::exception&) {
    // The exception's text quotes the document, which may hold secrets.
    const std::size_t offset = std::min(position == 0 ? 0 : position - 1, document_bytes_);
    const std::string at = " at byte " + std::to_string(offset);
    if (!document_.nodes.empty() && open_.empty()) {
      error_ = Broken("text behind the document" + at);
    } else if (offset == document_bytes_) {
      error_ = Broken("JSON breaks off" + at);
    } else {
      error_ = Broken("not JSON" + at);
    }
    return false;
  }

  JsonDocument& document() { return document_; }
  std::optional<Error>& error() { return error_; }

 private:
  using Node = JsonDocument::Node;

  void Store(std::string_view value, std::uint32_t& at, std::uint32_t& size) {
    at = static_cast<std::uint32_t>(document_.text.size());
    size = static_cast<std::uint32_t>(value.size());
    document_.text.insert(document_.text.end(), value.begin(), value.end());
  }

  bool Add(JsonKind kind) {
    std::vector<Node>& nodes = document_.nodes;
    if (nodes.size() >= kMaxJsonNodes) {
      error_ = TooLarge("the document has more than " + std::to_string(kMaxJsonNodes) + " values");
      return false;
    }
    const auto index = static_cast<std::uint32_t>(nodes.size());
    Node node;
    node.kind = kind;
    node.end = index + 1;
    if (!open_.empty()) {
      node.parent = open_.back();
      if (nodes[node.parent].kind == JsonKind::kObject) {
        node.key_at = key_at_;
        node.key_size = key_size_;
      }
    }
    nodes.push_back(node);
    return true;
  }

  bool Open(JsonKind kind) {
    if (open_.size() >= static_cast<std::size_t>(kMaxJsonDepth)) {
      error_ = TooLarge("the document nests deeper than " + std::to_string(kMaxJsonDepth) +
                        " levels, in " + JsonValue(document_, open_.back()).Path());
      return false;
    }
    if (!Add(kind)) return false;
    open_.push_back(static_cast<std::uint32_t>(document_.nodes.size() - 1));
    return true;
  }

  void Close() {
    last_closed_ = open_.back();
    open_.pop_back();
    document_.nodes[last_closed_].end = static_cast<std::uint32_t>(document_.nodes.size());
  }

  // Sorted rather than hashed: keys are hostile, and could be chosen to collide.
  bool CheckKeys(std::uint32_t object) {
    keys_.clear();
    for (const JsonValue member : JsonValue(document_, object).members()) {
      keys_.push_back(member.key());
    }
    std::sort(keys_.begin(), keys_.end());
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end());
    if (twice == keys_.end()) return true;
    const bool may_quote = JsonValue(document_, object).MayQuote(*twice);
    error_ = JsonValue(document_, object)
                 .Fail(may_quote ? "key " + QuoteForMessage(*twice) + " is there twice"
                                 : "a key is there twice");
    return false;
  }

  JsonDocument document_;
  std::size_t document_bytes_ = 0;
  std::vector<std::uint32_t> open_;  // open objects and arrays, outermost first
  std::uint32_t last_closed_ = 0;
  std::uint32_t key_at_ = 0;
  std::uint32_t key_size_ = 0;
  std::vector<std::string_view> keys_;
  std::optional<Error> error_;
};

Result<JsonDocument> JsonDocument::Parse(
    std::string_view json, std::size_t max_bytes,
    std::optional<std::span<const std::string_view>> may_quote) {
  max_bytes = std::min(max_bytes, kMaxDocumentBytes);
  if (json.size() > max_bytes) {
    return TooLarge("the document has " + std::to_string(json.size()) + " bytes, above the " +
                    std::to_string(max_bytes) + " allowed");
  }
  if (json.find_first_not_of(" \t\r\n") == std::string_view::npos) return Broken("empty document");
  if (json.starts_with("\xef\xbb\xbf")) return Broken("a byte order mark at byte 0");
  // nlohmann's parser takes a zero byte for the end of its input.
  if (const std::size_t zero = json.find('\0'); zero != std::string_view::npos) {
    return Broken("not JSON at byte " + std::to_string(zero) + ": a zero byte");
  }
  if (const std::size_t valid = ValidUtf8Prefix(json); valid != json.size()) {
    return Broken("not UTF-8 at byte " + std::to_string(valid));
  }
  JsonBuilder builder(json.size(), may_quote);
  const bool parsed = nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  if (builder.error()) return *std::move(builder.error());
  if (!parsed) return Broken("not JSON");
  return std::move(builder.document());
}

JsonDocument::~JsonDocument() {
  if (!text.empty()) OPENSSL_cleanse(text.data(), text.size());
}

// ---- Reading a parsed document: paths, messages, typed values

JsonKind JsonValue::kind() const { return document_->nodes[node_].kind; }

std::string_view JsonValue::key() const {
  const JsonDocument::Node& node = document_->nodes[node_];
  return document_->Text(node.key_at, node.key_size);
}

std::string_view JsonValue::text() const {
  const JsonDocument::Node& node = document_->nodes[node_];
  return document_->Text(node.text_at, node.text_size);
}

JsonValue::Range JsonValue::members() const {
  return {{*document_, node_ + 1}, {*document_, document_->nodes[node_].end}};
}

std::size_t JsonValue::Range::size() const {
  std::size_t count = 0;
  for (Iterator at = first; !(at == last); ++at) ++count;
  return count;
}

std::optional<JsonValue> JsonValue::Find(std::string_view key) const {
  if (kind() != JsonKind::kObject) return std::nullopt;
  for (const JsonValue member : members()) {
    if (member.key() == key) return member;
  }
  return std::nullopt;
}

std::string JsonValue::Path() const {
  const std::vector<JsonDocument::Node>& nodes = document_->nodes;
  std::vector<std::uint32_t> steps;  // innermost first
  for (std::uint32_t at = node_; at != 0; at = nodes[at].parent) steps.push_back(at);
  if (steps.empty()) return "document";

  std::string path;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const JsonDocument::Node& node = nodes[*step];
    const auto index = [&] {
      std::size_t before = 0;
      for (std::uint32_t at = node.parent + 1; at != *step; at = nodes[at].end) ++before;
      return std::to_string(before);
    };
    if (nodes[node.parent].kind == JsonKind::kArray) {
      path += '[' + index() + ']';
      continue;
    }
    const std::string_view key = document_->Text(node.key_at, node.key_size);
    if (!MayQuote(key)) {
      path += '{' + index() + '}';
    } else if (!IsIdentifier(key)) {
      path += '[' + QuoteForMessage(key) + ']';
    } else {
      if (!path.empty()) path += '.';
      path += key;
    }
  }
  return path;
}

bool JsonValue::MayQuote(std::string_view key) const {
  const auto& names = document_->may_quote;
  return !names || std::find(names->begin(), names->end(), key) != names->end();
}

Error JsonValue::Fail(std::string_view what, ErrorCode code) const {
  return {code, Path() + ": " + std::string(what), ""};
}

Error JsonValue::Expected(std::string_view wanted) const {
  return Fail("expected " + std::string(wanted) + ", got " + std::string(KindName(kind())));
}

Result<void> ReadString(JsonValue value, std::size_t max_bytes, std::string& out) {
  if (value.is_null()) return {};
  if (!value.is_string()) return value.Expected("a string");
  if (value.text().size() > max_bytes) {
    return value.Fail("has " + std::to_string(value.text().size()) + " bytes, above the " +
                          std::to_string(max_bytes) + " allowed",
                      ErrorCode::kLimitExceeded);
  }
  out = value.text();
  return {};
}

Result<void> ReadStrings(JsonValue value, std::size_t max_bytes, std::vector<std::string>& out) {
  if (auto array = CheckArray(value); !array) return array;
  for (const JsonValue item : value.members()) {
    if (!item.is_string()) return item.Expected("a string");
    if (auto read = ReadString(item, max_bytes, out.emplace_back()); !read) return read;
  }
  return {};
}

Result<void> ReadBool(JsonValue value, bool& out) {
  if (value.is_null()) return {};
  const bool yes = value.kind() == JsonKind::kTrue;
  if (!yes && value.kind() != JsonKind::kFalse) return value.Expected("a boolean");
  out = yes;
  return {};
}

Result<void> ReadUnsigned(JsonValue value, std::uint64_t& out) {
  if (value.is_null()) return {};
  if (value.kind() != JsonKind::kNumber) return value.Expected("a number");
  const std::string_view digits = value.text();
  if (digits.empty()) return value.Fail("expected a whole number of 0 or more");
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return {};
}

Result<void> CheckObject(JsonValue value) {
  if (value.is_null() || value.kind() == JsonKind::kObject) return {};
  return value.Expected("an object");
}

Result<void> CheckArray(JsonValue value) {
  if (value.is_null() || value.kind() == JsonKind::kArray) return {};
  return value.Expected("an array");
}

Result<void> CheckCount(JsonValue value, std::size_t max, std::string_view what) {
  const std::size_t count = value.members().size();
  if (count <= max) return {};
  return value.Fail("has " + std::to_string(count) + " " + std::string(what) + ", above the " +
                        std::to_string(max) + " allowed",
                    ErrorCode::kLimitExceeded);
}

Result<void> CheckCase(JsonValue object, std::string_view name) {
  for (const JsonValue member : object.members()) {
    const std::string_view key = member.key();
    if (key == name || key.size() != name.size()) continue;
    const bool same = std::equal(key.begin(), key.end(), name.begin(),
                                 [](char a, char b) { return ToLower(a) == ToLower(b); });
    if (same) return member.Fail("expected this field to be spelled " + QuoteForMessage(name));
  }
  return {};
}

Result<void> CheckFields(JsonValue value, std::initializer_list<std::string_view> names) {
  if (value.kind() != JsonKind::kObject) return value.Expected("an object");
  for (const std::string_view name : names) TRY(CheckCase(value, name));
  return {};
}

Result<std::optional<JsonValue>> FindField(JsonValue object, std::string_view name) {
  TRY(CheckCase(object, name));
  return object.Find(name);
}

Result<void> ReadStringField(JsonValue object, std::string_view name, std::size_t max_bytes,
                             std::string& out) {
  const auto field = TRY(FindField(object, name));
  return field ? ReadString(*field, max_bytes, out) : Result<void>();
}

Result<JsonValue> Require(JsonValue object, std::string_view name, JsonKind kind) {
  const auto field = object.Find(name);
  if (!field) return object.Fail("field " + QuoteForMessage(name) + " is missing");
  if (field->kind() != kind) return field->Expected(KindName(kind));
  return *field;
}

}  // namespace waybill::internal
