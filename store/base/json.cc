#include "store/base/json.h"

#include <algorithm>

#include "store/base/go_json.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";

// What a string holds as it is: ASCII without controls, quote and backslash.
bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\';
}

std::size_t PlainEnd(std::string_view text, std::size_t at) {
  while (at < text.size() && IsPlain(text[at])) ++at;
  return at;
}

// Where the string that goes on at `at` ends, at the latest.
std::size_t StringEnd(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at, text.size());
}

void AppendUtf8(std::string& to, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xE0 | c >> 12);
    } else {
      put(0xF0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3F));
    }
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

}  // namespace

void JsonWriter::String(std::string_view text) {
  Comma();
  to_ += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t plain = PlainEnd(text, i);
    to_.append(text, i, plain - i);
    if ((i = plain) == text.size()) break;
    const char c = text[i];
    const std::size_t size = Utf8SequenceLength(text.substr(i));
    if (size > 1) {
      to_.append(text, i, size);
    } else if (size == 0) {
      to_ += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      (to_ += '\\') += c;
    } else if (c == '\n') {
      to_ += "\\n";
    } else {
      const auto byte = static_cast<unsigned char>(c);
      ((to_ += "\\u00") += kHex[byte >> 4U]) += kHex[byte & 0xFU];
    }
    i += size == 0 ? 1 : size;
  }
  to_ += '"';
}

std::string_view MemberOf(std::string_view object, std::string_view name) {
  JsonReader from(object, waybill::kMaxJsonDepth);
  std::string key;
  std::string_view value;
  std::string_view found;
  if (!from.Open('{')) return {};
  for (bool first = true; from.More('{', first);) {
    if (!from.Key(key) || !from.Skip(value)) return {};
    if (key == name) found = value;
  }
  return from.ok() ? found : std::string_view();
}

bool JsonReader::FailAt(std::size_t byte, std::string_view what, ErrorCode code) {
  if (!ok()) return false;
  wrong_ = std::string(what) + ", at byte " + std::to_string(byte);
  code_ = code;
  return false;
}

void JsonReader::Within(std::string_view name) {
  const bool is_plain = name.find_first_of("./") == std::string_view::npos;
  path_.insert(0, is_plain ? "." + std::string(name) : "[\"" + std::string(name) + "\"]");
}

std::string JsonReader::Problem() const {
  if (path_.empty()) return wrong_;
  return path_.substr(path_[0] == '.' ? 1 : 0) + ": " + wrong_;
}

int JsonReader::Peek() {
  at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size());
  return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : kEnd;
}

bool JsonReader::Take(char c) {
  if (!ok() || Peek() != c) return false;
  ++at_;
  return true;
}

