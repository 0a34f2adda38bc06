#include "bindings/cli/image_lookup.h"

#include <fmt/core.h>

#include <algorithm>

#include "bindings/cli/parse.h"
#include "store/base/image_name.h"
#include "store/base/try.h"
#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kAlgorithm = "sha256:";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kBeforeDigest = "@sha256:";
constexpr std::size_t kIdDigits = 64;
constexpr std::size_t kLeastShortId = 6;

std::string_view WithoutAlgorithm(std::string_view id) {
  return id.starts_with(kAlgorithm) ? id.substr(kAlgorithm.size()) : id;
}

bool IsHash(std::string_view text) {
  return text.size() == kIdDigits && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

// A text that may be the beginning of a ref.
struct Shortened {
  std::string_view before;  // the hash: empty, `sha256:` or `repository@sha256:`
  std::string_view digits;

  static std::optional<Shortened> Read(std::string_view text) {
    std::size_t begin = 0;
    if (text.starts_with(kAlgorithm)) begin = kAlgorithm.size();
    if (const std::size_t at = text.find(kBeforeDigest); at != std::string_view::npos && at > 0) {
      begin = at + kBeforeDigest.size();
    }
    const std::string_view digits = text.substr(begin);
    if (digits.size() < kLeastShortId || digits.size() >= kIdDigits ||
        digits.find_first_not_of(kHexDigits) != std::string_view::npos) {
      return std::nullopt;
    }
    return Shortened{text.substr(0, begin), digits};
  }

  // A digest begins so only with its repository; an ID with or without `sha256:`.
  bool Begins(std::string_view ref) const {
    if (before.size() > kAlgorithm.size()) {
      return IsSpelling(ref) && ref.starts_with(before) &&
             ref.substr(before.size()).starts_with(digits);
    }
    const std::string_view id = WithoutAlgorithm(ref);
    return IsHash(id) && id.starts_with(digits);
  }
};

// What a text may mean.
class Meanings {
 public:
  explicit Meanings(std::string_view text) : text_(text), shortened_(Shortened::Read(text)) {
    if (auto full = NormaliseImage(text)) full_ = *std::move(full);
    if (auto repository = PartsOfImage(text)) repository_ = RepositoryOf(text);
  }

  // A stored name is not a ref: the image may have lost it. It only shows that the beginning of an
  // ID may be meant for the name of another image.
  bool none() const {
    return std::all_of(meant_.begin(), meant_.end(), [](const Meant& one) { return one.is_name; });
  }

  Result<void> AddStored(const NodeStore& store) {
    auto records = TRY(store.ListRecords());
    for (const ImagePulledRecord& record : records) {
      AddRef(record.image_ref, record.image_ref);
      if (!shortened_) continue;
      for (const auto& [name, credentials] : record.credential_mapping) {
        AddName(name, record.image_ref);
      }
    }
    auto entries = TRY(store.ListLedger());
    for (const PreloadedImage& entry : entries) {
      AddRef(entry.image_ref, entry.image_ref);
      if (!shortened_) continue;
      for (const std::string& name : entry.names) AddName(name, entry.image_ref);
    }
    return {};
  }

  void AddListed(const std::vector<ListedImage>& list) {
    for (const ListedImage& image : list) {
      AddRef(image.id, image.id);
      for (const std::string& digest : image.repo_digests) AddRef(digest, image.id);
      for (const std::string& tag : image.repo_tags) {
        if (tag == text_ || (!full_.empty() && tag == full_)) Add(image.id, "its name now", false);
      }
    }
  }

  Result<std::string> TheOne(std::string_view flag) {
    constexpr std::size_t kMaxNamed = 5;
    if (none()) return std::string(text_);
    if (meant_.size() == 1) return meant_.front().ref;
    std::sort(meant_.begin(), meant_.end(),
              [](const Meant& a, const Meant& b) { return a.ref < b.ref; });
    const bool all_begin = std::all_of(meant_.begin(), meant_.end(),
                                       [](const Meant& one) { return one.how == kBeginsSo; });
    std::string some;
    for (std::size_t i = 0; i < std::min(meant_.size(), kMaxNamed); ++i) {
      some += (i == 0 ? "" : ", ") + meant_[i].ref;
      if (!all_begin) some += fmt::format(" ({})", meant_[i].how);
    }
    if (meant_.size() > kMaxNamed) some += fmt::format(" and {} more", meant_.size() - kMaxNamed);
    if (all_begin) {
      return BadFlag(flag,
                     fmt::format("{} images have an ID that begins so: {}", meant_.size(), some),
                     "give more digits");
    }
    return BadFlag(
        flag, fmt::format("{} may mean {} images: {}", text_.substr(0, 200), meant_.size(), some),
        "give the whole ID of the one that you mean");
  }

 private:
  static constexpr std::string_view kBeginsSo = "its ID begins so";

  struct Meant {
    std::string ref;
    std::string_view how;
    bool is_name;  // by what the store has; not a ref
  };

  void AddRef(std::string_view ref, const std::string& image) {
    if (ref == text_) {
      Add(image, "its very ref", false);
    } else if (IsSpelling(text_) && (SameSpelling(ref, text_) || IsSameDigest(ref))) {
      Add(image, "the same digest", false);
    } else if (shortened_ && shortened_->Begins(ref)) {
      Add(image, kBeginsSo, false);
    }
  }

  // `nginx@sha256:…` and `docker.io/library/nginx@sha256:…`.
  bool IsSameDigest(std::string_view ref) const {
    if (ref.find(kBeforeDigest) == std::string_view::npos || repository_.empty()) return false;
    const auto at = text_.find(kBeforeDigest);
    return at != std::string_view::npos && ref.ends_with(text_.substr(at)) && IsSpelling(ref) &&
           RepositoryOf(ref) == repository_;
  }

  void AddName(std::string_view name, const std::string& image) {
    if (PartsOfImage(name) && RepositoryOf(name) == repository_) {
      Add(image, "its name", true);
    }
  }

  void Add(const std::string& ref, std::string_view how, bool is_name) {
    for (Meant& one : meant_) {
      if (!SameSpelling(one.ref, ref)) continue;
      // If the store has this exact ref, ask for it under that.
      if (ref == text_) one.ref = ref;
      one.is_name = one.is_name && is_name;
      return;
    }
    meant_.push_back({ref, how, is_name});
  }

  std::string_view text_;
  std::optional<Shortened> shortened_;
  std::string full_;        // empty: `text_` does not parse
  std::string repository_;  // empty: likewise
  std::vector<Meant> meant_;
};

// The list's spelling of what `name` is short for; empty: none.
std::string FullFormIn(const std::vector<ListedImage>& list, std::string_view name) {
  const auto full = NormaliseImage(name);
  if (!full || *full == name) return {};
  const bool listed = std::any_of(list.begin(), list.end(),
                                  [&](const ListedImage& image) { return Has(image, *full); });
  return listed ? *full : std::string();
}

}  // namespace

