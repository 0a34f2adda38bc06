// Finds an image in a list of the runtime, or in the store, by whatever an operator calls it.

#ifndef WAYBILL_BINDINGS_CLI_IMAGE_LOOKUP_H_
#define WAYBILL_BINDINGS_CLI_IMAGE_LOOKUP_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/calls/node_store.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cli {

// Whether `text` is an ID or a digest, and so a spelling of one image: 64 hex digits, `sha256:…`,
// `repository@sha256:…`. A tag may name another image tomorrow.
bool IsSpelling(std::string_view text);

// Whether both are one ID, with or without `sha256:`, or the same text.
bool SameSpelling(std::string_view a, std::string_view b);

// Whether `text` may be short for an image ID or a digest, as tables show it: 6 to 63 hex digits,
// alone, behind `sha256:`, or behind `repository@sha256:`.
bool IsShortRef(std::string_view text);

// The image ref that `text` means, by what the store has and, if there is one, by a list of the
// runtime. The one place where commands look refs up:
//   - an ID, with or without `sha256:`, and a digest mean the ref that is stored under that
//     spelling, else the listed image that has it;
//   - a short text (IsShortRef) means the one ref, stored or listed, that begins with it;
//   - a tag, in its full form too, means the listed image that has it: the store does not know
//     which image has a tag now;
//   - otherwise it means `text` itself, as a kubelet would ask.
// kInvalidArgument about `flag`, with each of them: it may mean several images. Being the exact ref
// of one image, the name of another, or the beginning of a third all count alike, so that no
// command asks about, opens or removes another image than the one that was meant. Errors of
// reading, if `text` is short: the record that can't be read may be the one.
Result<std::string> ResolveRef(std::string_view flag, std::string_view text, const NodeStore& store,
                               const std::vector<ListedImage>* list = nullptr);

// The ref of `image`, which is all that is known of it: what a pod would ask for. By the list, if
// there is one: empty if the list does not have it. kInvalidArgument: there is no list, and it is a
// name, or a digest or ID that the store does not know; or it may mean several.
Result<std::string> RefOnNode(std::string_view image, const NodeStore& store,
                              const std::vector<ListedImage>* list);

// The names by which the list has the image with that ID, tag or digest; of all its entries.
std::vector<std::string> ListedNames(const std::vector<ListedImage>& list, std::string_view name);

// Whether `image` has that ID, tag or digest, as it is written there.
bool Has(const ListedImage& image, std::string_view name);

// Where in a list, which must outlive this, an image is called what.
class ImageIndex {
 public:
  explicit ImageIndex(const std::vector<ListedImage>& list);
  // Adds the positions of the images with that ID, tag or digest.
  void Find(std::string_view name, std::vector<std::size_t>& positions) const;

 private:
  std::unordered_multimap<std::string_view, std::size_t> positions_;
};

// The entries of `list` for the image `name`, its ID, the beginning of that (IsShortRef), or a name
// as the list has it: several if it is listed for several handlers. kInvalidArgument: there is
// none, or they are of different images. `flag` gave the list.
Result<std::vector<ListedImage>> FindListed(std::string_view name,
                                            const std::vector<ListedImage>& list,
                                            std::string_view flag);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_IMAGE_LOOKUP_H_
