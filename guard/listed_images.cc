#include "guard/listed_images.h"

#include <algorithm>
#include <utility>

#include "store/base/image_spellings.h"
#include "store/base/try.h"

namespace waybill::guard {
namespace {

constexpr std::int64_t kNamesMayCome = 3 * kNanosecondsPerSecond;

}  // namespace

void AddSpellings(const ListedImage& image, std::set<std::string>& spellings) {
  spellings.insert(internal::SpellingOf(image.id));
  for (const std::string& digest : image.repo_digests) {
    spellings.insert(internal::SpellingOf(digest));
  }
}

bool ListedImages::Has(const std::string& image_ref) const {
  const std::string spelling = internal::SpellingOf(image_ref);
  return std::ranges::any_of(images_, [&](const ListedImage& image) {
    return internal::SpellingOf(image.id) == spelling;
  });
}

std::optional<std::string> ListedImages::StringOf(const std::string& name) {
  if (!strings_) {
    strings_.emplace();
    for (const ListedImage& image : images_) {
      for (const std::string& tag : image.repo_tags) {
        for (const std::string& string : internal::EquivalentImages(tag)) {
          strings_->emplace(RecordNameOf(string), string);
        }
      }
    }
  }
  const auto at = strings_->find(name);
  return at == strings_->end() ? std::nullopt : std::optional(at->second);
}

Result<std::vector<ListedImage>> ListedImages::WithoutNameless(
    const std::vector<ListedImage>& images) {
  if (life_.starting) {
    nameless_.clear();
    return images;
  }
  std::vector<ListedImage> named;
  std::map<std::string, std::int64_t> nameless;
  const std::int64_t now = life_.Now();
  for (const ListedImage& image : images) {
    if (image.repo_tags.empty() && image.repo_digests.empty()) {
      auto why = TRY(life_.store->Explain({.image = image.id, .image_ref = image.id}));
      const bool known = why.recorded || why.ledger_entry;
      const auto before = nameless_.find(image.id);
      const std::int64_t since = before == nameless_.end() ? now : before->second;
      if (!known && now - since < kNamesMayCome) {
        nameless.emplace(image.id, since);
        life_.wants_list = true;
        continue;
      }
    }
    named.push_back(image);
  }
  nameless_ = std::move(nameless);
  return named;
}

void ListedImages::Take(std::vector<ListedImage> images) {
  known_ = true;
  images_ = std::move(images);
  strings_.reset();
  life_.status.runtime_error.clear();
  life_.status.last_list = life_.options.store.clock();
  life_.status.images = images_.size();
}

}  // namespace waybill::guard