bool IsSpelling(std::string_view text) {
  if (IsHash(WithoutAlgorithm(text))) return true;
  const auto parts = PartsOfImage(text);
  return parts && !parts->digest.empty() && parts->tag.empty() &&
         parts->digest.starts_with(kAlgorithm) && IsHash(WithoutAlgorithm(parts->digest));
}

bool SameSpelling(std::string_view a, std::string_view b) {
  return WithoutAlgorithm(a) == WithoutAlgorithm(b);
}

bool IsShortRef(std::string_view text) { return Shortened::Read(text).has_value(); }

Result<std::string> ResolveRef(std::string_view flag, std::string_view text, const NodeStore& store,
                               const std::vector<ListedImage>* list) {
  const bool is_name = !IsSpelling(text) && !IsShortRef(text);
  if (text.empty() || (is_name && list == nullptr)) return std::string(text);
  Meanings meanings(text);
  if (IsSpelling(text)) {
    // Without reading every record: most callers pass what the runtime said.
    const auto record = store.GetRecord({.image_ref = text});
    if (record) return std::string(text);  // the store knows the spelling
  }
  if (auto added = meanings.AddStored(store); !added) {
    if (IsShortRef(text)) return added.error();
    return std::string(text);
  }
  // Spellings of one digest are one image: what is stored counts, and the list only without it.
  if (list != nullptr && (meanings.none() || !IsSpelling(text))) meanings.AddListed(*list);
  return meanings.TheOne(flag);
}

Result<std::string> RefOnNode(std::string_view image, const NodeStore& store,
                              const std::vector<ListedImage>* list) {
  auto ref = TRY(ResolveRef("IMAGE", image, store, list));
  Meanings there(ref);
  if (list != nullptr) {
    there.AddListed(*list);
    return there.none() ? std::string() : ref;
  }
  // A name that is stored may be another image's by now.
  if (IsSpelling(ref)) TRY(there.AddStored(store));
  if (!there.none()) return ref;
  return BadFlag("IMAGE", "only the runtime knows which image on the node this is",
                 "give its list, --cri auto or --images FILE; or give --image and --image-ref");
}

std::vector<std::string> ListedNames(const std::vector<ListedImage>& list, std::string_view name) {
  std::vector<std::string> names;
  for (const ListedImage& image : list) {
    if (!Has(image, name)) continue;
    names.insert(names.end(), image.repo_tags.begin(), image.repo_tags.end());
    names.insert(names.end(), image.repo_digests.begin(), image.repo_digests.end());
  }
  return names;
}

bool Has(const ListedImage& image, std::string_view name) {
  const auto is_named = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return SameSpelling(image.id, name) || is_named(image.repo_tags) || is_named(image.repo_digests);
}

ImageIndex::ImageIndex(const std::vector<ListedImage>& list) {
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

Result<std::vector<ListedImage>> FindListed(std::string_view name,
                                            const std::vector<ListedImage>& list,
                                            std::string_view flag) {
  std::vector<ListedImage> found;
  for (const ListedImage& image : list) {
    if (Has(image, name)) found.push_back(image);
  }
  if (IsShortRef(name)) {
    Meanings meanings(name);
    meanings.AddListed(list);
    auto meant = TRY(meanings.TheOne(flag));
    if (found.empty() && meant != name) return FindListed(meant, list, flag);
  }
  if (found.empty()) {
    const std::string full = FullFormIn(list, name);
    return BadFlag(flag, fmt::format("it lists no image {}", name.substr(0, 200)),
                   full.empty() ? "write the name as the list has it, or the image's ID"
                                : "the list has " + full);
  }
  for (const ListedImage& image : found) {
    if (SameSpelling(image.id, found.front().id)) continue;
    return BadFlag(flag,
                   fmt::format("it gives the name {} to two images, {} and {}", name.substr(0, 200),
                               found.front().id, image.id),
                   "give the image's ID");
  }
  return found;
}

}  // namespace waybill::cli
