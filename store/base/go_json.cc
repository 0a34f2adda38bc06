#include "store/base/go_json.h"

namespace waybill {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
// Bytes with a short escape, and its letter.
constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
constexpr std::string_view kLetters = "\"\\bfnrt";

void AppendAscii(unsigned char byte, std::string& out) {
  if (const auto at = kEscaped.find(static_cast<char>(byte)); at != std::string_view::npos) {
    out += '\\';
    out += kLetters[at];
    return;
  }
  if (byte >= 0x20 && byte != '<' && byte != '>' && byte != '&') {
    out += static_cast<char>(byte);
    return;
  }
  out += "\\u00";
  out += kHexDigits[byte >> 4];
  out += kHexDigits[byte & 0xf];
}

}  // namespace

std::size_t Utf8SequenceLength(std::string_view text) {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = at(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  for (std::size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned second = at(1);  // overlong, surrogates, above U+10FFFF
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
  return size;
}

std::size_t ValidUtf8Prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = Utf8SequenceLength(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

void AppendGoJsonString(std::string_view text, std::string& out) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = Utf8SequenceLength(text);
    if (length == 0) {
      out += "\\ufffd";
      text.remove_prefix(1);
      continue;
    }
    const std::string_view sequence = text.substr(0, length);
    if (length == 1) {
      AppendAscii(static_cast<unsigned char>(sequence[0]), out);
    } else if (sequence == "\u2028") {
      out += "\\u2028";
    } else if (sequence == "\u2029") {
      out += "\\u2029";
    } else {
      out += sequence;
    }
    text.remove_prefix(length);
  }
  out += '"';
}

}  // namespace waybill
