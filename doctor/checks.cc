#include "doctor/checks.h"

#include <algorithm>
#include <exception>

#include "store/base/empty_list.h"

namespace waybill::doctor {
namespace {

constexpr Check kChecks[] = {
    {"kubelet-version", true, true, KubeletVersionCheck},
    {"kubelet-gate", true, true, KubeletGateCheck},
    {"kubelet-policy", true, true, KubeletPolicyCheck},
    {"kubelet-directory", true, true, KubeletDirectoryCheck},
    {"kubelet-records", true, true, KubeletRecordsCheck},
    {"runtime-version", false, false, RuntimeVersionCheck},
    {"runtime-image-refs", true, true, RuntimeImageRefsCheck},
    {"runtime-guest-pulls", true, true, RuntimeGuestPullsCheck},
    {"runtime-proxy", false, false, RuntimeProxyCheck},
    {"credentials-node", true, true, CredentialsNodeCheck},
    {"credentials-mirrors", true, true, CredentialsMirrorsCheck},
    {"userns-pool", false, false, UsernsPoolCheck},
    {"waybill-store", true, false, WaybillStoreCheck},
    {"waybill-guard", true, false, WaybillGuardCheck},
    {"disk-file-system", false, true, DiskFileSystemCheck},
    {"disk-space", false, true, DiskSpaceCheck},
};

Findings Look(const Check& check, const Node& node) {
  try {
    return check.look(node);
  } catch (const std::exception& error) {
    return {Unknown(std::string("the check could not end: ") + error.what(),
                    "run it again; if it stays, report it with what -o json prints")};
  }
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
    const bool concerns = std::ranges::any_of(kChecks, [&](const Check& check) {
      return check.concerns_access && finding.check == check.name;
    });
    if (!concerns) continue;
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

}  // namespace waybill::doctor
