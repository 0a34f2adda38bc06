#include "store/base/json_document.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/base/go_json.h"
#include "waybill/limits.h"

namespace waybill::internal {

static_assert(kMaxDocumentBytes < std::numeric_limits<std::uint32_t>::max());
static_assert(kMaxJsonNodes < std::numeric_limits<std::uint32_t>::max());

namespace {

Error Broken(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message), ""}; }

Error TooLarge(std::string message) { return {ErrorCode::kLimitExceeded, std::move(message), ""}; }

}  // namespace

// Receives nlohmann's events. That parser keeps its own stack on the heap, one bit a level, and
// builds nothing. A handler that returns false stops it.
class JsonBuilder {
 public:
  JsonBuilder(std::size_t document_bytes,
              std::optional<std::span<const std::string_view>> may_tell) {
    document_.may_tell_ = may_tell;
    // Decoded text is never longer than its JSON, so this buffer does not grow and leaves no copy.
    document_.text_.reserve(document_bytes);
    document_bytes_ = document_bytes;
  }

  bool null() { return Add(JsonKind::kNull); }
  bool boolean(bool value) { return Add(value ? JsonKind::kTrue : JsonKind::kFalse); }
  bool number_integer(nlohmann::json::number_integer_t) { return Add(JsonKind::kNumber); }
  bool number_unsigned(nlohmann::json::number_unsigned_t value) {
    if (!Add(JsonKind::kNumber)) return false;
    // JSON has no leading zeros, so these are the digits that were read.
    Store(std::to_string(value), document_.nodes_.back().text_at,
          document_.nodes_.back().text_size);
    return true;
  }
  bool number_float(nlohmann::json::number_float_t, const std::string&) {
    return Add(JsonKind::kNumber);
  }
  bool binary(nlohmann::json::binary_t&) { return false; }  // not in JSON
  bool string(std::string& value) {
    if (!Add(JsonKind::kString)) return false;
    Store(value, document_.nodes_.back().text_at, document_.nodes_.back().text_size);
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
    // The exception's own text quotes the document, secrets included.
    const std::size_t offset = std::min(position == 0 ? 0 : position - 1, document_bytes_);
    const std::string at = " at byte " + std::to_string(offset);
    if (!document_.nodes_.empty() && open_.empty()) {
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
    at = static_cast<std::uint32_t>(document_.text_.size());
    size = static_cast<std::uint32_t>(value.size());
    document_.text_.insert(document_.text_.end(), value.begin(), value.end());
  }

  bool Add(JsonKind kind) {
    std::vector<Node>& nodes = document_.nodes_;
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
    open_.push_back(static_cast<std::uint32_t>(document_.nodes_.size() - 1));
    return true;
  }

  void Close() {
    last_closed_ = open_.back();
    open_.pop_back();
    document_.nodes_[last_closed_].end = static_cast<std::uint32_t>(document_.nodes_.size());
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
    const bool may_tell = JsonValue(document_, object).MayTell(*twice);
    error_ = JsonValue(document_, object)
                 .Fail(may_tell ? "key " + QuoteForMessage(*twice) + " is there twice"
                                : "a key is there twice");
    return false;
  }

  JsonDocument document_;
  std::size_t document_bytes_ = 0;
  std::vector<std::uint32_t> open_;  // objects and arrays that are not closed yet, outermost first
  std::uint32_t last_closed_ = 0;
  std::uint32_t key_at_ = 0;
  std::uint32_t key_size_ = 0;
  std::vector<std::string_view> keys_;
  std::optional<Error> error_;
};

Result<JsonDocument> JsonDocument::Parse(std::string_view json, std::size_t max_bytes) {
  return Parse(json, max_bytes, std::nullopt);
}

Result<JsonDocument> JsonDocument::ParseSecret(std::string_view json, std::size_t max_bytes,
                                               std::span<const std::string_view> field_names) {
  return Parse(json, max_bytes, field_names);
}

Result<JsonDocument> JsonDocument::Parse(
    std::string_view json, std::size_t max_bytes,
    std::optional<std::span<const std::string_view>> may_tell) {
  max_bytes = std::min(max_bytes, kMaxDocumentBytes);
  if (json.size() > max_bytes) {
    return TooLarge("the document has " + std::to_string(json.size()) + " bytes, above the " +
                    std::to_string(max_bytes) + " allowed");
  }
  if (json.find_first_not_of(" \t\r\n") == std::string_view::npos) return Broken("empty document");
  if (json.starts_with("\xef\xbb\xbf")) return Broken("a byte order mark at byte 0");
  // nlohmann takes a zero byte for the end of its input.
  if (const std::size_t zero = json.find('\0'); zero != std::string_view::npos) {
    return Broken("not JSON at byte " + std::to_string(zero) + ": a zero byte");
  }
  if (const std::size_t valid = ValidUtf8Prefix(json); valid != json.size()) {
    return Broken("not UTF-8 at byte " + std::to_string(valid));
  }
  JsonBuilder builder(json.size(), may_tell);
  const bool parsed = nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  if (builder.error()) return *std::move(builder.error());
  if (!parsed) return Broken("not JSON");
  return std::move(builder.document());
}

JsonDocument::~JsonDocument() {
  if (!text_.empty()) OPENSSL_cleanse(text_.data(), text_.size());
}

}  // namespace waybill::internal
