#include "store/base/quote.h"

#include "store/base/ascii.h"
#include "store/base/go_json.h"

namespace waybill::internal {

std::string QuoteForMessage(std::string_view text) {
  const bool cut = text.size() > kMaxQuotedBytes;
  if (cut) {
    std::size_t keep = kMaxQuotedBytes;
    // Do not cut a UTF-8 sequence.
    while (keep > 0 && (static_cast<unsigned char>(text[keep]) & 0xc0) == 0x80) --keep;
    text = text.substr(0, keep);
  }
  std::string json;
  AppendGoJsonString(text, json);
  // JSON does not escape DEL and the controls U+0080 to U+009F, which a terminal may obey.
  std::string quoted;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const auto byte = static_cast<unsigned char>(json[at]);
    if (byte == 0x7f) {
      quoted += "\\u007f";
    } else if (byte == 0xc2 && static_cast<unsigned char>(json[at + 1]) < 0xa0) {
      const auto control = static_cast<unsigned char>(json[++at]);
      quoted += control < 0x90 ? "\\u008" : "\\u009";
      quoted += "0123456789abcdef"[control & 0xf];
    } else {
      quoted += json[at];
    }
  }
  if (cut) quoted += "…";
  return quoted;
}

std::string ShownPodUid(std::string_view pod_uid) {
  const bool harmless = !pod_uid.empty() && IsMadeOf(pod_uid, "-_.");
  return harmless ? std::string(pod_uid) : QuoteForMessage(pod_uid);
}

}  // namespace waybill::internal
