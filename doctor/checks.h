// The 16 checks, as data. A check answers ok only if it saw what it says. docs/doctor.md has a
// heading for each.

#ifndef WAYBILL_DOCTOR_CHECKS_H_
#define WAYBILL_DOCTOR_CHECKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/node.h"
#include "waybill/result.h"

namespace waybill::doctor {

// From good to bad.
enum class Verdict : std::uint8_t { kOk, kUnknown, kWarn, kFail };
std::string_view VerdictName(Verdict verdict);

struct Finding {
  std::string check = {};  // the label of its metric, a heading of docs/doctor.md
  Verdict verdict = Verdict::kOk;
  std::string seen = {};  // one line
  std::string next = {};  // one line; empty: nothing is to be done
  // The kubelet verifies no image at all.
  bool verifies_nothing = false;
  // What the kubelet loses is open to every pod.
  bool until_loss = false;
};
using Findings = std::vector<Finding>;

// For a check, which need not say who it is.
inline Finding Ok(std::string seen) { return {.seen = std::move(seen)}; }
inline Finding Warn(std::string seen, std::string next) {
  return {.verdict = Verdict::kWarn, .seen = std::move(seen), .next = std::move(next)};
}
inline Finding UntilLoss(std::string seen, std::string next) {
  Finding finding = Warn(std::move(seen), std::move(next));
  finding.until_loss = true;
  return finding;
}
inline Finding Fail(std::string seen, std::string next) {
  return {.verdict = Verdict::kFail, .seen = std::move(seen), .next = std::move(next)};
}
inline Finding VerifiesNothing(std::string seen, std::string next) {
  Finding finding = Fail(std::move(seen), std::move(next));
  finding.verifies_nothing = true;
  return finding;
}
inline Finding Unknown(std::string seen, std::string next = {}) {
  return {.verdict = Verdict::kUnknown, .seen = std::move(seen), .next = std::move(next)};
}
inline Finding Unknown(const Error& error) { return Unknown(error.message, error.hint); }

struct Check {
  const char* name;  // stable, in kebab case
  // Whether it concerns who may use images: then the first line depends on it.
  bool concerns_access;
  bool guard;  // the guard runs it, too
  Findings (*look)(const Node&);
};

// In the order in which they are shown.
std::span<const Check> Checks();

// All of them, or those of the guard. A check that throws gives one `unknown`; each says something.
Findings Examine(const Node& node, bool only_guards = false);

// Whether one tenant's images are kept from another: by the checks that concern access.
enum class Protection : std::uint8_t { kYes, kUntilLoss, kNo, kNotKnown };
Protection ProtectionBy(const Findings& findings);
// The first line: "This node keeps one tenant's images from another."
std::string_view SentenceOf(Protection protection);

// --- One file for each subject ------------------------------------------------------------------

// kubelet.cc
Findings KubeletVersionCheck(const Node& node);
Findings KubeletGateCheck(const Node& node);
Findings KubeletPolicyCheck(const Node& node);
Findings KubeletDirectoryCheck(const Node& node);
Findings KubeletRecordsCheck(const Node& node);
// runtime.cc
Findings RuntimeVersionCheck(const Node& node);
Findings RuntimeImageRefsCheck(const Node& node);
Findings RuntimeGuestPullsCheck(const Node& node);
Findings RuntimeProxyCheck(const Node& node);
Findings CredentialsNodeCheck(const Node& node);
Findings CredentialsMirrorsCheck(const Node& node);
// userns.cc
Findings UsernsPoolCheck(const Node& node);
// waybill.cc
Findings WaybillStoreCheck(const Node& node);
Findings WaybillGuardCheck(const Node& node);
// disk.cc
Findings DiskFileSystemCheck(const Node& node);
Findings DiskSpaceCheck(const Node& node);
// Of the mount that a path of the node is on; empty: its table does not say.
std::string FileSystemOf(const Node& node, const std::string& path);

// "1 record", "12 records".
std::string Count(std::uint64_t count, std::string_view what);

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_CHECKS_H_
