// The handle of a store: admits calls until it is closed, and then waits for those inside.

#ifndef WAYBILL_BINDINGS_C_STORE_H_
#define WAYBILL_BINDINGS_C_STORE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "bindings/c/call.h"
#include "waybill/node_store.h"

namespace waybill::c {

// Counts the calls inside. Each thread uses one of many cache lines, so that decisions on two
// processors share none.
class Gate {
 public:
  // False once the gate is closed. Otherwise call Leave on the same thread.
  bool Enter() {
    Count& mine = counts_[StripeOfThread()];
    mine.inside.fetch_add(1);
    if (!closed_.load()) return true;
    mine.inside.fetch_sub(1, std::memory_order_release);
    return false;
  }
  // The last thing that a call touches: the handle may be gone afterwards. So Close polls instead
  // of being woken.
  void Leave() { counts_[StripeOfThread()].inside.fetch_sub(1, std::memory_order_release); }

  // Returns once no call is inside. False: the gate was closed before.
  bool Close();
  bool closed() const { return closed_.load(); }

 private:
  static std::size_t StripeOfThread();

  struct alignas(64) Count {
    std::atomic<std::uint32_t> inside{0};
  };
  std::array<Count, 32> counts_{};
  std::atomic<bool> closed_{false};
};

// Marks that this thread runs a callback of `store`. A call back into that store would wait for
// itself.
class CallbackScope {
 public:
  explicit CallbackScope(const waybill_store* store) : store_(store), outer_(innermost_) {
    innermost_ = this;
  }
  ~CallbackScope() { innermost_ = outer_; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  static bool IsInside(const waybill_store* store) {
    for (const CallbackScope* scope = innermost_; scope != nullptr; scope = scope->outer_) {
      if (scope->store_ == store) return true;
    }
    return false;
  }

 private:
  static thread_local const CallbackScope* innermost_;
  const waybill_store* store_;
  const CallbackScope* outer_;
};

}  // namespace waybill::c

struct waybill_store {
  waybill::c::Gate gate;
  std::unique_ptr<waybill::NodeStore> store;
};

namespace waybill::c {

// Callbacks of C as those of C++. `store`: the handle that they belong to; null for a call without
// one.
Clock ToClock(waybill_clock clock, void* context, const waybill_store* store);
Progress ToProgress(waybill_progress progress, void* context, const waybill_store* store);

// Runs `body(NodeStore&)`, which returns Result<void>. The store can't be closed meanwhile.
template <typename Body>
waybill_code OnStore(waybill_store* store, waybill_error** error, const Body& body) noexcept {
  return Call(error, [&]() -> Result<void> {
    if (store == nullptr) {
      return Error{ErrorCode::kInvalidArgument, "store is a null pointer", {}};
    }
    if (CallbackScope::IsInside(store)) {
      return Error{ErrorCode::kInvalidArgument, "a callback called back into its own store", {}};
    }
    struct Inside {
      Gate& gate;
      bool is;
      ~Inside() {
        if (is) gate.Leave();
      }
    } inside{store->gate, store->gate.Enter()};
    if (!inside.is) return Error{ErrorCode::kClosed, "the store is closed", "open it again"};
    return body(*store->store);
  });
}

}  // namespace waybill::c

#endif  // WAYBILL_BINDINGS_C_STORE_H_
