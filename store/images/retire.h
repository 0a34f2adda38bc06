// What a list of images lacks (KEP-2535, PruneUnknownRecords): its row is away for as long as it is
// retained, in time that the node ran, and then goes.

#ifndef WAYBILL_STORE_IMAGES_RETIRE_H_
#define WAYBILL_STORE_IMAGES_RETIRE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/images/images.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// When a record goes: it is not in the list, and old enough by one of two measures. If the image is
// not on the node under any handler, it is away first, and goes after `remember`.
struct RetireLimit {
  bool by_stamp = true;
  std::uint64_t token = 0;  // by_stamp: goes if its stamp is not above this
  Timestamp until;          // otherwise, Mode::kKubelet: if last updated before this, or never
  // Subjects that stay, and what no list ever had: an image on the list was left unjudged, and may
  // be the one that this is about, under another ref.
  const std::set<std::string>* spared = nullptr;
  std::chrono::seconds remember{0};  // 0: nothing is away
};

// The images on the node, by every digest that they are listed or known under. Mode::kKubelet
// compares refs as they are.
class OnNode {
 public:
  // nullopt: listed without a handler, so it may be any handler's.
  using Handlers = std::set<std::optional<std::string>>;

  explicit OnNode(const Images& images) : images_(images) {}
  Result<void> Add(const std::string& id, const std::vector<std::string>& digests,
                   const std::optional<std::string>& runtime_handler);
  // The handlers under which the row's image is listed; none: it is not. kRecord: also by the ref
  // that a pull returned. That may be an index's, and have brought another image of it: what was
  // preloaded does not stay by it.
  enum class As : std::uint8_t { kRecord, kPreloaded };
  Result<Handlers> Find(const ImageRow& row, As as) const;

 private:
  const Images& images_;
  std::unordered_map<std::string, Handlers> handlers_;
};

// The part of the table that one transaction looks at: from `first` to the end of the subject with
// which `most` rows have changed.
struct RetirePart {
  Key16 first;
  std::size_t most = std::numeric_limits<std::size_t>::max();
  PruneReport before = {};  // of the parts before it
};
struct RetiredPart {
  PruneReport report;         // of this part and of those before it
  std::optional<Key16> next;  // where the next part begins; nullopt: this was the last
  // A record went that no list ever had: what it is about may be listed under another ref.
  bool never_listed = false;
};

// Instead of kMaxRemembered, in the whole process.
void SetMostRememberedForTests(std::size_t most);

Result<RetiredPart> RetireRecords(Images& images, const OnNode& on_node, const RetireLimit& limit,
                                  const RetirePart& part);

// What was preloaded, is not listed, and not newer than the token: some `most` of it. What is
// spared goes, too, since it opens. `only_recorded`: of images that have a record.
struct RetiredPreloaded {
  std::uint64_t entries = 0;  // that went
  bool more = false;          // others are left
};
Result<RetiredPreloaded> RetirePreloaded(Images& images, const OnNode& on_node,
                                         const RetireLimit& limit, bool only_recorded,
                                         std::size_t most);

// Of more records, or images that only were preloaded, than are retained the oldest go; records
// that a list closed after others, and never an operator's closing. For records a pull of anything
// stands, for as long as they would have been away.
Result<void> KeepWithinBound(Images& images);

// Aliases, and rows that say nothing more, of images that are neither listed nor known. Only for a
// list that was judged: an alias tells the image of a record that went under another ID.
Result<void> ForgetUnknown(Images& images, const OnNode& on_node, std::uint64_t token);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_RETIRE_H_
