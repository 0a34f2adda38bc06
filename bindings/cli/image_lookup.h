// Finds an image in a list of the runtime, or in the store, by whatever an operator calls it.

#ifndef WAYBILL_BINDINGS_CLI_IMAGE_LOOKUP_H_
#define WAYBILL_BINDINGS_CLI_IMAGE_LOOKUP_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "waybill/node_store.h"
#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::cli {

// Whether `text` is an ID or a digest, and so a spelling of one image: 64 hex digits, `sha256:…`,
// `repository@sha256:…`. A tag may name another image tomorrow.
bool IsSpelling(std::string_view text);

// Whether both are one ID, with or without `sha256:`, or the same text.
bool SameSpelling(std::string_view a, std::string_view b);

// Whether `text` may be short for an image ID, as tables show it: 6 to 63 hex digits, with or
// without `sha256:`. Never for a decision, which needs the ref itself.
bool IsShortId(std::string_view text);

// The one of `refs` that `text` is, spells, or is the beginning of, as an ID (IsShortId). nullopt:
// none. kInvalidArgument about `flag`, with some of them: it is the beginning of several IDs.
Result<std::optional<std::string>> FindRef(std::string_view flag, std::string_view text,
                                           const std::set<std::string>& refs);

// The refs of all records, and with `ledger` those of the ledger. Errors of reading.
Result<std::set<std::string>> StoredRefs(const NodeStore& store, bool ledger);

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
