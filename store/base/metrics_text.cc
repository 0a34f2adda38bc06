// Prometheus' text exposition format.

#include <charconv>
#include <cmath>

#include "store/base/metrics.h"

namespace waybill {

namespace {

void AppendValue(double value, std::string& out) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  char digits[64];
  const bool whole = value == std::floor(value) && std::abs(value) < kExact;
  const char* const end =
      whole ? std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(value)).ptr
            : std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, static_cast<std::size_t>(end - digits));
}

void AppendLabel(const std::pair<std::string, std::string>& label, std::string& out) {
  out += label.first + "=\"";
  for (const char c : label.second) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

std::string ToPrometheusText(const std::vector<MetricFamily>& families) {
  std::string out;
  for (const MetricFamily& family : families) {
    out += "# HELP " + family.name + " " + family.help + "\n";
    out += "# TYPE " + family.name + " " + family.type + "\n";
    for (const MetricFamily::Series& series : family.series) {
      out += family.name;
      for (std::size_t i = 0; i < series.labels.size(); ++i) {
        out += i == 0 ? '{' : ',';
        AppendLabel(series.labels[i], out);
      }
      if (!series.labels.empty()) out += '}';
      out += ' ';
      AppendValue(series.value, out);
      out += '\n';
    }
  }
  return out;
}

}  // namespace waybill
