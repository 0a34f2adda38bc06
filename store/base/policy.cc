
#include "store/base/policy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "store/base/caught.h"
#include "store/base/image_name.h"
#include "store/base/quote.h"
#include "store/base/words.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::QuoteForMessage;

constexpr std::string_view kListHint =
    "write an image name, or a prefix of one that ends in \"/*\"";

// Unicode's white space, in UTF-8.
constexpr std::array<std::string_view, 25> kSpaces = {
    "\t",     "\n",     "\v",     "\f",     "\r",     " ",      "\u0085", "\u00a0", "\u1680",
    "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008",
    "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

bool HasOuterSpace(std::string_view text) {
  return std::any_of(kSpaces.begin(), kSpaces.end(), [&](std::string_view space) {
    return text.starts_with(space) || text.ends_with(space);
  });
}

constexpr std::string_view kWildcard = "/*";

// Why `pattern` is refused; empty if it is not.
std::string_view Refusal(std::string_view pattern) {
  if (pattern.empty()) return "it is empty";
  if (HasOuterSpace(pattern)) return "white space stands at its begin or end";
  if (pattern == kWildcard) return "nothing stands before \"/*\"";
  const std::size_t star = pattern.find('*');
  if (star != std::string_view::npos) {
    const bool is_prefix = star + 1 == pattern.size() && pattern.ends_with(kWildcard);
    return is_prefix ? "" : "'*' may stand only in a \"/*\" at the end";
  }
  const auto name = ImageName(pattern);
  if (!name) return "it does not parse as an image name";
  if (*name != pattern) return "it has a tag or a digest";
  return "";
}

void SortUnique(std::vector<std::string>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

Result<VerificationPolicy> VerificationPolicy::Make(Verification mode,
                                                    std::vector<std::string> patterns,
                                                    AllowlistScope scope) try {
  if (patterns.size() > kMaxAllowlistPatterns) {
    return Error{ErrorCode::kLimitExceeded,
                 "an allowlist of " + std::to_string(patterns.size()) + " patterns is above the " +
                     std::to_string(kMaxAllowlistPatterns) + " allowed",
                 "replace names below one repository by one prefix that ends in \"/*\""};
  }
  if (mode != Verification::kNeverVerifyAllowlistedImages && !patterns.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "allowlist pattern " + QuoteForMessage(patterns.front()) +
                     " is refused: the policy " + std::string(WordOf(mode)) + " has no allowlist",
                 "remove the allowlist, or choose NeverVerifyAllowlistedImages"};
  }

  VerificationPolicy policy;
  policy.mode_ = mode;
  policy.scope_ = scope;
  for (std::string& pattern : patterns) {
    if (const std::string_view reason = Refusal(pattern); !reason.empty()) {
      return Error{
          ErrorCode::kInvalidArgument,
          "allowlist pattern " + QuoteForMessage(pattern) + " is refused: " + std::string(reason),
          std::string(kListHint)};
    }
    if (pattern.ends_with(kWildcard)) {
      pattern.pop_back();
      policy.prefixes_.push_back(std::move(pattern));
    } else {
      policy.names_.push_back(std::move(pattern));
    }
  }
  SortUnique(policy.names_);
  // Drops prefixes that a shorter one covers. Then only the greatest prefix not above a name can
  // match it.
  std::vector<std::string>& prefixes = policy.prefixes_;
  SortUnique(prefixes);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    if (kept != 0 && prefixes[i].starts_with(prefixes[kept - 1])) continue;
    if (kept != i) prefixes[kept] = std::move(prefixes[i]);
    ++kept;
  }
  prefixes.resize(kept);
  return policy;
} catch (...) {
  return internal::Caught();
}

std::vector<std::string> VerificationPolicy::patterns() const {
  std::vector<std::string> patterns = names_;
  for (const std::string& prefix : prefixes_) patterns.push_back(prefix + "*");
  return patterns;
}

Result<VerificationPolicy> VerificationPolicy::WithProofs(const std::vector<ProofRule>& rules) const
    try {
  if (rules.size() > kMaxAllowlistPatterns) {
    return Error{ErrorCode::kLimitExceeded, std::to_string(rules.size()) +
                                                " rules for proofs are above the " +
                                                std::to_string(kMaxAllowlistPatterns) + " allowed"};
  }
  VerificationPolicy policy = *this;
  policy.proofs_.clear();
  for (const ProofRule& rule : rules) {
    const std::string_view reason = rule.pattern.empty() ? "" : Refusal(rule.pattern);
    if (!reason.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   "the pattern " + QuoteForMessage(rule.pattern) +
                       " of a rule for proofs is refused: " + std::string(reason),
                   std::string(kListHint)};
    }
    std::string key = rule.pattern;
    if (key.ends_with(kWildcard)) key.pop_back();
    if (!policy.proofs_.emplace(std::move(key), rule.proofs).second) {
      return Error{ErrorCode::kInvalidArgument,
                   "two rules for proofs have the pattern " + QuoteForMessage(rule.pattern),
                   "leave one"};
    }
  }
  const auto is_any = [](const auto& rule) { return rule.second == Proofs::kAny; };
  if (std::ranges::all_of(policy.proofs_, is_any)) policy.proofs_.clear();
  return policy;
} catch (...) {
  return internal::Caught();
}

bool VerificationPolicy::ProofCounts(std::string_view image_name, VerifiedBy checker) const {
  if (proofs_.empty() || checker == VerifiedBy::kRegistry) return true;
  auto rule = proofs_.find(image_name);
  // Its prefixes, the longest first.
  for (std::size_t end = image_name.size(); rule == proofs_.end() && end > 0;) {
    end = image_name.rfind('/', end - 1);
    if (end == std::string_view::npos) break;
    rule = proofs_.find(image_name.substr(0, end + 1));
  }
  if (rule == proofs_.end()) rule = proofs_.find(std::string_view());
  return rule == proofs_.end() || rule->second == Proofs::kAny;
}

bool VerificationPolicy::RequiresVerification(std::string_view image_name,
                                              ImageOrigin origin) const {
  const bool preloaded = origin == ImageOrigin::kPreloaded;
  switch (mode_) {
    case Verification::kNeverVerify:
      return false;
    case Verification::kNeverVerifyPreloadedImages:
      return !preloaded;
    case Verification::kNeverVerifyAllowlistedImages:
      return (scope_ == AllowlistScope::kPreloadedOnly && !preloaded) || !Allowlisted(image_name);
    case Verification::kAlwaysVerify:
      return true;
  }
  return true;
}

bool VerificationPolicy::Allowlisted(std::string_view image_name) const {
  if (std::binary_search(names_.begin(), names_.end(), image_name)) return true;
  const auto above = std::upper_bound(prefixes_.begin(), prefixes_.end(), image_name);
  return above != prefixes_.begin() && image_name.starts_with(*std::prev(above));
}

}  // namespace waybill
