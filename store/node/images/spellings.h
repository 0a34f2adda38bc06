// One identity for an image: what a list says about the spellings of images, and records and ledger
// entries under different spellings of one image.

#ifndef WAYBILL_STORE_NODE_IMAGES_SPELLINGS_H_
#define WAYBILL_STORE_NODE_IMAGES_SPELLINGS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/engine/database/store_txn.h"
#include "store/node/images/listed_image.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// What a list taught.
struct Learnt {
  std::vector<std::string> shared_digests;  // of two images
  std::uint64_t united = 0;                 // records that became part of another
};

struct ListScope {
  // No other image is on the node, so a digest is of those on the list only; otherwise also of the
  // one that had it before.
  bool is_whole = false;
  // The image of one pull: looks for its records under its own refs, not through the whole table.
  bool one_pull = false;
};

// Sets `image`, `formerly` and `was_shared` of each, by what is known so far.
Result<void> FindFormer(const StoreTxn& txn, std::vector<ImageInList>& images);

// Stores the spellings of the listed images, and sets `shared` of each. Unites records
// and ledger entries that turn out to be of one image.
Result<Learnt> LearnSpellings(StoreTxn& txn, std::vector<ImageInList>& images,
                              const ListScope& scope);

// If the ref's image has a record under another spelling, takes it over: it is then stored under
// this ref. Otherwise nothing is changed.
Result<void> TakeOverRecord(StoreTxn& txn, std::string_view image_ref,
                            std::string_view runtime_handler);

// One record with the credentials of both that are not forgotten. If they are of different
// manifests only the newer's count, if of different guest platforms none.
Result<ImagePulledRecord> Unite(const StoreTxn& txn, ImagePulledRecord newer,
                                ImagePulledRecord older);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_IMAGES_SPELLINGS_H_
