// Which images of a runtime's list the store has as the list says. Most lists change nothing, and
// may be long: then this is all that a list costs.
//
// Such an image is known, on the node under the same ID as before, and its digests are among its
// aliases, which are no other image's on the list or in the store. All other images of the list
// must be by themselves, too: new, or known under their own ID alone. Then what the list says of
// them changes nothing of its rows, and they are judged as if it were not there. If digests changed
// hands, each image is looked at.

#ifndef WAYBILL_STORE_IMAGES_UNCHANGED_H_
#define WAYBILL_STORE_IMAGES_UNCHANGED_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/images/images.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// Whether a record can have such a ref.
bool CanBeKnown(const ListedImage& image);
// The handler of a list's entry as stored; nullopt: it names none, or there is no list of handlers,
// so there is the default one only, whatever it is called.
std::optional<std::string> HandlerInList(const std::vector<RuntimeHandler>& handlers,
                                         const ListedImage& image);

class Unchanged {
 public:
  Unchanged() = default;  // none
  static Result<Unchanged> Find(const Images& images, const std::vector<ListedImage>& list);

  // By its place in the list.
  bool Has(std::size_t place) const { return !entries_.empty() && entries_[place].is_unchanged; }
  // Whether the key is of a row of such an image.
  bool HasRow(const Key16& key) const;
  // How many images there are, each copy of another handler by itself.
  std::uint64_t count() const { return count_; }
  // Adds under which handlers those are listed that have the ref's digest (OnNode::Handlers).
  void AddHandlers(const Key16& digest, std::set<std::optional<std::string>>& handlers) const;

 private:
  struct Entry {
    Key16 image;                         // FirstImageKey of its ID
    std::optional<std::string> handler;  // as stored; nullopt: the list names none
    bool is_unchanged = false;
  };
  using Mention = std::pair<Key16, std::size_t>;
  using Places = std::span<const std::size_t>;

  void Read(const Images& images, const std::vector<RuntimeHandler>& handlers,
            const std::vector<ListedImage>& list);
  std::span<const Mention> MentionsOf(const Key16& digest) const;
  // Whether no other image on the list has the digest.
  bool IsOnlyOf(const Key16& digest, const Key16& image) const;
  // `places`: all of one ID.
  Result<bool> IsUnchanged(const Images& images, const std::vector<ListedImage>& list,
                           Places places) const;

  std::vector<Entry> entries_;  // by place
  // FirstImageKey of each ID and digest on the list, and the place of an entry that has it; sorted.
  // In the end of those that are unchanged.
  std::vector<Mention> mentions_;
  std::vector<Key16> images_;  // FirstImageKey of those that are unchanged, sorted
  std::uint64_t count_ = 0;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_UNCHANGED_H_
