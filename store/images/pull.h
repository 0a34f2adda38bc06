// The steps of a pull, each inside one transaction (KEP-2535, "Writing to the Cache").
// Arguments are within limits.h. Runtime handlers are as stored: "" for the default one.

#ifndef WAYBILL_STORE_IMAGES_PULL_H_
#define WAYBILL_STORE_IMAGES_PULL_H_

#include <optional>
#include <string>
#include <string_view>

#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/images/image_row.h"
#include "store/images/images.h"
#include "store/images/in_flight.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

Result<PullId> RecordIntent(StoreTxn& txn, InFlight& in_flight, Mode mode, std::string_view image,
                            std::string_view runtime_handler, const BootTime& now);

// A pull that succeeded.
struct PulledImage {
  std::string_view image;
  std::string_view image_name;  // of `image`
  std::string_view image_ref;
  std::string_view runtime_handler;
  PullId pull;
  const std::optional<ImagePullCredentials>& credentials;
  const std::optional<ListedImage>& entry;  // the runtime's
  const std::optional<PulledManifest>& manifest;
  const std::optional<Platform>& guest_platform;  // of the handler
  const ProofTerms& terms;
  const VerificationPolicy& policy;
  BootTime now;
};
Result<void> RecordPulled(Images& images, InFlight& in_flight, const PulledImage& pulled);

// A pull that did not succeed. Mode::kKubelet treats all alike.
struct FailedPull {
  std::string_view image;
  std::string_view runtime_handler;
  PullId pull;
  PullOutcome outcome = PullOutcome::kUnknown;
  BootTime now;
  // The commit in which this process opened the store, and the last token that was drawn.
  std::uint64_t opened_at = 0;
  std::uint64_t last_token = 0;
};
Result<void> RecordFailed(StoreTxn& txn, InFlight& in_flight, Mode mode, const FailedPull& failed);

// An intent without a pull in flight, unless one runs. Mode::kKubelet: or there is one.
Result<void> StoreIntent(StoreTxn& txn, std::string_view image, std::string_view runtime_handler,
                         Mode mode, const BootTime& now);
// Deletes the open pulls of the string. While one is in flight in this process, the running ones
// stay until they end.
Result<void> ForgetIntent(StoreTxn& txn, const InFlight& in_flight, std::string_view image,
                          std::string_view runtime_handler);

// Gives the credentials of a record that a caller puts the proofs that PutImage says.
// Mode::kStrict: Secrets that are stored, of the same manifest and guest, stay where the caller
// has a pull without credentials in their place. `before`: what is stored for that handler.
Result<void> GiveProofs(const Images& images, ImageRow before, const ProofTerms& terms,
                        const VerificationPolicy& policy, PulledPart& put);

// A pod's secret that matched an entry by its hash or by its coordinates alone.
struct MatchedSecret {
  std::string image_name;
  std::string image_ref;
  std::string runtime_handler;
  bool only_registry = false;  // what else was checked does not count
  ImagePullSecret secret;      // its proof is that of what it matched
  // Mode::kKubelet: the record that was read, without credentials.
  std::optional<ImageRow> read = std::nullopt;
};

// Stores it. Checks again: writes nothing if the record is gone, the secret no longer matches or
// was forgotten, or the entry is full. `forgot`: something was forgotten since the decision read,
// so the secret is not stored. Mode::kKubelet: a record that is gone is stored again, as the
// kubelet does: the image was pulled, and must not pass for preloaded.
Result<void> WriteBack(Images& images, const MatchedSecret& matched, bool forgot);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_PULL_H_