bool JsonReader::Word(std::string_view word) {
  if (!ok() || Peek() != word[0] || text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

bool JsonReader::Null() { return Word("null"); }

bool JsonReader::Bool(bool& value) {
  const bool is_true = Word("true");
  if (!is_true && !Word("false")) return Fail("expected true or false");
  value = is_true;
  return true;
}

bool JsonReader::Open(char bracket) {
  if (!Take(bracket)) return Fail(bracket == '{' ? "expected an object" : "expected a list");
  return ++depth_ <= max_depth_ || Fail("too deep", ErrorCode::kLimitExceeded);
}

bool JsonReader::More(char bracket, bool& first) {
  const bool was_first = first;
  first = false;
  if (Take(bracket == '{' ? '}' : ']')) {
    --depth_;
    return false;
  }
  return was_first ? ok() : Take(',') || Fail("expected a comma or the end");
}

bool JsonReader::TakeKey(std::string* key) {
  if (Peek() != '"') return Fail("expected a name in quotes");
  return TakeString(key) && (Take(':') || Fail("expected a colon"));
}

bool JsonReader::TakeString(std::string* text) {
  if (!Take('"')) return Fail("expected a string");
  token_ = at_ - 1;
  const auto add = [&](std::size_t end) {
    if (text != nullptr) text->append(text_, at_, end - at_);
    at_ = end;
  };
  std::size_t plain = PlainEnd(text_, at_);
  if (text != nullptr) {
    text->clear();
    // At once: where it grew, a piece of a secret would be left.
    if (plain < text_.size() && text_[plain] != '"') text->reserve(StringEnd(text_, plain) - at_);
  }
  for (;; plain = PlainEnd(text_, at_)) {
    add(plain);
    if (at_ == text_.size()) return Fail("a string breaks off");
    const char c = text_[at_];
    if (c == '"') break;
    if (c == '\\') {
      if (!Escape(text)) return false;
      continue;
    }
    const std::size_t size = Utf8SequenceLength(text_.substr(at_));
    if (size == 0) return Fail("invalid UTF-8");
    if (size == 1 && c < 0x20) return Fail("a control character in a string");
    add(at_ + size);
  }
  ++at_;
  return true;
}

bool JsonReader::Hex4(std::uint32_t& unit) {
  const std::string_view digits = text_.substr(at_, 4);
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, unit, 16);
  if (digits.size() != 4 || error != std::errc() || stop != end) return Fail("invalid \\u");
  at_ += 4;
  return true;
}

bool JsonReader::Escape(std::string* text) {
  constexpr std::string_view kFrom = "\"\\/bfnrt";
  constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  const std::string_view name = text_.substr(at_ + 1, 1);
  if (name.empty()) return Fail("a string breaks off");
  if (const auto i = kFrom.find(name); i != std::string_view::npos) {
    if (text != nullptr) *text += kTo[i];
    at_ += 2;
    return true;
  }
  if (name != "u") return Fail("invalid escape");
  at_ += 2;
  std::uint32_t unit = 0;
  if (!Hex4(unit)) return false;
  if (unit >= 0xD800 && unit < 0xE000) {
    std::uint32_t low = 0;
    if (unit >= 0xDC00 || text_.substr(at_, 2) != "\\u") return Fail("half a surrogate pair");
    at_ += 2;
    if (!Hex4(low)) return false;
    if (low < 0xDC00 || low >= 0xE000) return Fail("half a surrogate pair");
    unit = 0x10000 + ((unit - 0xD800) << 10U) + (low - 0xDC00);
  }
  if (text != nullptr) AppendUtf8(*text, unit);
  return true;
}

std::string_view JsonReader::Digits(std::string_view expected) {
  if (!ok()) return {};
  Peek();
  std::size_t end = at_;
  const auto is = [&](std::string_view any) {
    return end < text_.size() && any.find(text_[end]) != std::string_view::npos;
  };
  const auto digits = [&] {
    const std::size_t before = end;
    while (is("0123456789")) ++end;
    return end > before;
  };
  if (is("-")) ++end;
  const bool zero = is("0");
  const std::size_t whole = end;
  bool sound = digits() && (!zero || end == whole + 1);
  if (sound && is(".")) sound = (++end, digits());
  if (sound && is("eE")) {
    ++end;
    if (is("+-")) ++end;
    sound = digits();
  }
  if (!sound) {
    Fail(expected);
    return {};
  }
  token_ = at_;
  at_ = end;
  return text_.substr(token_, end - token_);
}

bool JsonReader::Skip(std::string_view& json) {
  Peek();
  const std::size_t begin = at_;
  const int outside = depth_;
  char open[waybill::kMaxJsonDepth];
  bool first = true;
  // A value, then what stands behind it: by a stack of brackets, not by recursion.
  do {
    if (const int c = Peek(); c == '{' || c == '[') {
      const char bracket = c == '{' ? '{' : '[';
      if (!Open(bracket)) return false;
      open[depth_ - outside - 1] = bracket;
      first = true;
    } else if (c == '"') {
      TakeString(nullptr);
    } else if (!Word("true") && !Word("false") && !Null()) {
      Digits("expected a value");
    }
    while (depth_ > outside && !More(open[depth_ - outside - 1], first) && ok()) {
    }
    if (depth_ > outside && ok() && open[depth_ - outside - 1] == '{') TakeKey(nullptr);
  } while (depth_ > outside && ok());
  json = text_.substr(begin, at_ - begin);
  return ok();
}

bool JsonReader::Afford(std::size_t bytes) {
  if (bytes > memory_)
    return Fail("too many elements for so short a text", ErrorCode::kLimitExceeded);
  memory_ -= bytes;
  return true;
}

}  // namespace waybill::internal
