// Which images of a runtime's list the store has as the list says. Most lists change nothing, and
// may be long: then this is all that a list costs.
//
// An unchanged image is known, and listed under the same ID as before. Its digests are among its
// aliases, and no other image has one of these, on the list or in the store. The list's other
// images must be by themselves: new, or known under their own ID alone. Then no row of an unchanged
// image bears on what the list says of the others, nor the other way round. If digests changed
// hands, no image counts as unchanged, and each is looked at.

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

#include "store/base/image_spellings.h"
#include "store/images/images.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// Whether a record can have such a ref.
bool CanBeKnown(const ListedImage& image);
// A name that is too long does not parse.
NamedImage ReadListed(const std::string& name);
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
  // How many entries of the list are unchanged.
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
  // After Find, of unchanged images alone.
  std::vector<Mention> mentions_;
  std::vector<Key16> images_;  // FirstImageKey of those that are unchanged, sorted
  std::uint64_t count_ = 0;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_UNCHANGED_H_
