// waybill metrics: the metrics of KEP-2535 under the kubelet's names.

#include "bindings/cli/command.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

Json ChecksJson(const Metrics& metrics) {
  Json checks = Json::object();
  for (std::size_t i = 0; i < metrics.mustpull_checks.size(); ++i) {
    const std::string_view label = CheckResultName(static_cast<CheckResult>(i));
    if (!label.empty()) checks[std::string(label)] = metrics.mustpull_checks[i];
  }
  return checks;
}

Json RequestsJson(const Metrics& metrics) {
  constexpr const char* kPolicies[] = {"always", "ifnotpresent", "never"};
  constexpr const char* kTruth[] = {"false", "true", "unknown"};
  Json requests = Json::array();
  for (std::size_t policy = 0; policy < 3; ++policy) {
    for (std::size_t present = 0; present < 3; ++present) {
      for (std::size_t required = 0; required < 3; ++required) {
        requests.push_back({{"pull_policy", kPolicies[policy]},
                            {"present_locally", kTruth[present]},
                            {"pull_required", kTruth[required]},
                            {"value", metrics.ensure_image_requests[policy][present][required]}});
      }
    }
  }
  return requests;
}

class MetricsCommand final : public Command {
 public:
  std::string name() const override { return "metrics"; }
  std::string summary() const override { return "write metrics as Prometheus text"; }
  std::string notes() const override {
    return R"(Counters belong to a process. This command makes no decisions, so its counters are 0;
ask the component that has the store open for its own. The gauges are the store's.)";
  }

  void Declare(Flags& flags) override { store_.Declare(flags); }

  Result<ExitCode> Run(Output& out) override {
    if (auto parsed = store_.Parse(); !parsed) return parsed.error();
    auto got = WithStore(ObserveStore(store_), [](const NodeStore& store) {
      return Result<Metrics>(store.GetMetrics());
    });
    if (!got) return got.error();
    const Metrics& metrics = *got;
    if (!out.json()) {
      out.WriteRaw(metrics.ToPrometheusText());
      return ExitCode::kYes;
    }
    out.WriteJson(
        {{"kubelet_imagemanager_image_mustpull_checks_total", ChecksJson(metrics)},
         {"kubelet_image_manager_ensure_image_requests_total", RequestsJson(metrics)},
         {"kubelet_imagemanager_ondisk_pullintents", metrics.ondisk_pullintents},
         {"kubelet_imagemanager_ondisk_pulledrecords", metrics.ondisk_pulledrecords},
         {"kubelet_imagemanager_inmemory_pullintents_usage_percent",
          metrics.inmemory_pullintents_usage_percent},
         {"kubelet_imagemanager_inmemory_pulledrecords_usage_percent",
          metrics.inmemory_pulledrecords_usage_percent},
         {"waybill_nondefault_runtime_handler_images", metrics.nondefault_runtime_handler_images},
         {"waybill_preloaded_images", metrics.preloaded_images},
         {"waybill_open_pulls", metrics.open_pulls}});
    return ExitCode::kYes;
  }

 private:
  StoreFlags store_;
};

}  // namespace

std::unique_ptr<Command> MakeMetricsCommand() { return std::make_unique<MetricsCommand>(); }

}  // namespace waybill::cli
