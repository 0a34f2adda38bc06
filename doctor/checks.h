// The checks, as data. README.md says how one is added.

#ifndef WAYBILL_DOCTOR_CHECKS_H_
#define WAYBILL_DOCTOR_CHECKS_H_

#include <span>
#include <string_view>

#include "doctor/finding.h"
#include "doctor/node.h"
#include "waybill/values.h"

namespace waybill::doctor {

inline constexpr const char* kTheKubelet = "the kubelet";
inline constexpr const char* kTheRuntime = "the runtime";
inline constexpr const char* kWhoChecks = "who checks credentials";
inline constexpr const char* kUserNamespaces = "user namespaces";
inline constexpr const char* kWaybill = "waybill";
inline constexpr const char* kTheDisk = "the disk";

// What follows from a check that fails, beside its own line.
enum class Matters : std::uint8_t {
  // One tenant's images are not kept from another.
  kTenants,
  // Something else does not work, or soon will not.
  kOtherwise,
};

struct Check {
  const char* name;   // stable, in kebab case
  const char* group;  // one of the above
  Matters matters;
  bool guard;  // the guard runs it, too
  Findings (*look)(const Node&);
};

// In the order in which they are shown.
std::span<const Check> Checks();

// All of them, or those of the guard. A check that throws gives one `unknown`.
Findings Examine(const Node& node, bool only_guards = false);

// Whether one tenant's images are kept from another: nothing that matters for it fails, or is
// unknown.
enum class Protection : std::uint8_t { kYes, kNo, kNotKnown };
Protection ProtectionBy(const Findings& findings);

// --- One file each ------------------------------------------------------------------------------

// kubelet_version.cc, kubelet_checks.cc
Findings KubeletVersionCheck(const Node& node);
Findings KubeletGateCheck(const Node& node);
Findings KubeletPolicyCheck(const Node& node);
Findings KubeletDirectoryCheck(const Node& node);
Findings KubeletRecordsCheck(const Node& node);
Findings KubeletRuntimeClassesCheck(const Node& node);
Findings KubeletPullsCheck(const Node& node);
// runtime_checks.cc, mirrors.cc
Findings RuntimeVersionCheck(const Node& node);
Findings RuntimeImageRefsCheck(const Node& node);
Findings RuntimeGuestPullsCheck(const Node& node);
Findings RuntimeShortNamesCheck(const Node& node);
Findings RuntimeProxyCheck(const Node& node);
Findings CredentialsMirrorsCheck(const Node& node);
// user_namespaces.cc
Findings UsernsKernelCheck(const Node& node);
Findings UsernsPoolCheck(const Node& node);
Findings UsernsMappingsCheck(const Node& node);
Findings UsernsMountsCheck(const Node& node);
Findings UsernsHandlersCheck(const Node& node);
// The host IDs that the kubelet gives to pods, as it finds them. kUnavailable: files do not say it.
Result<IdPool> PoolOf(const Node& node);
// Those that the kubelet's own files give to pods; length 0: the file can't be read.
Result<std::vector<PodIds>> HostIdsInFiles(const Node& node);
// userns_processes.cc
Findings UsernsProcessesCheck(const Node& node);
// waybill_checks.cc
Findings WaybillStoreCheck(const Node& node);
Findings WaybillTrustCheck(const Node& node);
Findings WaybillWitnessCheck(const Node& node);
Findings WaybillBackupCheck(const Node& node);
Findings WaybillGuardCheck(const Node& node);
Findings WaybillOwnerCheck(const Node& node);
Findings WaybillVersionsCheck(const Node& node);
// disk.cc
Findings DiskFileSystemCheck(const Node& node);
Findings DiskSpaceCheck(const Node& node);

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_CHECKS_H_
