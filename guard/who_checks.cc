#include "guard/who_checks.h"

#include <string_view>
#include <utility>

#include "cri/containerd.h"
#include "store/base/files.h"
#include "waybill/limits.h"

namespace waybill::guard {
namespace {

constexpr std::chrono::seconds kLearnEvery{60};
constexpr std::string_view kAnyDigest =
    "@sha256:0000000000000000000000000000000000000000000000000000000000000000";

// The file that containerd's command line names; empty: none, or nobody can tell.
std::string ConfigOf(const std::string& endpoint) {
  const auto containerd = cri::Containerd::At({.endpoint = endpoint});
  if (!containerd) return {};
  const auto process = containerd->Process();
  if (!process) return {};
  const auto words = internal::ReadWholeFile("/proc/" + std::to_string(process->pid) + "/cmdline",
                                             kMaxPullConfigBytes);
  if (!words) return {};
  std::string_view rest = *words;
  std::string config;
  bool is_value = false;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    if (std::exchange(is_value, false)) config = word;
    for (const std::string_view flag : {"--config", "-config", "--c", "-c"}) {
      if (word == flag) is_value = true;
      if (word.starts_with(flag) && word.substr(flag.size()).starts_with('=')) {
        config = word.substr(flag.size() + 1);
      }
    }
  }
  return config;
}

}  // namespace

void WhoChecks::Learn(cri::Client& runtime) {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (pulls_ && now - learnt_ < kLearnEvery) return;
  }
  std::shared_ptr<const RuntimePulls> learnt;
  if (auto status = runtime.Status()) {
    RuntimeAnswers answers = {.version = runtime.runtime(), .status = *std::move(status)};
    if (answers.version.starts_with("containerd ")) answers.config = ConfigOf(runtime.endpoint());
    if (auto pulls = ReadRuntimePulls(answers)) {
      learnt = std::make_shared<const RuntimePulls>(*std::move(pulls));
    }
  }
  const std::lock_guard lock(mutex_);
  pulls_ = std::move(learnt);
  learnt_ = now;
}

ProofChecker WhoChecks::Of(const std::string& image_name) const {
  std::shared_ptr<const RuntimePulls> pulls;
  {
    const std::lock_guard lock(mutex_);
    pulls = pulls_;
  }
  if (!pulls) return ProofChecker::kUnknown;
  ProofChecker checker = ProofChecker::kRegistry;
  for (const std::string& image : {image_name, image_name + std::string(kAnyDigest)}) {
    const auto sources = PullSourcesOf(*pulls, image, "");
    if (!sources) return ProofChecker::kUnknown;
    if (sources->checker == ProofChecker::kRegistry) continue;
    if (sources->checker != ProofChecker::kMirror) return sources->checker;
    checker = sources->checker;
  }
  // It may have been pulled for a handler whose guest pulls.
  return pulls->guest_pullers.empty() ? checker : ProofChecker::kUnknown;
}

}  // namespace waybill::guard
