// The whole public interface.

#ifndef WAYBILL_WAYBILL_H_
#define WAYBILL_WAYBILL_H_

#if __cplusplus < 202002L
#error "waybill's headers need C++20, which is not this compiler's default: -std=c++20"
#endif

#include "waybill/calls.h"              // IWYU pragma: export
#include "waybill/credential_hash.h"    // IWYU pragma: export
#include "waybill/decision.h"           // IWYU pragma: export
#include "waybill/evidence.h"           // IWYU pragma: export
#include "waybill/image_index.h"        // IWYU pragma: export
#include "waybill/image_name.h"         // IWYU pragma: export
#include "waybill/kubelet_format.h"     // IWYU pragma: export
#include "waybill/limits.h"             // IWYU pragma: export
#include "waybill/maintenance.h"        // IWYU pragma: export
#include "waybill/metrics.h"            // IWYU pragma: export
#include "waybill/node_store.h"         // IWYU pragma: export
#include "waybill/options.h"            // IWYU pragma: export
#include "waybill/owner.h"              // IWYU pragma: export
#include "waybill/platform.h"           // IWYU pragma: export
#include "waybill/policy.h"             // IWYU pragma: export
#include "waybill/pull_sources.h"       // IWYU pragma: export
#include "waybill/rate_limit.h"         // IWYU pragma: export
#include "waybill/report.h"             // IWYU pragma: export
#include "waybill/result.h"             // IWYU pragma: export
#include "waybill/revocation.h"         // IWYU pragma: export
#include "waybill/rules.h"              // IWYU pragma: export
#include "waybill/runtime_handler.h"    // IWYU pragma: export
#include "waybill/store.h"              // IWYU pragma: export
#include "waybill/stream_url.h"         // IWYU pragma: export
#include "waybill/streaming.h"          // IWYU pragma: export
#include "waybill/streaming_plan.h"     // IWYU pragma: export
#include "waybill/streaming_request.h"  // IWYU pragma: export
#include "waybill/trace.h"              // IWYU pragma: export
#include "waybill/types.h"              // IWYU pragma: export
#include "waybill/user_namespace.h"     // IWYU pragma: export

#endif  // WAYBILL_WAYBILL_H_
