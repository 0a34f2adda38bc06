// What the parts of the model share about proofs.

#ifndef WAYBILL_TESTS_SUPPORT_MODEL_PROOFS_H_
#define WAYBILL_TESTS_SUPPORT_MODEL_PROOFS_H_

#include <optional>
#include <vector>

#include "tests/support/model.h"

namespace waybill::testing {

// The proof of what the secret matches, of those that count: by its hash, or else, if it may, by
// its coordinates. nullopt: it matches none.
template <typename Counts, typename Better>
std::optional<Proof> FindProofOfMatch(const std::vector<ImagePullSecret>& stored,
                                      const ImagePullSecret& secret, const Counts& counts,
                                      const Better& better, bool may_by_coordinates = true) {
  std::optional<Proof> by_hash;
  std::optional<Proof> by_coordinates;
  for (const ImagePullSecret& one : stored) {
    if (!counts(one)) continue;
    if (!one.credential_hash.empty() && one.credential_hash == secret.credential_hash) {
      by_hash = by_hash ? better(*by_hash, one.proof) : one.proof;
    }
    if (may_by_coordinates && SameCoordinates(one, secret)) by_coordinates = one.proof;
  }
  return by_hash ? by_hash : by_coordinates;
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_MODEL_PROOFS_H_
