#include "doctor/checks.h"

#include <algorithm>
#include <exception>

#include "store/base/empty_list.h"

namespace waybill::doctor {
namespace {

// Access, guard, of flags.
constexpr Check kChecks[] = {
    {"kubelet-version", true, true, false, KubeletVersionCheck},
    {"kubelet-gate", true, true, true, KubeletGateCheck},
    {"kubelet-policy", true, true, true, KubeletPolicyCheck},
    {"kubelet-directory", true, true, true, KubeletDirectoryCheck},
    {"kubelet-records", true, true, true, KubeletRecordsCheck},
    {"runtime-version", false, false, false, RuntimeVersionCheck},
    {"runtime-image-refs", true, true, false, RuntimeImageRefsCheck},
    {"runtime-guest-pulls", true, true, false, RuntimeGuestPullsCheck},
    {"runtime-proxy", false, false, false, RuntimeProxyCheck},
    {"credentials-node", true, true, true, CredentialsNodeCheck},
    {"credentials-mirrors", true, true, false, CredentialsMirrorsCheck},
    {"userns-pool", false, false, true, UsernsPoolCheck},
    {"waybill-store", true, false, false, WaybillStoreCheck},
    {"waybill-guard", true, false, false, WaybillGuardCheck},
    {"disk-file-system", false, true, false, DiskFileSystemCheck},
    {"disk-space", false, true, false, DiskSpaceCheck},
};

Findings Look(const Check& check, const Node& node) {
  Report report;
  try {
    if (const auto looked = check.look(node, report); !looked) report.Unknown(looked.error());
  } catch (const std::exception& error) {
    report.Unknown(std::string("the check could not end: ") + error.what(),
                   "run it again; if it stays, report it with what -o json prints");
  }
  Findings& findings = report.findings;
  const auto has = [&](Verdict verdict) {
    return std::ranges::count(findings, verdict, &Finding::verdict) != 0;
  };
  const auto ok = std::ranges::find(findings, Verdict::kOk, &Finding::verdict);
  const std::string seen = ok == findings.end() ? "" : ok->seen;
  if (check.of_flags && !node.told && !has(Verdict::kFail) && !has(Verdict::kUnknown)) {
    report.Unknown((seen.empty() ? "" : seen + " by its files; ") + node.told.error().message,
                   "run it again when the kubelet runs; for one inside another program give "
                   "--kubelet-config its configuration");
  }
  if (findings.empty()) report.Unknown("nothing was seen");
  std::size_t wrong = findings.size();
  wrong -= static_cast<std::size_t>(std::ranges::count(findings, Verdict::kOk, &Finding::verdict));
  if (wrong != 0)
    std::erase_if(findings, [](const auto& one) { return one.verdict == Verdict::kOk; });
  return std::move(findings);
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  constexpr std::string_view kNames[] = {"ok", "unknown", "warn", "fail"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::span<const Check> Checks() { return kChecks; }

Findings Examine(const Node& node, bool only_guards) {
  Findings all;
  for (const Check& check : kChecks) {
    if (only_guards && !check.guard) continue;
    for (Finding& finding : Look(check, node)) {
      finding.check = check.name;
      if (finding.verdict != Verdict::kOk && finding.next.empty()) {
        finding.next = "run it as root, on the node itself";
      }
      all.push_back(std::move(finding));
    }
  }
  return all;
}

Protection ProtectionBy(const Findings& findings) {
  Protection protection = Protection::kYes;
  for (const Finding& finding : findings) {
    const auto check = std::ranges::find(kChecks, finding.check, &Check::name);
    if (check == std::end(kChecks) || !check->concerns_access) continue;
    if (finding.verdict == Verdict::kFail) return Protection::kNo;
    if (finding.verdict == Verdict::kUnknown) protection = Protection::kNotKnown;
    if (finding.until_loss) protection = std::max(protection, Protection::kUntilLoss);
  }
  return protection;
}

std::string_view SentenceOf(Protection protection) {
  switch (protection) {
    case Protection::kYes:
      return "This node keeps one tenant's images from another.";
    case Protection::kUntilLoss:
      return "This node keeps one tenant's images from another only until the kubelet loses a "
             "record.";
    case Protection::kNo:
      return "This node DOES NOT keep one tenant's images from another.";
    case Protection::kNotKnown:
      break;
  }
  return "It is NOT KNOWN whether this node keeps one tenant's images from another.";
}

std::string Count(std::uint64_t count, std::string_view what) {
  return internal::HowMany(count, what);
}

std::string FirstOf(const std::vector<std::string>& words) {
  const std::string others = " and " + std::to_string(words.size() - 1) + " more";
  return words.front() + (words.size() == 1 ? "" : others);
}

}  // namespace waybill::doctor
