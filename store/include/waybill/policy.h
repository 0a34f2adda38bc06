// Which images need their pull credentials verified: the kubelet's imagePullCredentialsVerification
// Policy and its allowlist (KEP-2535, "Credential Verification Policies").

#ifndef WAYBILL_POLICY_H_
#define WAYBILL_POLICY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

// The kubelet's imagePullCredentialsVerificationPolicy.
enum class VerificationMode : std::uint8_t {
  kNeverVerify,
  kNeverVerifyPreloadedImages,  // the kubelet's default
  kNeverVerifyAllowlistedImages,
  kAlwaysVerify,
};

// "NeverVerifyPreloadedImages", as the kubelet's configuration spells it.
std::string_view VerificationModeName(VerificationMode mode);
// kInvalidArgument for any other spelling; the text lists the four.
Result<VerificationMode> ParseVerificationMode(std::string_view name);

// What an allowlist pattern opens. The kubelet's code compares names alone; KEP-2535 speaks of
// images that the kubelet did not pull.
enum class AllowlistScope : std::uint8_t { kAnyImage, kPreloadedOnly };

// What is known of an image's origin when the policy is asked.
enum class ImageOrigin : std::uint8_t {
  kKubeletPulled,  // a record exists; Rules::kKubelet: or an intent
  kPreloaded,  // Rules::kKubelet: neither exists, and nothing was lost. Rules::kClosed: it is in
               // the ledger
  kUnknown,    // neither is known
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
  static Result<VerificationPolicy> Make(VerificationMode mode, std::vector<std::string> patterns,
                                         AllowlistScope scope = AllowlistScope::kAnyImage);

  VerificationMode mode() const { return mode_; }
  AllowlistScope scope() const { return scope_; }

  // Whether a pod's credentials must be verified. `image_name` is the image name, or the whole
  // image string if that does not parse. Allocates nothing.
  bool RequiresVerification(std::string_view image_name, ImageOrigin origin) const;

 private:
  bool Allowlisted(std::string_view image_name) const;

  VerificationMode mode_ = VerificationMode::kNeverVerifyPreloadedImages;
  AllowlistScope scope_ = AllowlistScope::kAnyImage;
  std::vector<std::string> names_;     // sorted
  std::vector<std::string> prefixes_;  // sorted, ending in '/'
};

}  // namespace waybill

#endif  // WAYBILL_POLICY_H_
