#include "doctor/checks.h"

#include <algorithm>
#include <exception>

namespace waybill::doctor {
namespace {

constexpr Check kChecks[] = {
    {"kubelet-version", kTheKubelet, Matters::kTenants, true, KubeletVersionCheck},
    {"kubelet-gate", kTheKubelet, Matters::kTenants, true, KubeletGateCheck},
    {"kubelet-policy", kTheKubelet, Matters::kTenants, true, KubeletPolicyCheck},
    {"kubelet-directory", kTheKubelet, Matters::kTenants, true, KubeletDirectoryCheck},
    {"kubelet-records", kTheKubelet, Matters::kTenants, true, KubeletRecordsCheck},
    {"kubelet-runtime-classes", kTheKubelet, Matters::kOtherwise, true, KubeletRuntimeClassesCheck},
    {"kubelet-pulls", kTheKubelet, Matters::kOtherwise, false, KubeletPullsCheck},
    {"runtime-version", kTheRuntime, Matters::kOtherwise, false, RuntimeVersionCheck},
    {"runtime-image-refs", kTheRuntime, Matters::kTenants, true, RuntimeImageRefsCheck},
    {"runtime-guest-pulls", kTheRuntime, Matters::kTenants, true, RuntimeGuestPullsCheck},
    {"runtime-short-names", kTheRuntime, Matters::kOtherwise, false, RuntimeShortNamesCheck},
    {"runtime-proxy", kTheRuntime, Matters::kOtherwise, false, RuntimeProxyCheck},
    {"credentials-mirrors", kWhoChecks, Matters::kTenants, true, CredentialsMirrorsCheck},
    {"userns-kernel", kUserNamespaces, Matters::kOtherwise, false, UsernsKernelCheck},
    {"userns-pool", kUserNamespaces, Matters::kOtherwise, false, UsernsPoolCheck},
    {"userns-mappings", kUserNamespaces, Matters::kOtherwise, false, UsernsMappingsCheck},
    {"userns-mounts", kUserNamespaces, Matters::kOtherwise, false, UsernsMountsCheck},
    {"userns-handlers", kUserNamespaces, Matters::kOtherwise, false, UsernsHandlersCheck},
    {"userns-processes", kUserNamespaces, Matters::kOtherwise, false, UsernsProcessesCheck},
    {"waybill-store", kWaybill, Matters::kTenants, false, WaybillStoreCheck},
    {"waybill-trust", kWaybill, Matters::kOtherwise, false, WaybillTrustCheck},
    {"waybill-witness", kWaybill, Matters::kOtherwise, false, WaybillWitnessCheck},
    {"waybill-backup", kWaybill, Matters::kOtherwise, false, WaybillBackupCheck},
    {"waybill-guard", kWaybill, Matters::kTenants, false, WaybillGuardCheck},
    {"waybill-owner", kWaybill, Matters::kTenants, true, WaybillOwnerCheck},
    {"waybill-versions", kWaybill, Matters::kOtherwise, false, WaybillVersionsCheck},
    {"disk-file-system", kTheDisk, Matters::kOtherwise, true, DiskFileSystemCheck},
    {"disk-space", kTheDisk, Matters::kOtherwise, true, DiskSpaceCheck},
};

const Check* CheckOf(const Finding& finding) {
  const auto* const found =
      std::find_if(std::begin(kChecks), std::end(kChecks),
                   [&](const Check& check) { return finding.check == check.name; });
  return found == std::end(kChecks) ? nullptr : found;
}

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
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      return "fail";
  }
  return "unknown";
}

std::span<const Check> Checks() { return kChecks; }

Findings Examine(const Node& node, bool only_guards) {
  Findings all;
  for (const Check& check : kChecks) {
    if (only_guards && !check.guard) continue;
    for (Finding& finding : Look(check, node)) {
      finding.check = check.name;
      finding.group = check.group;
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
    const Check* const check = CheckOf(finding);
    if (check == nullptr || check->matters != Matters::kTenants) continue;
    if (finding.verdict == Verdict::kFail) return Protection::kNo;
    if (finding.verdict == Verdict::kUnknown) protection = Protection::kNotKnown;
  }
  return protection;
}

}  // namespace waybill::doctor
