#include "store/door/settings.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "store/base/try.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kAll = "*";

}  // namespace

Result<VerificationPolicy> PolicyOf(const Policy& policy) {
  auto made =
      TRY(VerificationPolicy::Make(policy.verification, policy.allowlist,
                                   policy.allowlist_preloaded_only ? AllowlistScope::kPreloadedOnly
                                                                   : AllowlistScope::kAnyImage));
  std::vector<ProofRule> rules;
  for (const auto& [patterns, proofs] :
       {std::pair(&policy.registry_only, Proofs::kRegistry), {&policy.any_proof, Proofs::kAny}}) {
    for (const std::string& pattern : *patterns) {
      rules.push_back({pattern == kAll ? "" : pattern, proofs});
    }
  }
  return made.WithProofs(rules);
}

std::optional<std::chrono::seconds> MaxAgeOf(const Settings& settings) {
  if (settings.max_age_seconds == 0) return std::nullopt;
  // Above any bound it is refused, and must not wrap around.
  const auto most = static_cast<std::uint64_t>(kMaxAge.count()) + 1;
  return std::chrono::seconds(std::min(settings.max_age_seconds, most));
}

Chosen Chosen::Of(std::string_view text, std::uint64_t hash) {
  Chosen chosen{.hash = hash};
  if (text.empty()) return chosen;
  if (FromJson(text, chosen.settings, Strangers::kRefuse).empty()) {
    if (auto policy = PolicyOf(chosen.settings.policy)) {
      chosen.policy = *std::move(policy);
      return chosen;
    }
  }
  chosen.settings = {.policy = {.verification = Verification::kAlwaysVerify,
                                .registry_only = {std::string(kAll)}}};
  chosen.policy = PolicyOf(chosen.settings.policy).value();
  return chosen;
}

}  // namespace waybill::internal
