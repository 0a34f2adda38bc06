#include "bindings/c/call.h"

#include <algorithm>

namespace waybill::c {

waybill_code Fail(waybill_error** error, const Error& what) noexcept {
  const auto code = static_cast<waybill_code>(what.code);
  if (error == nullptr) return code;
  try {
    *error = NewResult<waybill_error>([&](waybill_error& e, Memory& memory) {
      const bool coded = what.hint_code != Hint::kNone;
      e = {code, static_cast<waybill_hint>(what.hint_code), Copy(what.message, memory),
           Copy(coded ? HintInC(what.hint_code) : what.hint, memory),
           static_cast<std::uint64_t>(what.retry_after.count())};
    });
  } catch (...) {
    *error = nullptr;  // no memory for the text: the caller gets the code alone
  }
  return code;
}

std::string_view Arguments::Text(waybill_string text, const char* name) {
  if (!IsText(text)) Wrong(name, "is a null pointer with a length");
  return View(text);
}

std::string Arguments::Path(waybill_string path, const char* name) {
  const std::string_view text = Text(path, name);
  if (text.find('\0') != std::string_view::npos) Wrong(name, "has a zero byte in it");
  return std::string(text);
}

std::vector<std::string> Arguments::Strings(waybill_strings strings, const char* name) {
  std::vector<std::string> result;
  for (const waybill_string& text : Array(strings.items, strings.count, name)) {
    result.push_back(String(text, name));
    if (!ok()) break;
  }
  return result;
}

void Arguments::Wrong(const char* name, const char* what) {
  if (error_) return;
  error_ = Error{ErrorCode::kInvalidArgument, std::string(name) + " " + what, {}};
}

bool Arguments::IsZero(const void* bytes, std::size_t from, std::size_t to) {
  const auto* const p = static_cast<const unsigned char*>(bytes);
  return std::all_of(p + from, p + to, [](unsigned char byte) { return byte == 0; });
}

}  // namespace waybill::c
