// What the parts of the model share about proofs.

#ifndef WAYBILL_TESTS_SUPPORT_MODEL_PROOFS_H_
#define WAYBILL_TESTS_SUPPORT_MODEL_PROOFS_H_

#include <algorithm>
#include <optional>
#include <set>
#include <string>
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

inline bool HasCredentials(const ImagePulledRecord& record, const std::string& name) {
  const auto at = record.credential_mapping.find(name);
  return at != record.credential_mapping.end() &&
         at->second.kubernetes_secrets.size() + at->second.kubernetes_service_accounts.size() > 0;
}

// Whether a pod needed a credential for it once: one was on record.
inline bool IsPrivate(const ImagePulledRecord& record, const std::string& name) {
  const auto& names = record.private_names;
  return HasCredentials(record, name) || std::find(names.begin(), names.end(), name) != names.end();
}

// `now` comes after `was`: what was private stays so.
inline void StaysPrivate(const ImagePulledRecord& was, ImagePulledRecord& now) {
  std::set<std::string> names(now.private_names.begin(), now.private_names.end());
  names.insert(was.private_names.begin(), was.private_names.end());
  for (const auto& [name, entry] : was.credential_mapping) names.insert(name);
  std::erase_if(names, [&](const std::string& name) {
    return HasCredentials(now, name) || !(IsPrivate(was, name) || IsPrivate(now, name));
  });
  now.private_names.assign(names.begin(), names.end());
}

inline void DropCredentials(ImagePulledRecord& record) {
  const ImagePulledRecord was = record;
  record.credential_mapping.clear();
  StaysPrivate(was, record);
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_MODEL_PROOFS_H_
