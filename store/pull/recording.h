// The steps of a pull, each inside one transaction (KEP-2535, "Writing to the Cache").
// Arguments are within limits.h. Runtime handlers are as stored: "" for the default one.

#ifndef WAYBILL_STORE_PULL_RECORDING_H_
#define WAYBILL_STORE_PULL_RECORDING_H_

#include <optional>
#include <string_view>

#include "store/database/store_txn.h"
#include "store/pull/in_flight.h"
#include "waybill/result.h"
#include "waybill/rules.h"
#include "waybill/types.h"

namespace waybill::internal {

Result<void> RecordIntent(StoreTxn& txn, InFlight& in_flight, std::string_view image,
                          std::string_view runtime_handler);

// A pull that succeeded.
struct PulledImage {
  std::string_view image;
  std::string_view image_name;  // of `image`
  std::string_view image_ref;
  std::string_view runtime_handler;
  const std::optional<ImagePullCredentials>& credentials;
  const std::optional<PulledManifest>& manifest;
  const std::optional<Platform>& guest_platform;  // of the handler
};
Result<void> RecordPulled(StoreTxn& txn, InFlight& in_flight, Rules rules,
                          const PulledImage& pulled);

// A failed pull. `may_still_arrive`: its outcome is unknown.
Result<void> RecordFailed(StoreTxn& txn, InFlight& in_flight, Rules rules, std::string_view image,
                          std::string_view runtime_handler, bool may_still_arrive);

// Deletes the intent. While a pull of `image` is in flight, the intent stays until that pull ends,
// but no longer.
Result<void> ForgetIntent(StoreTxn& txn, InFlight& in_flight, std::string_view image,
                          std::string_view runtime_handler);

// Stores a pod's secret that matched the entry of `image_name` by its hash or by its coordinates
// alone. Checks again: writes nothing if the record is gone, the secret no longer matches or the
// entry is full.
Result<void> WriteBack(StoreTxn& txn, std::string_view image_name, std::string_view image_ref,
                       std::string_view runtime_handler, const ImagePullSecret& secret);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PULL_RECORDING_H_
