// Of which image a digest is, if an image's row says so (ImageRow::aliases): an index in memory,
// made of the rows. A row is looked for under the digest's own key first; only a miss asks here.
// Who finds a row by it compares the digest: an index that is a little older or newer than what is
// read can miss an alias, but never opens an image by it.

#ifndef WAYBILL_STORE_IMAGES_ALIASES_H_
#define WAYBILL_STORE_IMAGES_ALIASES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/disk/committer.h"
#include "store/disk/key.h"
#include "store/disk/reader_pool.h"
#include "store/disk/store_txn.h"
#include "store/images/image_row.h"
#include "waybill/result.h"

namespace waybill::internal {

class Aliases final : public UndoLog {
 public:
  // --- For changes: the committer's leader only --------------------------------------------------

  // The keys of the rows that have the digest of `subject` among their aliases.
  Result<std::vector<Key16>> Find(const StoreTxn& txn, std::string_view subject);
  // The aliases of the row change from `before`. Before it is stored.
  Result<void> Change(StoreTxn& txn, const ImageRow& row, const std::vector<std::string>& before);

  std::size_t Mark() override { return undo_.size(); }
  void RollBackTo(std::size_t mark) override;
  void Forget() override { undo_.clear(); }
  // After a commit, before its callers go on: readers see what it changed.
  void Publish() noexcept;

  // --- For decisions -----------------------------------------------------------------------------

  // As Find, on a snapshot. nullopt: it can't be read. Allocates if there is any, or if an index
  // must be made: in an observer after each change of an alias.
  std::optional<std::vector<Key16>> Find(const ReaderPool::Lease& snapshot,
                                         std::string_view subject);

 private:
  // Sorted pairs of the key of a digest, and that of a row that has it.
  using Pairs = std::vector<std::pair<Key16, Key16>>;
  struct Index {
    std::uint64_t as_of = 0;  // State::aliases_changed
    std::uint64_t seed = 0;   // of the keys: another store's index tells nothing
    Pairs pairs;
  };
  // All rows of a digest, as the transaction under way has them.
  using Changed = std::map<Key16, std::vector<Key16>>;

  static std::vector<Key16> FindIn(const Pairs& pairs, const Key16& digest);
  Result<void> Load(const StoreTxn& txn);
  std::vector<Key16>& ChangedOf(const Key16& digest);
  std::shared_ptr<const Index> Merge(const Index& before) const;

  // Of the last commit; null: not made yet. Written by the leader.
  std::atomic<std::shared_ptr<const Index>> committed_;
  std::atomic<std::shared_ptr<const Index>> scanned_;  // made by a reader
  Changed changed_;
  std::uint64_t changed_in_ = 0;  // the commit under way
  std::vector<std::pair<Key16, std::optional<std::vector<Key16>>>> undo_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_ALIASES_H_
