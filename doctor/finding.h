// What the doctor finds: one line for each thing that it looked at, and the next step.

#ifndef WAYBILL_DOCTOR_FINDING_H_
#define WAYBILL_DOCTOR_FINDING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waybill/result.h"

namespace waybill::doctor {

// From good to bad.
enum class Verdict : std::uint8_t { kOk, kUnknown, kWarn, kFail };
std::string_view VerdictName(Verdict verdict);

struct Finding {
  // Of the check that found it (checks.h): the label of its metric, a heading of
  // docs/operations.md.
  std::string check = {};
  std::string group = {};
  Verdict verdict = Verdict::kOk;
  std::string seen = {};  // one line
  std::string next = {};  // one line; empty: nothing is to be done
  // The kubelet verifies no image at all.
  bool verifies_nothing = false;
};
using Findings = std::vector<Finding>;

// For a check, which need not say who it is.
inline Finding Ok(std::string seen) { return {.seen = std::move(seen)}; }
inline Finding Warn(std::string seen, std::string next) {
  return {.verdict = Verdict::kWarn, .seen = std::move(seen), .next = std::move(next)};
}
inline Finding Fail(std::string seen, std::string next) {
  return {.verdict = Verdict::kFail, .seen = std::move(seen), .next = std::move(next)};
}
inline Finding VerifiesNothing(std::string seen, std::string next) {
  Finding finding = Fail(std::move(seen), std::move(next));
  finding.verifies_nothing = true;
  return finding;
}
inline Finding Unknown(std::string seen, std::string next) {
  return {.verdict = Verdict::kUnknown, .seen = std::move(seen), .next = std::move(next)};
}
inline Finding Unknown(const Error& error) { return Unknown(error.message, error.hint); }

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_FINDING_H_
