#include "runtime/cri/runtime_answers.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/cri/containerd.h"
#include "store/base/files.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::cri {
namespace {

// The file that containerd's command line names; empty: none, or nobody can tell.
std::string ConfigOf(const std::string& endpoint) {
  const auto containerd = Containerd::At({.endpoint = endpoint});
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

Result<RuntimeAnswers> AnswersOf(Client& runtime) {
  RuntimeAnswers answers;
  answers.version = runtime.runtime();
  answers.status = TRY(runtime.Status());
  if (answers.version.starts_with("containerd ")) answers.config = ConfigOf(runtime.endpoint());
  return answers;
}

}  // namespace waybill::cri
