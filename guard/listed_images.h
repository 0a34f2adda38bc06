// What was seen of the runtime: its last list of images.

#ifndef WAYBILL_GUARD_LISTED_IMAGES_H_
#define WAYBILL_GUARD_LISTED_IMAGES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "guard/life.h"

namespace waybill::guard {

// Adds the spellings under which a record may name the image.
void AddSpellings(const ListedImage& image, std::set<std::string>& spellings);

class ListedImages {
 public:
  explicit ListedImages(Life& life) : life_(life) {}

  // Whether there was a list.
  bool known() const { return known_; }
  const std::vector<ListedImage>& images() const { return images_; }
  // Whether an image has this ID, in any spelling.
  bool Has(const std::string& image_ref) const;
  // The image string with this name of an intent's file, if one of their tags spells it.
  std::optional<std::string> StringOf(const std::string& name);

  // The images that can be judged. A runtime makes an image's entry and its names one after the
  // other. An image of which nothing is known, and that has no name yet, is judged by a later list;
  // until then a placeholder closes it.
  Result<std::vector<ListedImage>> WithoutNameless(const std::vector<ListedImage>& images);
  void Take(std::vector<ListedImage> images);

 private:
  Life& life_;
  bool known_ = false;
  std::vector<ListedImage> images_;
  // Their names, in all spellings, by the names of their intents. Made when it is needed.
  std::optional<std::map<std::string, std::string>> strings_;
  std::map<std::string, std::int64_t> nameless_;  // IDs of images without a name, since when
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_LISTED_IMAGES_H_
