#include "store/door/settings.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "store/base/try.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kAll = "*";

bool Contains(const std::vector<std::string>& patterns, std::string_view one) {
  return std::find(patterns.begin(), patterns.end(), one) != patterns.end();
}

// Each of `some` is one of `all`.
bool AreAmong(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  return std::all_of(some.begin(), some.end(),
                     [&](const std::string& one) { return Contains(all, one); });
}

bool IsNoLaxer(const Policy& mine, const Policy& owners) {
  if (!Contains(mine.registry_only, kAll) && !AreAmong(owners.registry_only, mine.registry_only)) {
    return false;
  }
  if (mine.verification == Verification::kAlwaysVerify ||
      owners.verification == Verification::kNeverVerify) {
    return true;
  }
  return mine.verification == owners.verification && AreAmong(mine.allowlist, owners.allowlist) &&
         (mine.allowlist_preloaded_only || !owners.allowlist_preloaded_only);
}

bool IsNoLonger(std::chrono::seconds mine, std::chrono::seconds owners) {
  return owners.count() == 0 || (mine.count() != 0 && mine <= owners);
}

}  // namespace

Result<VerificationPolicy> PolicyOf(const Policy& policy) {
  auto made =
      TRY(VerificationPolicy::Make(policy.verification, policy.allowlist,
                                   policy.allowlist_preloaded_only ? AllowlistScope::kPreloadedOnly
                                                                   : AllowlistScope::kAnyImage));
  if (policy.registry_only.empty()) return made;
  std::vector<ProofRule> rules;
  for (const std::string& pattern : policy.registry_only) {
    rules.push_back({pattern == kAll ? "" : pattern, Proofs::kRegistry});
  }
  return made.WithProofs(rules);
}

std::optional<AgeLimits> AgesOf(const Settings& settings) {
  if (settings.max_age_seconds == 0) return std::nullopt;
  // Above any bound it is refused, and must not wrap around.
  const auto most = static_cast<std::uint64_t>(kMaxAge.count()) + 1;
  const std::chrono::seconds age(std::min(settings.max_age_seconds, most));
  return AgeLimits{.credentials = age, .node_pods = age};
}

bool IsNoLaxer(const Settings& mine, std::string_view announced) {
  const bool decides = !announced.starts_with(kDecidesNothing);
  if (!decides) announced.remove_prefix(1);
  if (!decides && announced.empty()) return true;
  Settings owners;
  if (!FromJson(announced, owners, Strangers::kRefuse).empty()) return false;
  if (!decides) return true;
  return (mine.mode == Mode::kStrict || owners.mode == Mode::kKubelet) &&
         IsNoLaxer(mine.policy, owners.policy);
}

bool IsNoLaxer(const AgeLimits& mine, const AgeLimits& owners) {
  const auto of_accounts = [](const AgeLimits& ages) {
    return ages.service_accounts.count() == 0 ? ages.credentials : ages.service_accounts;
  };
  return IsNoLonger(mine.credentials, owners.credentials) &&
         IsNoLonger(of_accounts(mine), of_accounts(owners)) &&
         IsNoLonger(mine.node_pods, owners.node_pods);
}

}  // namespace waybill::internal
