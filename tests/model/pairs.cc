#include "tests/model/pairs.h"

namespace waybill::testing {

namespace {

using Mapping = std::map<std::string, ImagePullCredentials>;

Mapping MappingOf(const Model& model, const Model::CopyKey& copy) {
  const auto at = model.records().find(copy);
  return at == model.records().end() ? Mapping() : at->second.credential_mapping;
}

// A migration down, or another guest, removes a record's credentials if these differ.
bool SameImage(const ImagePulledRecord& a, const ImagePulledRecord& b) {
  return a.manifest_digest == b.manifest_digest && a.platform == b.platform &&
         a.guest_platform == b.guest_platform;
}

bool Holds(const Model& model, const std::string& ref) {
  const auto at = model.records().lower_bound({ref, ""});
  return at != model.records().end() && at->first.first == ref;
}

}  // namespace

bool Pairs::Younger(const std::string& ref) const {
  const auto at = younger_.lower_bound({ref, ""});
  return at != younger_.end() && at->first == ref;
}

void Pairs::Before(const Model& kubelet, const Model& closed) {
  proven_.clear();
  of_another_image_.clear();
  for (const auto& [copy, record] : kubelet.records()) {
    if (record.credential_mapping.empty()) continue;
    proven_.insert(copy);
    const auto other = closed.records().find(copy);
    if (other != closed.records().end() && !SameImage(record, other->second)) {
      of_another_image_.insert(copy);
    }
  }
  kubelet_token_ = kubelet.token();
  closed_token_ = closed.token();
}

std::string Pairs::After(const Model& kubelet, const Model& closed, bool garbage_collected) {
  for (const Model::CopyKey& copy : proven_) {
    const bool may_part =
        garbage_collected || Younger(copy.first) || of_another_image_.contains(copy);
    if (!may_part) continue;
    if (MappingOf(kubelet, copy).empty()) parted_.insert(copy);
  }
  std::erase_if(parted_, [&](const Model::CopyKey& copy) {
    const Mapping mapping = MappingOf(closed, copy);
    return mapping.empty() || mapping == MappingOf(kubelet, copy);
  });

  std::string lost;
  for (const auto& [copy, record] : kubelet.records()) {
    if (!Holds(closed, copy.first) && !Younger(copy.first)) lost = copy.first;
  }
  // Only now: a record that moved to another handler keeps its age.
  std::erase_if(younger_,
                [&](const Model::CopyKey& copy) { return !kubelet.records().contains(copy); });
  for (const auto& [copy, record] : kubelet.records()) {
    const auto other = closed.records().find(copy);
    const bool covered = other != closed.records().end();
    // A record that only lost something is written but not updated.
    const bool written = covered && other->second.stamp > closed_token_ &&
                         other->second.last_updated >= record.last_updated;
    if (!covered || (record.stamp > kubelet_token_ && !written)) {
      younger_.insert(copy);
    } else if (written) {
      younger_.erase(copy);
    }
  }
  for (const std::uint64_t moment : moments_) Remember(remembered_[moment]);
  moments_.clear();
  return lost;
}

void Pairs::Remember(Differences& then) const {
  then.parted.insert(parted_.begin(), parted_.end());
  then.younger.insert(younger_.begin(), younger_.end());
}

void Pairs::Remember(std::uint64_t moment) {
  Remember(remembered_[moment]);
  moments_.insert(moment);
}

void Pairs::Restored(std::uint64_t moment) {
  const Differences& then = remembered_[moment];
  parted_.insert(then.parted.begin(), then.parted.end());
  younger_.insert(then.younger.begin(), then.younger.end());
}

}  // namespace waybill::testing
