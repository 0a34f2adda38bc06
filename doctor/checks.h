// The 16 checks, as data, and the frame that they stand in. A check says what it saw; what it can't
// read is an error, which it returns. So the frame alone decides when something is ok.
// docs/doctor.md has a heading for each.

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

// What a check says. `return report.Fail(…)` ends it, too.
class Report {
 public:
  struct Said {
    // NOLINTNEXTLINE(google-explicit-constructor): so that a check can return it.
    operator Result<void>() const { return {}; }
  };

  // Counts only if the check says nothing else.
  Said Ok(std::string seen) { return Add({.seen = std::move(seen)}); }
  Said Warn(std::string seen, std::string next) {
    return Add({.verdict = Verdict::kWarn, .seen = std::move(seen), .next = std::move(next)});
  }
  Said UntilLoss(std::string seen, std::string next) {
    Warn(std::move(seen), std::move(next));
    findings.back().until_loss = true;
    return {};
  }
  Said Fail(std::string seen, std::string next) {
    return Add({.verdict = Verdict::kFail, .seen = std::move(seen), .next = std::move(next)});
  }
  Said VerifiesNothing(std::string seen, std::string next) {
    Fail(std::move(seen), std::move(next));
    findings.back().verifies_nothing = true;
    return {};
  }
  Said Unknown(std::string seen, std::string next = {}) {
    return Add({.verdict = Verdict::kUnknown, .seen = std::move(seen), .next = std::move(next)});
  }
  Said Unknown(const Error& error) { return Unknown(error.message, error.hint); }
  // What was read; nullptr: it is unknown, and so it was said.
  template <typename T>
  const T* See(const Result<T>& fact) {
    if (!fact) Unknown(fact.error());
    return fact ? &*fact : nullptr;
  }

  Said Add(Finding finding) {
    findings.push_back(std::move(finding));
    return {};
  }

  Findings findings = {};
};

struct Check {
  const char* name;  // stable, in kebab case
  // Whether it concerns who may use images: then the first line depends on it.
  bool concerns_access;
  bool guard;  // the guard runs it, too
  // It is ok only if it is seen what the kubelet is told: by its files alone nothing is.
  bool of_flags;
  Result<void> (*look)(const Node&, Report&);
};

// In the order in which they are shown.
std::span<const Check> Checks();

// All of them, or those of the guard. Each says something: ok, if it said so and nothing else.
Findings Examine(const Node& node, bool only_guards = false);

// Whether one tenant's images are kept from another: by the checks that concern access.
enum class Protection : std::uint8_t { kYes, kUntilLoss, kNo, kNotKnown };
Protection ProtectionBy(const Findings& findings);
// The first line: "This node keeps one tenant's images from another."
std::string_view SentenceOf(Protection protection);

// --- One file for each subject ------------------------------------------------------------------

// kubelet.cc
Result<void> KubeletVersionCheck(const Node& node, Report& report);
Result<void> KubeletGateCheck(const Node& node, Report& report);
Result<void> KubeletPolicyCheck(const Node& node, Report& report);
Result<void> KubeletDirectoryCheck(const Node& node, Report& report);
Result<void> KubeletRecordsCheck(const Node& node, Report& report);
// runtime.cc
Result<void> RuntimeVersionCheck(const Node& node, Report& report);
Result<void> RuntimeImageRefsCheck(const Node& node, Report& report);
Result<void> RuntimeGuestPullsCheck(const Node& node, Report& report);
Result<void> RuntimeProxyCheck(const Node& node, Report& report);
Result<void> CredentialsNodeCheck(const Node& node, Report& report);
Result<void> CredentialsMirrorsCheck(const Node& node, Report& report);
// userns.cc
Result<void> UsernsPoolCheck(const Node& node, Report& report);
// waybill.cc
Result<void> WaybillStoreCheck(const Node& node, Report& report);
Result<void> WaybillGuardCheck(const Node& node, Report& report);
// disk.cc
Result<void> DiskFileSystemCheck(const Node& node, Report& report);
Result<void> DiskSpaceCheck(const Node& node, Report& report);
// Of the mount that a path of the node is on.
Result<std::string> FileSystemOf(const Node& node, const std::string& path);

// "1 record", "12 records".
std::string Count(std::uint64_t count, std::string_view what);
// "a.test", "a.test and 2 more".
std::string FirstOf(const std::vector<std::string>& words);

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_CHECKS_H_
