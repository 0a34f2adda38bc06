// An image of a list, prepared for judging and for removing (store/images/observe.h).

#ifndef WAYBILL_STORE_IMAGES_LISTED_IMAGE_H_
#define WAYBILL_STORE_IMAGES_LISTED_IMAGE_H_

#include <string>
#include <vector>

#include "store/base/image_spellings.h"

namespace waybill::internal {

struct ImageInList {
  std::string id;               // as listed
  std::string runtime_handler;  // as stored: "" for the default one, or none was listed
  bool has_handler = false;     // the list names one
  bool pinned = false;
  bool imported = false;
  std::vector<std::string> names;    // those that parse
  std::vector<NamedImage> parsed;    // likewise, in the same order
  std::vector<std::string> digests;  // repo digests

  std::string subject;  // of its row (Images::Home of the ID)
  // Repo digests that another image has as well, so they are of neither.
  std::vector<std::string> shared;
  // Images that had its ID or one of its digests, and are not on this list: it may be one of them,
  // under another ID.
  std::vector<std::string> formerly;
  // Two images had one of its digests, and its ID is new: it may be either.
  bool was_shared = false;
  bool same_id = false;  // an earlier list had it by the same ID
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_LISTED_IMAGE_H_
