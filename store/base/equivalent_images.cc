#include "store/base/equivalent_images.h"

#include <algorithm>

#include "waybill/image_name.h"

namespace waybill::internal {

std::vector<std::string> EquivalentImages(std::string_view image) {
  std::vector<std::string> images{std::string(image)};
  const auto full = NormaliseImage(image);
  if (!full) return images;
  constexpr std::string_view kLatest = ":latest";
  std::vector<std::string_view> endings{*full};
  if (full->ends_with(kLatest)) {
    endings.push_back(std::string_view(*full).substr(0, full->size() - kLatest.size()));
  }
  for (const std::string_view ending : endings) {
    images.emplace_back(ending);
    for (const std::string_view removed : {"docker.io/", "docker.io/library/"}) {
      if (!ending.starts_with(removed)) continue;
      const std::string_view rest = ending.substr(removed.size());
      for (const std::string_view added : {"", "docker.io/", "index.docker.io/"}) {
        images.push_back(std::string(added) + std::string(rest));
      }
    }
  }
  std::erase_if(images, [&](const std::string& candidate) {
    return candidate != image && NormaliseImage(candidate) != full;
  });
  std::sort(images.begin(), images.end());
  images.erase(std::unique(images.begin(), images.end()), images.end());
  return images;
}

}  // namespace waybill::internal
