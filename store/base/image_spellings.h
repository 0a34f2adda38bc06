// Decides which image strings name the same repository or the same image, which image refs are
// spellings of one digest, and what a pull of an image string may have brought.

#ifndef WAYBILL_STORE_BASE_IMAGE_SPELLINGS_H_
#define WAYBILL_STORE_BASE_IMAGE_SPELLINGS_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/image_name.h"

namespace waybill::internal {

// As ParseImage, which scans usual images faster and must give the same answer.
std::optional<ImageParts> ParseImageBytes(std::string_view image);

// The parts that RepositoryOf(image) is made of, in order; some are empty. Two images name the same
// repository exactly if their parts are equal. Allocates nothing.
using RepositoryParts = std::array<std::string_view, 3>;
RepositoryParts RepositoryPartsOf(std::string_view image);

// `image` and every other string with the same full form; only `image` if it has no full form. Used
// if only the hash of a string is known.
std::vector<std::string> EquivalentImages(std::string_view image);

// The digest that an image ref spells: of `sha256:<hex>`, `<64 hex digits>` and `repo@sha256:<hex>`
// it is `sha256:<hex>`. A ref without a digest spells itself. Allocates nothing.
class Spelling {
 public:
  explicit Spelling(std::string_view ref);
  Spelling(const Spelling&) = delete;
  Spelling& operator=(const Spelling&) = delete;
  std::string_view text() const { return text_; }

 private:
  std::array<char, 71> buffer_;  // "sha256:" and 64 digits
  std::string_view text_;
};
// The same, as a string.
std::string SpellingOf(std::string_view ref);
// `ref` and the other ways to write the same digest without a repository.
std::vector<std::string> PlainSpellings(std::string_view ref);

// What an image string names, for ClassifyImages. Hosts compare without case.
struct NamedImage {
  bool parses = false;
  bool has_host = false;
  std::string repository;  // in the full form
  std::string written;     // the image name, as it was written
  std::string tag;         // `latest` if the string has neither tag nor digest, and can get one
  std::string digest;
  bool is_bare = false;  // neither tag nor digest
  // The string is an image ID, with or without `sha256:`. No runtime pulls by ID: CRI-O refuses,
  // and containerd takes the first form for docker.io/library/sha256:<hex>.
  bool is_id = false;
};
NamedImage ReadName(std::string_view image);

// Whether a pull of this string may give an image any name: it does not parse, or has no registry
// host, and the runtime completes such strings with other registries than docker.io.
bool GivesAnything(const NamedImage& pulled, bool docker_hub_only);
// At a first start: whether a pull of a string without a host may have given the name, as a kubelet
// would presume it: a registry, or an alias, that ends in what was written.
bool CouldComplete(const NamedImage& pulled, const NamedImage& name);
// Whether a pull of a string that does not give anything may have given the name, which parses.
bool CouldGive(const NamedImage& pulled, const NamedImage& name);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_IMAGE_SPELLINGS_H_
