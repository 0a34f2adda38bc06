// A trace, and a kubelet's message that becomes an event of one: no crash, whatever the bytes are;
// a bad line costs that line alone; what was read is within bounds, and comes back when it is
// written.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "bindings/cli/pull_message.h"
#include "store/base/trace.h"
#include "waybill/limits.h"

namespace {

void Must(bool held) {
  if (!held) std::abort();
}

void Judge(const waybill::TraceEvent& event) {
  Must(event.image.size() <= waybill::kMaxImageBytes);
  Must(event.ref.size() <= waybill::kMaxImageRefBytes);
  Must(event.credentials.size() <= waybill::kMaxTraceCredentials);
  const std::string line = waybill::TraceLine(event);
  Must(line.size() <= waybill::kMaxTraceLineBytes);
  const auto again = waybill::ParseTraceLine(line);
  Must(again.has_value() && *again == event);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string header = waybill::TraceHeaderLine("generated");
  for (const std::string& trace : {text, header + text}) {
    auto reader = waybill::TraceReader::OfText(trace);
    Must(reader.has_value() || !trace.starts_with(header));
    // Each call takes a line.
    for (std::size_t left = size + 2; reader && left > 0; --left) {
      const auto event = reader->Next();
      if (event && !*event) break;
      if (event) Judge(**event);
      Must(left > 1);
    }
  }
  for (const char* reason : {"Pulling", "Pulled", "Failed"}) {
    const auto pull = waybill::cli::ParsePullMessage(reason, text);
    if (pull) Must(!pull->image.empty() && pull->took_ms.value_or(0) >= 0);
  }
  return 0;
}
