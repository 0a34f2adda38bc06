// The images on the node, as `crictl images -o json` prints them:
//
//   {"images":[{"id":"sha256:…","repoTags":["…"],"repoDigests":["…"],"pinned":false,
//               "size":"123","spec":{"runtimeHandler":"…", …}, …}]}
//
// Records of images that are not in a complete list are removed. So a missing list or an image
// without an ID is an error, not an empty list.

#include <charconv>
#include <utility>

#include "runtime/files/documents.h"
#include "store/base/caught.h"
#include "store/base/described.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::JsonText;

struct CrictlImage : ListedImage {
  JsonText size = {};

  void Describe(auto& v) const {
    v.Optional("id", id, {.bytes = kMaxImageRefBytes});
    v.Optional("repoTags", repo_tags, {.bytes = kMaxImageBytes});
    v.Optional("repoDigests", repo_digests, {.bytes = kMaxImageBytes});
    v.OptionalWithin("spec", [&](auto& spec) {
      // Without its handler the image counts as the default handler's.
      spec.Optional("runtimeHandler", runtime_handler, {.bytes = kMaxRuntimeHandlerBytes});
    });
    v.Optional("pinned", pinned);
    v.Optional("size", size);
  }
};

struct CrictlImages {
  std::vector<CrictlImage> images = {};

  void Describe(auto& v) const { v("images", images, {.count = kMaxListedImages}); }
};

enum class Ids : std::uint8_t { kRequired, kOrNames };

// Nothing is decided by it, so what is no number is no error: 0.
std::uint64_t SizeOf(std::string_view size) {
  if (size.size() > 1 && size.front() == '"') size = size.substr(1, size.size() - 2);
  std::uint64_t bytes = 0;
  const auto read = std::from_chars(size.data(), size.data() + size.size(), bytes);
  return read.ec == std::errc() && read.ptr == size.data() + size.size() ? bytes : 0;
}

Result<std::vector<ListedImage>> DecodeList(std::string_view json, Ids ids) {
  CrictlImages read;
  TRY(internal::ReadForeign(json, kMaxDocumentBytes, read));
  std::vector<ListedImage> list;
  for (CrictlImage& image : read.images) {
    if (image.id.empty() && ids == Ids::kRequired) {
      return internal::WrongAt(internal::PathIn("images", list.size(), "id"),
                               "it is missing or empty");
    }
    if (image.id.empty() && image.repo_tags.empty() && image.repo_digests.empty()) {
      return internal::WrongAt(internal::PathIn("images", list.size()),
                               "the image has neither an ID nor a name");
    }
    image.bytes = SizeOf(image.size.text);
    list.push_back(std::move(image));
  }
  return list;
}

}  // namespace

Result<std::vector<ListedImage>> DecodeImageList(std::string_view json) try {
  return DecodeList(json, Ids::kRequired);
} catch (...) {
  return internal::Caught();
}

Result<std::vector<ListedImage>> DecodePreloadedList(std::string_view json) try {
  return DecodeList(json, Ids::kOrNames);
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
