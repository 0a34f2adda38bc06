#include "guard/who_checks.h"

#include <string_view>
#include <utility>

#include "runtime/files/pull_sources.h"

namespace waybill::guard {
namespace {

constexpr std::chrono::seconds kLearnEvery{60};
constexpr std::string_view kAnyDigest =
    "@sha256:0000000000000000000000000000000000000000000000000000000000000000";

}  // namespace

void WhoChecks::Learn(cri::Client& runtime) {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (pulls_ && now - learnt_ < kLearnEvery) return;
  }
  std::shared_ptr<const RuntimePulls> learnt;
  if (const auto answers = runtime.Answers()) {
    if (auto pulls = ReadRuntimePulls(*answers)) {
      learnt = std::make_shared<const RuntimePulls>(*std::move(pulls));
    }
  }
  const std::lock_guard lock(mutex_);
  pulls_ = std::move(learnt);
  learnt_ = now;
}

VerifiedBy WhoChecks::Of(const std::string& image_name) const {
  std::shared_ptr<const RuntimePulls> pulls;
  {
    const std::lock_guard lock(mutex_);
    pulls = pulls_;
  }
  if (!pulls) return VerifiedBy::kUnknown;
  VerifiedBy checker = VerifiedBy::kRegistry;
  for (const std::string& image : {image_name, image_name + std::string(kAnyDigest)}) {
    const auto sources = PullSourcesOf(*pulls, image, "");
    if (!sources) return VerifiedBy::kUnknown;
    const VerifiedBy its = sources->sources.checker;
    if (its == VerifiedBy::kRegistry) continue;
    if (its != VerifiedBy::kMirror) return its;
    checker = its;
  }
  // It may have been pulled for a handler whose guest pulls.
  return pulls->guest_pullers.empty() ? checker : VerifiedBy::kUnknown;
}

}  // namespace waybill::guard
