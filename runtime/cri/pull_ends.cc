#include "runtime/cri/pull_ends.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace waybill::cri {

void PullEnds::Failed() {
  known_ = false;
  looks_.clear();
}

void PullEnds::Saw(PullLook look) {
  if (look.ended < look.began || (last_began_ && look.began < last_ended_)) return Failed();
  std::unordered_set<std::string> there(std::make_move_iterator(look.leases.begin()),
                                        std::make_move_iterator(look.leases.end()));
  for (auto entry = leases_.begin(); entry != leases_.end();) {
    auto& [id, seen] = *entry;
    if (there.erase(id) != 0) {
      // A lease that came back was never gone.
      seen.gone.reset();
    } else if (!seen.gone) {
      seen.gone = look.ended;
    } else if (look.began - *seen.gone >= kMargin) {
      entry = leases_.erase(entry);
      continue;
    }
    ++entry;
  }
  for (const std::string& id : there) {
    leases_.emplace(id, Seen{.absent = last_began_, .process = look.process, .gone = {}});
  }
  known_ = true;
  process_ = look.process;
  last_began_ = look.began;
  last_ended_ = look.ended;
  looks_.push_back({look.began, look.ended});
  if (looks_.size() > kMaxLooks) looks_.pop_front();
}

bool PullEnds::Quiet(std::int64_t ended) const {
  if (!known_) return false;
  // The process that pulled has ended.
  if (process_.started > ended) return true;
  const auto after = std::lower_bound(
      looks_.begin(), looks_.end(), ended,
      [](const Moments& look, std::int64_t moment) { return look.began < moment; });
  if (after == looks_.end() || *last_began_ - after->ended < kMargin) return false;
  return std::none_of(leases_.begin(), leases_.end(), [&](const auto& entry) {
    const Seen& lease = entry.second;
    const bool of_another_process = lease.process != process_;
    const bool younger = lease.absent && *lease.absent - after->ended >= kMargin;
    if (of_another_process || younger) return false;
    return !lease.gone || *last_began_ - *lease.gone < kMargin;
  });
}

std::vector<std::string> NotShown(const std::vector<ContainerdImage>& containerd,
                                  const std::vector<ListedImage>& cri) {
  std::unordered_map<std::string_view, std::string_view> targets;  // of each name
  for (const ContainerdImage& image : containerd) targets.emplace(image.name, image.target);
  std::unordered_map<std::string_view, const ListedImage*> shown;  // by each name
  for (const ListedImage& image : cri) {
    shown.emplace(image.id, &image);
    for (const std::string& tag : image.repo_tags) shown.emplace(tag, &image);
    for (const std::string& digest : image.repo_digests) shown.emplace(digest, &image);
  }
  // When a tag moves, CRI may still show the earlier image.
  const auto has_target = [&](const ListedImage& image, const std::string& target) {
    const auto id = targets.find(image.id);
    if (id != targets.end() && id->second == target) return true;
    return std::any_of(image.repo_digests.begin(), image.repo_digests.end(),
                       [&](const std::string& digest) { return digest.ends_with("@" + target); });
  };
  std::vector<std::string> missing;
  for (const ContainerdImage& image : containerd) {
    const auto found = shown.find(image.name);
    if (found == shown.end() || !has_target(*found->second, image.target)) {
      missing.push_back(image.name);
    }
  }
  return missing;
}

}  // namespace waybill::cri
