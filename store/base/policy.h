// Which images need their pull credentials verified: the kubelet's imagePullCredentialsVerification
// Policy and its allowlist (KEP-2535, "Credential Verification Policies").

#ifndef WAYBILL_STORE_BASE_POLICY_H_
#define WAYBILL_STORE_BASE_POLICY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

// What an allowlist pattern opens. The kubelet's code compares names alone; KEP-2535 speaks of
// images that the kubelet did not pull.
enum class AllowlistScope : std::uint8_t { kAnyImage, kPreloadedOnly };

// What is known of an image's origin when the policy is asked.
enum class ImageOrigin : std::uint8_t {
  kKubeletPulled,  // a record exists; Mode::kKubelet: or an intent
  kPreloaded,      // Mode::kKubelet: neither exists, and nothing was lost. Mode::kStrict: it is in
                   // the ledger
  kUnknown,        // neither is known
};

// Which proofs count, by who checked the credential (VerifiedBy). Kubelets count any.
enum class Proofs : std::uint8_t {
  kAny,
  // Only those that the registry checked. With any other the image is pulled again instead of
  // opened. That does not make the mirror ask: it still gives the image to whoever pulls.
  kRegistry,
};

// Of the images that a pattern names. `pattern`: as in an allowlist; empty: all that no other rule
// names.
struct ProofRule {
  std::string pattern = {};
  Proofs proofs = Proofs::kAny;

  friend bool operator==(const ProofRule&, const ProofRule&) = default;
};

// A policy with its allowlist, validated once. Immutable; safe to read from any thread.
class VerificationPolicy {
 public:
  // NeverVerifyPreloadedImages, the kubelet's default.
  VerificationPolicy() = default;

  // `patterns` are image names, or prefixes that end in "/*". kInvalidArgument, naming the pattern
  // and the reason, for: leading or trailing white space, an empty pattern, '*' anywhere but in a
  // final "/*", a bare "/*", a tag or digest, a name that does not parse; and for any pattern
  // beside a mode other than kNeverVerifyAllowlistedImages. kLimitExceeded above
  // kMaxAllowlistPatterns. What stands before "/*" is not parsed (kubelet behaviour).
  static Result<VerificationPolicy> Make(Verification mode, std::vector<std::string> patterns,
                                         AllowlistScope scope = AllowlistScope::kAnyImage);

  // The same policy with other rules for proofs. Of several that name an image, that with its very
  // name counts, else that with the longest prefix. kInvalidArgument, naming the pattern: one that
  // Make would refuse, or that two rules have. kLimitExceeded above kMaxAllowlistPatterns.
  Result<VerificationPolicy> WithProofs(const std::vector<ProofRule>& rules) const;

  // Whether a proof that `checker` checked counts under the image name. Allocates nothing.
  bool ProofCounts(std::string_view image_name, VerifiedBy checker) const;
  // Whether only the registry's do. Allocates nothing.
  bool CountsOnlyRegistry(std::string_view image_name) const {
    return !ProofCounts(image_name, VerifiedBy::kUnknown);
  }
  // Whether some proof may not count.
  bool chooses_proofs() const { return !proofs_.empty(); }

  // What it was made of, sorted.
  std::vector<std::string> patterns() const;
  const std::map<std::string, Proofs, std::less<>>& proofs() const { return proofs_; }

  Verification mode() const { return mode_; }
  AllowlistScope scope() const { return scope_; }

  // Whether a pod's credentials must be verified. `image_name` is the image name, or the whole
  // image string if that does not parse. Allocates nothing.
  bool RequiresVerification(std::string_view image_name, ImageOrigin origin) const;

 private:
  bool Allowlisted(std::string_view image_name) const;

  Verification mode_ = Verification::kNeverVerifyPreloadedImages;
  AllowlistScope scope_ = AllowlistScope::kAnyImage;
  std::vector<std::string> names_;     // sorted
  std::vector<std::string> prefixes_;  // sorted, ending in '/'
  // By name, by prefix that ends in '/', and under "" for the rest. Empty: any counts everywhere.
  std::map<std::string, Proofs, std::less<>> proofs_;
};

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_POLICY_H_
