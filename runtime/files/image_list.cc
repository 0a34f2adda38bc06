// The images on the node, as `crictl images -o json` prints them:
//
//   {"images":[{"id":"sha256:…","repoTags":["…"],"repoDigests":["…"],"pinned":false,
//               "size":"123","spec":{"runtimeHandler":"…", …}, …}]}
//
// Records of images that are not in a complete list are removed. So a missing list or an image
// without an ID is an error, not an empty list.

#include <charconv>

#include "runtime/files/documents.h"
#include "store/base/caught.h"
#include "store/base/json_document.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::JsonKind;
using internal::JsonValue;

// Without its handler the image would count as the default handler's.
Result<void> ReadSpec(JsonValue spec, ListedImage& out) {
  if (spec.is_null()) return {};
  if (auto fields = internal::CheckFields(spec, {"runtimeHandler"}); !fields) return fields;
  const auto handler = spec.Find("runtimeHandler");
  if (!handler) return {};
  if (!handler->is_string()) return handler->Expected("a string");
  return internal::ReadString(*handler, kMaxRuntimeHandlerBytes, out.runtime_handler);
}

enum class Ids : std::uint8_t { kRequired, kOrNames };

Result<void> ReadId(JsonValue image, Ids ids, ListedImage& out) {
  if (ids == Ids::kOrNames) {
    const auto id = image.Find("id");
    if (!id || id->is_null() || (id->is_string() && id->text().empty())) return {};
  }
  const auto id = TRY(internal::Require(image, "id", JsonKind::kString));
  if (id.text().empty()) return id.Fail("is empty");
  return internal::ReadString(id, kMaxImageRefBytes, out.id);
}

// Nothing is decided by it, so what is no number is no error: 0.
std::uint64_t SizeOf(JsonValue image) {
  const auto size = image.Find("size");
  const std::string_view digits = size ? size->text() : std::string_view();
  std::uint64_t bytes = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  return read.ec == std::errc() && read.ptr == digits.data() + digits.size() ? bytes : 0;
}

Result<void> ReadImage(JsonValue image, Ids ids, ListedImage& out) {
  TRY(internal::CheckFields(image, {"id", "repoTags", "repoDigests", "spec", "pinned"}));
  auto read = ReadId(image, ids, out);
  if (const auto tags = image.Find("repoTags"); read && tags) {
    read = internal::ReadStrings(*tags, kMaxImageBytes, out.repo_tags);
  }
  if (const auto digests = image.Find("repoDigests"); read && digests) {
    read = internal::ReadStrings(*digests, kMaxImageBytes, out.repo_digests);
  }
  if (const auto spec = image.Find("spec"); read && spec) read = ReadSpec(*spec, out);
  if (const auto pinned = image.Find("pinned"); read && pinned) {
    read = internal::ReadBool(*pinned, out.pinned);
  }
  if (!read) return read;
  out.bytes = SizeOf(image);
  if (out.id.empty() && out.repo_tags.empty() && out.repo_digests.empty()) {
    return image.Fail("the image has neither an ID nor a name");
  }
  return {};
}

Result<std::vector<ListedImage>> DecodeList(std::string_view json, Ids ids) {
  const auto document = TRY(internal::JsonDocument::Parse(json, kMaxDocumentBytes));
  const JsonValue root = document.root();
  TRY(internal::CheckFields(root, {"images"}));
  const auto images = TRY(internal::Require(root, "images", JsonKind::kArray));
  if (auto count = internal::CheckCount(images, kMaxListedImages, "images"); !count) {
    return count.error();
  }
  std::vector<ListedImage> list;
  for (const JsonValue image : images.members()) {
    TRY(ReadImage(image, ids, list.emplace_back()));
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
