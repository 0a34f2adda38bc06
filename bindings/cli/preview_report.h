// The report of `waybill preview`: a table, or JSON.

#ifndef WAYBILL_BINDINGS_CLI_PREVIEW_REPORT_H_
#define WAYBILL_BINDINGS_CLI_PREVIEW_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/cli/output.h"
#include "bindings/cli/preview.h"

namespace waybill::cli {

struct PreviewContext {
  std::vector<PreviewedPolicy> policies = {};  // as they were asked for
  bool registry_down = false;
  std::uint32_t migrated_from = 0;  // the store's schema version, if it is older
};

void WritePreview(const Preview& preview, const PreviewContext& context, Output& out);

// One pod's containers; also for `waybill explain --pod`.
Json JsonOf(const PodForecast& pod, const std::vector<PreviewedPolicy>& policies);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PREVIEW_REPORT_H_
