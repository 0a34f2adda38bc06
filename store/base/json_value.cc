// Reading a parsed document: paths, messages, typed values.

#include <algorithm>
#include <charconv>
#include <utility>

#include "store/base/json_document.h"

namespace waybill::internal {
namespace {

std::string_view KindName(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kFalse:
    case JsonKind::kTrue:
      return "a boolean";
    case JsonKind::kNumber:
      return "a number";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      return "an object";
  }
  return "an unknown kind";
}

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool IsIdentifier(std::string_view key) {
  if (key.empty() || key.size() > kMaxQuotedBytes) return false;
  return std::all_of(key.begin(), key.end(), [](char c) {
    const char lower = LowerAscii(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

JsonKind JsonValue::kind() const { return document_->nodes_[node_].kind; }

std::string_view JsonValue::key() const {
  const JsonDocument::Node& node = document_->nodes_[node_];
  return document_->Text(node.key_at, node.key_size);
}

std::string_view JsonValue::text() const {
  const JsonDocument::Node& node = document_->nodes_[node_];
  return document_->Text(node.text_at, node.text_size);
}

JsonValue::Range JsonValue::members() const {
  return {{*document_, node_ + 1}, {*document_, document_->nodes_[node_].end}};
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
  const std::vector<JsonDocument::Node>& nodes = document_->nodes_;
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
    if (!MayTell(key)) {
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

bool JsonValue::MayTell(std::string_view key) const {
  const auto& names = document_->may_tell_;
  return !names || std::find(names->begin(), names->end(), key) != names->end();
}

Error JsonValue::Fail(std::string_view what, ErrorCode code) const {
  std::string message = Path();
  message += ": ";
  message += what;
  return {code, std::move(message), ""};
}

Error JsonValue::Expected(std::string_view wanted) const {
  std::string what = "expected ";
  what += wanted;
  what += ", got ";
  what += KindName(kind());
  return Fail(what);
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
  switch (value.kind()) {
    case JsonKind::kNull:
      return {};
    case JsonKind::kFalse:
      out = false;
      return {};
    case JsonKind::kTrue:
      out = true;
      return {};
    default:
      return value.Expected("a boolean");
  }
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
  std::string text = "has " + std::to_string(count) + ' ';
  text += what;
  text += ", above the " + std::to_string(max) + " allowed";
  return value.Fail(text, ErrorCode::kLimitExceeded);
}

Result<void> CheckCase(JsonValue object, std::string_view name) {
  for (const JsonValue member : object.members()) {
    const std::string_view key = member.key();
    if (key == name || key.size() != name.size()) continue;
    const bool same = std::equal(key.begin(), key.end(), name.begin(),
                                 [](char a, char b) { return LowerAscii(a) == LowerAscii(b); });
    if (same) return member.Fail("expected this field to be spelled " + QuoteForMessage(name));
  }
  return {};
}

}  // namespace waybill::internal
