// waybill metrics: what a store counts and holds, for Prometheus.

#include <cmath>

#include "bindings/cli/command.h"
#include "bindings/cli/store_access.h"
#include "store/base/metrics.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

Json ValueJson(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value == std::floor(value) && std::abs(value) < kExact) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

// A number; with labels, an object for each series.
Json SeriesJson(const MetricFamily& family) {
  Json all = Json::array();
  for (const MetricFamily::Series& series : family.series) {
    if (series.labels.empty()) return ValueJson(series.value);
    Json one = Json::object();
    for (const auto& [name, value] : series.labels) one[name] = value;
    one["value"] = ValueJson(series.value);
    all.push_back(std::move(one));
  }
  return all;
}

class MetricsCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override { store_.Declare(flags); }

  Result<ExitCode> Run(Output& out) override {
    auto got = TRY(WithStore(ObserveStore(store_), [](const NodeStore& store) {
      // Where the store can't be read, this says why.
      auto statistics = store.GetStatistics();
      using Families = Result<std::vector<MetricFamily>>;
      return statistics ? Families(store.GetMetrics()) : Families(statistics.error());
    }));
    if (!out.json()) {
      out.WriteRaw(ToPrometheusText(got));
      return ExitCode::kYes;
    }
    Json json = Json::object();
    for (const MetricFamily& family : got) json[family.name] = SeriesJson(family);
    out.WriteJson(json);
    return ExitCode::kYes;
  }
};

}  // namespace

Command MetricsCommand() {
  return {
      .name = "metrics",
      .task = kTaskLook,
      .summary = "write metrics as Prometheus text",
      .notes =
          R"(As the store knows them: counters, and what is under the kubelet's names, are in the
memory of the process that owns the store. Ranges of host IDs are those of the owner's pool.)",
      .examples = R"(waybill metrics > waybill.prom.new && mv waybill.prom.new waybill.prom)",
      .call = New<MetricsCall>};
}

}  // namespace waybill::cli
