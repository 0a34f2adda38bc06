// Finds an image in a list of the runtime, by whatever an operator calls it.

#ifndef WAYBILL_BINDINGS_CLI_IMAGE_LOOKUP_H_
#define WAYBILL_BINDINGS_CLI_IMAGE_LOOKUP_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::cli {

// Whether `text` is an ID or a digest, and so a spelling of one image: 64 hex digits, `sha256:…`,
// `repository@sha256:…`. A tag may name another image tomorrow.
bool IsSpelling(std::string_view text);

// Whether both are one ID, with or without `sha256:`, or the same text.
bool SameSpelling(std::string_view a, std::string_view b);

// Whether `image` has that ID, tag or digest, as it is written there.
bool Has(const ImageOnNode& image, std::string_view name);

// Where in a list, which must outlive this, an image is called what.
class ImageIndex {
 public:
  explicit ImageIndex(const std::vector<ImageOnNode>& list);
  // Adds the positions of the images with that ID, tag or digest.
  void Find(std::string_view name, std::vector<std::size_t>& positions) const;

 private:
  std::unordered_multimap<std::string_view, std::size_t> positions_;
};

// The entries of `list` for the image `name`: several if it is listed for several handlers.
// kInvalidArgument: there is none, or they are of different images. `flag` gave the list.
Result<std::vector<ImageOnNode>> FindListed(std::string_view name,
                                            const std::vector<ImageOnNode>& list,
                                            std::string_view flag);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_IMAGE_LOOKUP_H_
