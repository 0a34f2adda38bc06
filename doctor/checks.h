// The checks, as data. README.md says how one is added.

#ifndef WAYBILL_DOCTOR_CHECKS_H_
#define WAYBILL_DOCTOR_CHECKS_H_

#include <span>
#include <string_view>

#include "doctor/finding.h"
#include "doctor/node.h"

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

Findings KubeletVersionCheck(const Node& node);

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_CHECKS_H_
