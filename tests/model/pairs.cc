#include "tests/model/pairs.h"

#include <algorithm>

namespace waybill::testing {

namespace {

using Mapping = std::map<std::string, ImagePullCredentials>;

Mapping MappingOf(const Model& model, const Model::CopyKey& copy) {
  const auto at = model.records().find(copy);
  return at == model.records().end() ? Mapping() : at->second.credential_mapping;
}

// A migration down or another guest takes the credentials of a record for these.
bool SameImage(const ImagePulledRecord& a, const ImagePulledRecord& b) {
  return a.manifest_digest == b.manifest_digest && a.platform == b.platform &&
         a.guest_platform == b.guest_platform;
}

// Of a ref: under which handlers it has a record, whether one was written after `token`, and the
// latest time in them.
struct Copies {
  std::set<std::string> handlers;
  bool written = false;
  std::optional<Timestamp> updated = std::nullopt;
};
std::map<std::string, Copies> CopiesByRef(const Model& model, std::uint64_t token) {
  std::map<std::string, Copies> copies;
  for (const auto& [copy, record] : model.records()) {
    Copies& of_ref = copies[copy.first];
    of_ref.handlers.insert(copy.second);
    of_ref.written = of_ref.written || record.stamp > token;
    of_ref.updated = std::max(of_ref.updated, record.last_updated);
  }
  return copies;
}

}  // namespace

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
        garbage_collected || younger_.contains(copy.first) || of_another_image_.contains(copy);
    if (!may_part) continue;
    if (MappingOf(kubelet, copy).empty()) parted_.insert(copy);
  }
  std::erase_if(parted_, [&](const Model::CopyKey& copy) {
    const Mapping mapping = MappingOf(closed, copy);
    return mapping.empty() || mapping == MappingOf(kubelet, copy);
  });

  std::string lost;
  const auto under_kubelet = CopiesByRef(kubelet, kubelet_token_);
  auto under_closed = CopiesByRef(closed, closed_token_);
  std::erase_if(younger_, [&](const std::string& ref) { return !under_kubelet.contains(ref); });
  for (const auto& [ref, copies] : under_kubelet) {
    const Copies& other = under_closed[ref];
    if (other.handlers.empty() && !younger_.contains(ref)) lost = ref;
    const bool covered = std::includes(other.handlers.begin(), other.handlers.end(),
                                       copies.handlers.begin(), copies.handlers.end());
    // A record that only lost something is written, and not updated.
    const bool written = other.written && other.updated >= copies.updated;
    if (!covered || (copies.written && !written)) {
      younger_.insert(ref);
    } else if (written) {
      younger_.erase(ref);
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
