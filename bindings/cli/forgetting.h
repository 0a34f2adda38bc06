// What `forget` and `reconcile` share.

#ifndef WAYBILL_BINDINGS_CLI_FORGETTING_H_
#define WAYBILL_BINDINGS_CLI_FORGETTING_H_

#include <vector>

#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {

inline std::vector<Field> CountsOf(const RevokeReport& report, std::vector<Field> before = {}) {
  return FieldsOf(report,
                  {{"images", "records"},
                   {"secrets", "secrets forgotten"},
                   {"serviceAccounts", "service accounts forgotten"},
                   {"everyPod", "image names closed that were open to all"},
                   {"equalHashes", "equal credentials that stay elsewhere"},
                   {"stored", ""}},
                  std::move(before));
}

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_FORGETTING_H_
