#include "guard/node_credentials.h"

#include <algorithm>

namespace waybill::guard {
namespace {

std::optional<internal::ChangeLook> LookOf(const std::string& path) {
  internal::ChangeLook look;
  return internal::LookAtChange(path.c_str(), look) ? std::optional(look) : std::nullopt;
}

}  // namespace

void NodeCredentialsSeen::Add(const NodeCredentials& found, std::int64_t began) {
  for (const NodeCredential& one : found.held) {
    const bool known = std::ranges::any_of(had_.held, [&](const NodeCredential& other) {
      return other.registry == one.registry && other.where == one.where;
    });
    if (!known) had_.held.push_back(one);
  }
  const auto note = [&](const std::string& problem) {
    auto& all = had_.problems;
    if (std::ranges::find(all, problem) == all.end()) all.push_back(problem);
  };
  std::ranges::for_each(found.problems, note);
  const bool is_first = !is_known_;
  std::map<std::string, std::optional<internal::ChangeLook>> files;
  for (const std::string& path : found.files) {
    const auto look = LookOf(path);
    // It changed while it was looked at, or between two looks: nobody knows what it had.
    const auto before = files_.find(path);
    const bool changed = (look && look->changed >= began) ||
                         (!is_first && (before == files_.end() || before->second != look));
    if (changed) note(path + " changed");
    files.emplace(path, look);
  }
  files_ = std::move(files);
  is_known_ = true;
}

bool NodeCredentialsSeen::HadNone(const std::string& image) const {
  if (!is_known_ || had_.MayHaveFor(image)) return false;
  return std::ranges::all_of(files_,
                             [](const auto& file) { return LookOf(file.first) == file.second; });
}

}  // namespace waybill::guard
