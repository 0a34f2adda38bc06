// JSON that strangers write, and that we write.
//
// Reading is a walk through the text, with no document in between. It refuses what RFC 8259 does
// not allow, invalid UTF-8, too many levels, and text behind the end. Whoever reads into a value
// refuses a key that is there twice; in what Skip goes past, keys are not compared. Nothing throws
// but std::bad_alloc, no message repeats a value, and no copy of a value is left in memory but the
// one that was asked for.

#ifndef WAYBILL_STORE_BASE_JSON_H_
#define WAYBILL_STORE_BASE_JSON_H_

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "waybill/limits.h"
#include "waybill/result.h"

namespace waybill::internal {

// Levels of what goes in and out of the store; other documents have waybill::kMaxJsonDepth.
inline constexpr int kMaxJsonDepth = 16;
// The elements of lists and maps take at most so many bytes of memory for each byte of the text,
// and some for short texts; never more than the last. What a list holds in reserve comes on top.
inline constexpr std::size_t kMemoryPerByte = 16;
inline constexpr std::size_t kMemoryOfAnyText = std::size_t{64} << 10;
inline constexpr std::size_t kMostMemory = std::size_t{1} << 30;

class JsonWriter {
 public:
  explicit JsonWriter(std::string& to) : to_(to) {}

  void Begin(char bracket) {
    Comma();
    to_ += bracket;
    first_ = true;
  }
  void End(char bracket) {
    to_ += bracket;
    first_ = false;
  }
  void Key(std::string_view key) {
    String(key);
    to_ += ':';
    first_ = true;
  }
  void String(std::string_view text);  // a byte that is not UTF-8 becomes U+FFFD
  void Raw(std::string_view json) {
    Comma();
    to_ += json;
  }
  void Bool(bool value) { Raw(value ? "true" : "false"); }
  template <typename N>
  void Number(N value) {
    if constexpr (std::floating_point<N>) {
      if (!std::isfinite(value)) return Raw("null");  // JSON has no other word for it
    }
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value);
    Raw({digits, static_cast<std::size_t>(end.ptr - digits)});
  }

  // Where the text ends now, what was written since, and to take that back.
  struct Mark {
    std::size_t size;
    bool first;
  };
  Mark Here() const { return {to_.size(), first_}; }
  std::string_view Since(Mark mark) const { return std::string_view(to_).substr(mark.size); }
  void TakeBack(Mark mark) {
    to_.resize(mark.size);
    first_ = mark.first;
  }

 private:
  void Comma() {
    if (!first_) to_ += ',';
    first_ = false;
  }

  std::string& to_;
  bool first_ = true;
};

// The JSON of an object's member, the last of that name; empty: there is none, or no object.
std::string_view MemberOf(std::string_view object, std::string_view name);

class JsonReader {
 public:
  static constexpr int kEnd = -1;

  // `max_depth`: at most waybill::kMaxJsonDepth.
  explicit JsonReader(std::string_view text, int max_depth = kMaxJsonDepth)
      : text_(text),
        memory_(std::min(text.size() * kMemoryPerByte + kMemoryOfAnyText, kMostMemory)),
        max_depth_(max_depth) {}

  // After the first problem all functions return false.
  bool ok() const { return wrong_.empty(); }
  // "images[3].id: expected a string, at byte 77": bytes are counted from 0.
  std::string Problem() const;
  // kInvalidArgument, or kLimitExceeded.
  ErrorCode code() const { return code_; }
  bool Fail(std::string_view what, ErrorCode code = ErrorCode::kInvalidArgument) {
    return FailAt(at_, what, code);
  }
  // At the beginning of the string or number that was read last.
  bool FailAtToken(std::string_view what, ErrorCode code = ErrorCode::kInvalidArgument) {
    return FailAt(token_, what, code);
  }
  // Called on the way out of a member or element that failed.
  void Within(std::string_view name);
  void Within(std::size_t index) { path_.insert(0, "[" + std::to_string(index) + "]"); }

  // The next byte that is not white space; kEnd: there is none.
  int Peek();
  bool Null();  // takes a null, if there is one

  // Opens an object or list; then, until More is false: Key and its value, or an element.
  bool Open(char bracket);
  bool More(char bracket, bool& first);
  bool Key(std::string& key) { return TakeKey(&key); }

  bool String(std::string& text) { return TakeString(&text); }
  bool Bool(bool& value);
  // On failure `value` is as it was.
  template <typename N>
  bool Number(N& value) {
    const std::string_view digits = Digits("expected a number");
    if (!ok()) return false;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    if (error == std::errc() && stop == end) return true;
    const bool whole = digits.find_first_of(".eE") == std::string_view::npos;
    return FailAtToken(whole || std::floating_point<N> ? "the number is out of range"
                                                       : "expected a whole number");
  }
  // Checks a value and goes past it; `json` is its text.
  bool Skip(std::string_view& json);
  // The text is read without a problem, and to its end.
  bool End() { return ok() && (Peek() == kEnd || Fail("text after the end")); }
  // Asked before an element is added to a list or map.
  bool Afford(std::size_t bytes);

 private:
  bool FailAt(std::size_t byte, std::string_view what, ErrorCode code);
  bool Take(char c);
  bool Word(std::string_view word);
  // Null: what it says is not kept.
  bool TakeString(std::string* text);
  bool TakeKey(std::string* key);
  bool Escape(std::string* text);
  bool Hex4(std::uint32_t& unit);
  std::string_view Digits(std::string_view expected);

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t token_ = 0;
  std::size_t memory_;
  int max_depth_;
  int depth_ = 0;
  std::string wrong_;
  ErrorCode code_ = ErrorCode::kInvalidArgument;
  std::string path_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_JSON_H_
