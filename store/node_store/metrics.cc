// Metrics as Prometheus text, under the names and labels of the kubelet's code (which has one more
// underscore in kubelet_image_manager_ensure_image_requests_total than the text of KEP-2535).

#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "waybill/decision.h"
#include "waybill/report.h"

namespace waybill {

namespace {

constexpr std::array<std::string_view, 3> kPullPolicyLabels = {"always", "ifnotpresent", "never"};
constexpr std::array<std::string_view, 3> kTruthLabels = {"false", "true", "unknown"};

void Header(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out += "# HELP " + std::string(name) + " " + std::string(help) + "\n";
  out += "# TYPE " + std::string(name) + " " + std::string(type) + "\n";
}

void Gauge(std::string& out, std::string_view name, std::string_view help, double value) {
  Header(out, name, "gauge", help);
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  out += std::string(name) + " " + std::string(digits, end) + "\n";
}

}  // namespace

std::string Metrics::ToPrometheusText() const {
  std::string out;
  constexpr std::string_view kChecks = "kubelet_imagemanager_image_mustpull_checks_total";
  Header(out, kChecks, "counter", "Checks whether an image must be pulled, by result.");
  for (std::size_t i = 1; i < mustpull_checks.size(); ++i) {
    out += std::string(kChecks) + "{result=\"" +
           std::string(CheckResultName(static_cast<CheckResult>(i))) + "\"} " +
           std::to_string(mustpull_checks[i]) + "\n";
  }
  constexpr std::string_view kEnsure = "kubelet_image_manager_ensure_image_requests_total";
  Header(out, kEnsure, "counter",
         "Requests for an image, by pull policy, presence on the node, and whether a pull was "
         "needed.");
  for (std::size_t policy = 0; policy < 3; ++policy) {
    for (std::size_t present = 0; present < 3; ++present) {
      for (std::size_t required = 0; required < 3; ++required) {
        out += std::string(kEnsure) + "{pull_policy=\"" + std::string(kPullPolicyLabels[policy]) +
               "\",present_locally=\"" + std::string(kTruthLabels[present]) +
               "\",pull_required=\"" + std::string(kTruthLabels[required]) + "\"} " +
               std::to_string(ensure_image_requests[policy][present][required]) + "\n";
      }
    }
  }
  Gauge(out, "kubelet_imagemanager_ondisk_pullintents", "Pull intents on disk.",
        static_cast<double>(ondisk_pullintents));
  Gauge(out, "kubelet_imagemanager_ondisk_pulledrecords", "Pulled records on disk.",
        static_cast<double>(ondisk_pulledrecords));
  Gauge(out, "kubelet_imagemanager_inmemory_pullintents_usage_percent",
        "Images in flight, of the most there may be.", inmemory_pullintents_usage_percent);
  Gauge(out, "kubelet_imagemanager_inmemory_pulledrecords_usage_percent",
        "Pages of the memory map in use.", inmemory_pulledrecords_usage_percent);
  Gauge(out, "waybill_nondefault_runtime_handler_images",
        "Images on record under another runtime handler than the default (KEP-4216).",
        static_cast<double>(nondefault_runtime_handler_images));
  return out;
}

}  // namespace waybill
