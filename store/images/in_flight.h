// Counts this process's pulls in flight, by image and runtime handler. A change is undone if its
// transaction fails.

#ifndef WAYBILL_STORE_IMAGES_IN_FLIGHT_H_
#define WAYBILL_STORE_IMAGES_IN_FLIGHT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/base/function_ref.h"
#include "store/disk/committer.h"

namespace waybill::internal {

// Used by the committer's leader only; size() from any thread.
class InFlight final : public UndoLog {
 public:
  // 0: nothing is in flight.
  std::uint64_t Get(std::string_view image, std::string_view runtime_handler) const;
  // 0 forgets the image.
  void Set(std::string_view image, std::string_view runtime_handler, std::uint64_t count);
  // Whether a pull is in flight for a handler that `matches` accepts.
  bool AnyOf(FunctionRef<bool(std::string_view runtime_handler)> matches) const;
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }

  std::size_t Mark() override { return undo_.size(); }
  // Allocates nothing.
  void RollBackTo(std::size_t mark) override;
  void Forget() override { undo_.clear(); }

 private:
  // The key is handler, NUL (which is in no handler's name), image.
  using Entries = std::unordered_map<std::string, std::uint64_t>;
  // The entry before a change. A removed one keeps its node, so undoing allocates nothing.
  struct Undo {
    std::string key;
    std::uint64_t before = 0;
    Entries::node_type node;
  };

  Entries entries_;
  std::vector<Undo> undo_;
  std::atomic<std::size_t> size_{0};
};

// Two logs as one.
class UndoBoth final : public UndoLog {
 public:
  UndoBoth(UndoLog& one, UndoLog& other) : one_(one), other_(other) {}
  std::size_t Mark() override {
    marks_.emplace_back(one_.Mark(), other_.Mark());
    return marks_.size() - 1;
  }
  void RollBackTo(std::size_t mark) override {
    if (mark >= marks_.size()) return;
    one_.RollBackTo(marks_[mark].first);
    other_.RollBackTo(marks_[mark].second);
    marks_.resize(mark);
  }
  void Forget() override {
    one_.Forget();
    other_.Forget();
    marks_.clear();
  }

 private:
  UndoLog& one_;
  UndoLog& other_;
  std::vector<std::pair<std::size_t, std::size_t>> marks_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_IN_FLIGHT_H_
