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
  const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return 0;
  const unsigned char first = at(0);
  if (first < 0x80) return 1;

  std::size_t length = 0;
  // The range of the second byte excludes overlong forms, surrogates and all above U+10FFFF.
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    length = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  } else {
    return 0;
  }
  if (text.size() < length || at(1) < low || at(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (at(i) < 0x80 || at(i) > 0xbf) return 0;
  }
  return length;
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
