// The images on the node, as `crictl images -o json` prints them:
//
//   {"images":[{"id":"sha256:…","repoTags":["…"],"repoDigests":["…"],
//               "spec":{"runtimeHandler":"…", …}, …}]}
//
// Prune deletes the records of images that are not in this list. So a missing list or an image
// without an ID is an error, not an empty list.

#include "store/base/caught.h"
#include "store/base/json_document.h"
#include "waybill/kubelet_format.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using internal::JsonDocument;
using internal::JsonKind;
using internal::JsonValue;

Result<void> ReadNames(JsonValue value, std::vector<std::string>& out) {
  if (auto array = internal::CheckArray(value); !array) return array;
  for (const JsonValue item : value.members()) {
    if (!item.is_string()) return item.Expected("a string");
    if (auto read = internal::ReadString(item, kMaxImageBytes, out.emplace_back()); !read) {
      return read;
    }
  }
  return {};
}

// Without its handler the image would count as the default handler's.
Result<void> ReadSpec(JsonValue value, ImageOnNode& out) {
  if (value.kind() == JsonKind::kNull) return {};
  if (value.kind() != JsonKind::kObject) return value.Expected("an object");
  if (auto spelled = internal::CheckCase(value, "runtimeHandler"); !spelled) return spelled;
  const auto handler = value.Find("runtimeHandler");
  if (!handler) return {};
  if (!handler->is_string()) return handler->Expected("a string");
  return internal::ReadString(*handler, kMaxRuntimeHandlerBytes, out.runtime_handler);
}

Result<void> ReadImage(JsonValue value, ImageOnNode& out) {
  if (value.kind() != JsonKind::kObject) return value.Expected("an object");
  for (const std::string_view name : {"id", "repoTags", "repoDigests", "spec"}) {
    if (auto spelled = internal::CheckCase(value, name); !spelled) return spelled;
  }
  const auto id = value.Find("id");
  if (!id) return value.Fail("field \"id\" is missing");
  if (!id->is_string()) return id->Expected("a string");
  if (id->text().empty()) return id->Fail("is empty");
  if (auto read = internal::ReadString(*id, kMaxImageRefBytes, out.id); !read) return read;
  if (const auto tags = value.Find("repoTags")) {
    if (auto read = ReadNames(*tags, out.repo_tags); !read) return read;
  }
  if (const auto digests = value.Find("repoDigests")) {
    if (auto read = ReadNames(*digests, out.repo_digests); !read) return read;
  }
  if (const auto spec = value.Find("spec")) return ReadSpec(*spec, out);
  return {};
}

}  // namespace

Result<std::vector<ImageOnNode>> DecodeImageList(std::string_view json) try {
  const auto document = JsonDocument::Parse(json, kMaxDocumentBytes);
  if (!document) return document.error();
  const JsonValue root = document->root();
  if (root.kind() != JsonKind::kObject) return root.Expected("an object");
  if (auto spelled = internal::CheckCase(root, "images"); !spelled) return spelled.error();
  const auto images = root.Find("images");
  if (!images) return root.Fail("field \"images\" is missing");
  if (images->kind() != JsonKind::kArray) return images->Expected("an array");

  std::vector<ImageOnNode> list;
  for (const JsonValue image : images->members()) {
    if (auto read = ReadImage(image, list.emplace_back()); !read) return read.error();
  }
  return list;
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
