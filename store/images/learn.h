// What a list says of whose digest is whose. Rows that turn out to be of one image become one.

#ifndef WAYBILL_STORE_IMAGES_LEARN_H_
#define WAYBILL_STORE_IMAGES_LEARN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "store/images/images.h"
#include "store/images/judge.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// Sets `subject`, `formerly`, `was_shared` and `same_id` of each, by what is known so far.
Result<void> FindFormer(const Images& images, std::vector<ImageInList>& listed);

// What a list taught.
struct Learnt {
  std::vector<std::string> shared_digests;  // of two images
  std::uint64_t united = 0;                 // records that became part of another
};

// `is_whole`: no other image is on the node, so a digest is of those on the list only; otherwise
// also of the one that had it before. Then a row goes where the runtime has the image now.
// Sets `shared` of each.
Result<Learnt> Learn(Images& images, std::vector<ImageInList>& listed, bool is_whole);

// What is under `old` is of the image `now`. Counts what became part of another.
Result<void> Become(Images& images, const std::string& old, const std::string& now,
                    std::uint64_t& united);

// Stores a row that two became. Together they may have too many names: then it loses its
// credentials, and nothing opens less.
Result<void> PutUnited(Images& images, ImageRow one, Images::Confirms confirms);

// To the mode of `images`. To mode kubelet: a kubelet asks by the very ref, so each recorded row
// stands under each of its texts. To mode strict: rows whose refs spell one digest, or an alias,
// become one.
Result<void> ChangeMode(Images& images);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_LEARN_H_
