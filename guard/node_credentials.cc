#include "guard/node_credentials.h"

#include <algorithm>

namespace waybill::guard {
namespace {

std::optional<internal::ChangeLook> LookOf(const std::string& path) {
  internal::ChangeLook look;
  return internal::LookAtChange(path.c_str(), look) ? std::optional(look) : std::nullopt;
}

}  // namespace

void NodeCredentialsSeen::Add(const NodeCredentials& found, const RunningKubelet& kubelet,
                              std::int64_t began) {
  const bool is_first = kubelet.life != life_;
  if (is_first) {
    life_ = kubelet.life;
    had_ = {};
    files_.clear();
  }
  const auto note = [this](const std::string& problem) {
    auto& all = had_.problems;
    if (std::ranges::find(all, problem) == all.end()) all.push_back(problem);
  };
  std::ranges::for_each(found.problems, note);
  for (const NodeCredential& one : found.held) {
    const bool known = std::ranges::any_of(had_.held, [&](const NodeCredential& other) {
      return other.registry == one.registry && other.where == one.where;
    });
    if (!known) had_.held.push_back(one);
  }
  // It may have had some before a file was changed.
  if (is_first && !kubelet.began) note("nobody knows when the kubelet began");
  const std::int64_t since = is_first ? kubelet.began.value_or(began) : began;
  std::map<std::string, std::optional<internal::ChangeLook>> files;
  for (const std::string& path : found.files) {
    const auto look = LookOf(path);
    const auto before = files_.find(path);
    const bool changed = (look && look->changed >= since) ||
                         (!is_first && (before == files_.end() || before->second != look));
    if (changed) note(path + " changed");
    files.emplace(path, look);
  }
  files_ = std::move(files);
}

bool NodeCredentialsSeen::HadNone(const std::string& image, const std::string& kubelet_life) const {
  if (kubelet_life.empty() || kubelet_life != life_ || had_.MayHaveFor(image)) return false;
  return std::ranges::all_of(files_,
                             [](const auto& file) { return LookOf(file.first) == file.second; });
}

}  // namespace waybill::guard
