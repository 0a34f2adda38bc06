// Garbage collection of records (KEP-2535, PruneUnknownRecords; store/README.md, "Lists").

#ifndef WAYBILL_STORE_NODE_EVIDENCE_PRUNE_H_
#define WAYBILL_STORE_NODE_EVIDENCE_PRUNE_H_

#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "store/engine/database/store_txn.h"
#include "waybill/values.h"

namespace waybill::internal {

// What stays although it is not listed: an image on the list was left unjudged, and may be the one
// that this is about, under another ref.
struct Spared {
  std::set<std::string>
      images;  // as in the table of spellings. Beside these: what no list ever had
};

// When a record goes: it is not in the list, and old enough by one of two measures. If the image is
// not on the node under any handler, the record is remembered first, and removed after `remember`.
struct PruneLimit {
  bool by_stamp = true;
  std::uint64_t token = 0;  // by_stamp: removed if its stamp is not above this
  Timestamp until;          // otherwise: removed if last updated before this, or never
  // If not 0: the commit in which a clock that was ahead was corrected. Records since then are
  // newer than an `until` that is ahead of the clock.
  std::uint64_t mended_at = 0;
  bool* met_ahead = nullptr;  // set if a kept record's time came from a clock ahead
  const Spared* spared = nullptr;
  // How long is remembered what goes; 0: not at all.
  std::chrono::seconds remember{0};
  // Of ledger entries only those of images that have a record.
  bool only_recorded = false;
};

// The images on the node, by every spelling that they are listed or known under. Mode::kKubelet
// compares refs as they are.
class ImagesOnNode {
 public:
  // nullopt: listed without a handler, so it may be any handler's.
  using Handlers = std::set<std::optional<std::string>>;

  ImagesOnNode(Mode rules, const StoreTxn& txn) : rules_(rules), txn_(txn) {}
  // `runtime_handler` is as stored, "" for the default one.
  Result<void> Add(const std::string& ref, const std::optional<std::string>& runtime_handler);
  // One of its repo digests. It may be known as that of an image that is not on the node any more.
  void AddDigest(const std::string& digest, const std::optional<std::string>& runtime_handler);
  // The handlers under which the image of the ref is listed; none: it is not.
  Result<Handlers> Find(const std::string& ref) const;

 private:
  Mode rules_;
  const StoreTxn& txn_;
  std::unordered_map<std::string, Handlers> handlers_;
};

// The part of the table that one transaction prunes: from `first` to the end of the ref with which
// `most` records have changed.
struct PrunePart {
  Key16 first;
  std::size_t most = std::numeric_limits<std::size_t>::max();
  PruneReport before = {};  // of the parts before it
};
struct PrunedPart {
  PruneReport report;         // of this part and of those before it
  std::optional<Key16> next;  // where the next part begins; nullopt: this was the last
  // A record went that no list ever had: what it is about may be listed under another ref.
  bool never_listed = false;
  // More were gone than are remembered. Those that went closed their images, and something must go
  // on to (PullState::kDropped).
  bool dropped = false;
};

// Instead of kMaxRemembered, in the whole process.
void SetMostRememberedForTests(std::size_t most);

Result<PrunedPart> PruneRecords(StoreTxn& txn, Mode rules, const ImagesOnNode& images,
                                const PruneLimit& limit, const PrunePart& part);

// Ledger entries of images that are not listed, and that are not newer than the token: some `most`
// of them. Those of spared images go, too, since they open, but not their spellings.
struct PrunedLedger {
  std::uint64_t entries = 0;  // that left the ledger
  bool more = false;          // others are left
};
Result<PrunedLedger> PruneLedger(StoreTxn& txn, const ImagesOnNode& images, const PruneLimit& limit,
                                 std::size_t most);

// Spellings of images that are neither listed nor remembered. Only for a list that was judged: a
// spelling tells the image of a record that went under another ID.
Result<void> PruneSpellings(StoreTxn& txn, const ImagesOnNode& images, std::uint64_t token);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_EVIDENCE_PRUNE_H_
