// Metrics as tests ask for them.

#ifndef WAYBILL_TESTS_SUPPORT_METRICS_H_
#define WAYBILL_TESTS_SUPPORT_METRICS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/metrics.h"

namespace waybill::testing {

using Metrics = std::vector<MetricFamily>;

// Of the series with these values of its labels, in their order. 0: there is no such series.
inline double ValueOf(const Metrics& metrics, std::string_view name,
                      std::initializer_list<std::string_view> values = {}) {
  const auto family = std::ranges::find(metrics, name, &MetricFamily::name);
  if (family == metrics.end()) return 0;
  const auto has_values = [&](const MetricFamily::Series& series) {
    return std::ranges::equal(series.labels, values, {},
                              [](const auto& label) { return std::string_view(label.second); });
  };
  const auto series = std::ranges::find_if(family->series, has_values);
  return series == family->series.end() ? 0 : series->value;
}

// What the kubelet counts.
struct Counted {
  std::array<std::uint64_t, 5> mustpull_checks{};  // by CheckResult
  EnsureImageRequests ensure_image_requests{};
};
inline Counted CountedIn(const Metrics& metrics) {
  Counted counted;
  for (const MetricFamily& family : metrics) {
    for (std::size_t i = 0; i < family.series.size(); ++i) {
      const auto value = static_cast<std::uint64_t>(family.series[i].value);
      if (family.name == "kubelet_imagemanager_image_mustpull_checks_total") {
        counted.mustpull_checks.at(i + 1) = value;
      } else if (family.name == "kubelet_image_manager_ensure_image_requests_total") {
        counted.ensure_image_requests.at(i / 9).at(i / 3 % 3).at(i % 3) = value;
      }
    }
  }
  return counted;
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_METRICS_H_
