#include "bindings/cli/image_lookup.h"

#include <fmt/core.h>

#include <algorithm>

#include "bindings/cli/parse.h"
#include "waybill/image_name.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kAlgorithm = "sha256:";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::size_t kIdDigits = 64;
constexpr std::size_t kLeastShortId = 6;

std::string_view WithoutAlgorithm(std::string_view id) {
  return id.starts_with(kAlgorithm) ? id.substr(kAlgorithm.size()) : id;
}

// The list's spelling of what `name` is short for; empty: none.
std::string FullFormIn(const std::vector<ImageOnNode>& list, std::string_view name) {
  const auto full = NormaliseImage(name);
  if (!full || *full == name) return {};
  const bool listed = std::any_of(list.begin(), list.end(),
                                  [&](const ImageOnNode& image) { return Has(image, *full); });
  return listed ? *full : std::string();
}

}  // namespace

bool IsSpelling(std::string_view text) {
  const auto is_hash = [](std::string_view hash) {
    return hash.size() == kIdDigits && hash.find_first_not_of(kHexDigits) == std::string_view::npos;
  };
  if (is_hash(WithoutAlgorithm(text))) return true;
  const auto parts = ParseImage(text);
  return parts && !parts->digest.empty() && parts->tag.empty() &&
         parts->digest.starts_with(kAlgorithm) && is_hash(WithoutAlgorithm(parts->digest));
}

bool SameSpelling(std::string_view a, std::string_view b) {
  return WithoutAlgorithm(a) == WithoutAlgorithm(b);
}

bool IsShortId(std::string_view text) {
  const std::string_view digits = WithoutAlgorithm(text);
  return digits.size() >= kLeastShortId && digits.size() < kIdDigits &&
         digits.find_first_not_of(kHexDigits) == std::string_view::npos;
}

Result<std::optional<std::string>> FindRef(std::string_view flag, std::string_view text,
                                           const std::set<std::string>& refs) {
  constexpr std::size_t kMaxNamed = 5;
  if (const auto itself = refs.find(std::string(text)); itself != refs.end()) {
    return std::optional(*itself);
  }
  for (const std::string& ref : refs) {
    if (SameSpelling(ref, text)) return std::optional(ref);
  }
  if (!IsShortId(text)) return std::optional<std::string>();
  std::vector<std::string> found;
  for (const std::string& ref : refs) {
    const std::string_view digits = WithoutAlgorithm(ref);
    const bool is_id = digits.find_first_not_of(kHexDigits) == std::string_view::npos;
    if (is_id && digits.starts_with(WithoutAlgorithm(text))) found.push_back(ref);
  }
  if (found.empty()) return std::optional<std::string>();
  if (found.size() == 1) return std::optional(found.front());
  std::string some;
  for (std::size_t i = 0; i < std::min(found.size(), kMaxNamed); ++i) {
    some += (i == 0 ? "" : ", ") + found[i];
  }
  if (found.size() > kMaxNamed) some += fmt::format(" and {} more", found.size() - kMaxNamed);
  return BadFlag(flag, fmt::format("{} images have an ID that begins so: {}", found.size(), some),
                 "give more digits");
}

Result<std::set<std::string>> StoredRefs(const NodeStore& store, bool ledger) {
  std::set<std::string> refs;
  auto records = store.ListRecords();
  if (!records) return records.error();
  for (ImagePulledRecord& record : *records) refs.insert(std::move(record.image_ref));
  if (!ledger) return refs;
  auto entries = store.ListLedger();
  if (!entries) return entries.error();
  for (LedgerEntry& entry : *entries) refs.insert(std::move(entry.image_ref));
  return refs;
}

bool Has(const ImageOnNode& image, std::string_view name) {
  const auto is_named = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return SameSpelling(image.id, name) || is_named(image.repo_tags) || is_named(image.repo_digests);
}

ImageIndex::ImageIndex(const std::vector<ImageOnNode>& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    positions_.emplace(WithoutAlgorithm(list[i].id), i);
    for (const auto* names : {&list[i].repo_tags, &list[i].repo_digests}) {
      for (const std::string& name : *names) positions_.emplace(name, i);
    }
  }
}

void ImageIndex::Find(std::string_view name, std::vector<std::size_t>& positions) const {
  const auto [first, last] = positions_.equal_range(WithoutAlgorithm(name));
  for (auto at = first; at != last; ++at) positions.push_back(at->second);
}

Result<std::vector<ImageOnNode>> FindListed(std::string_view name,
                                            const std::vector<ImageOnNode>& list,
                                            std::string_view flag) {
  std::vector<ImageOnNode> found;
  for (const ImageOnNode& image : list) {
    if (Has(image, name)) found.push_back(image);
  }
  if (found.empty()) {
    const std::string full = FullFormIn(list, name);
    return BadFlag(flag, fmt::format("it lists no image {}", name.substr(0, 200)),
                   full.empty() ? "write the name as the list has it, or the image's ID"
                                : "the list has " + full);
  }
  for (const ImageOnNode& image : found) {
    if (SameSpelling(image.id, found.front().id)) continue;
    return BadFlag(flag,
                   fmt::format("it gives the name {} to two images, {} and {}", name.substr(0, 200),
                               found.front().id, image.id),
                   "give the image's ID");
  }
  return found;
}

}  // namespace waybill::cli
