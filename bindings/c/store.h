// The handles of stores: a gate admits calls until it is closed, and then waits for those inside.

#ifndef WAYBILL_BINDINGS_C_STORE_H_
#define WAYBILL_BINDINGS_C_STORE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "bindings/c/convert.h"
#include "waybill/node_store.h"
#include "waybill/streaming.h"

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

// Marks that this thread runs a callback of `store`: a call back into that store would wait for
// itself.
class CallbackScope {
 public:
  explicit CallbackScope(const void* store) : store_(store), outer_(innermost_) {
    innermost_ = this;
  }
  ~CallbackScope() { innermost_ = outer_; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  static bool IsInside(const void* store) {
    for (const CallbackScope* scope = innermost_; scope != nullptr; scope = scope->outer_) {
      if (scope->store_ == store) return true;
    }
    return false;
  }

 private:
  static thread_local const CallbackScope* innermost_;
  const void* store_;
  const CallbackScope* outer_;
};

// What a handle of C is.
template <typename Class>
struct Handle {
  using Store = Class;
  Gate gate;
  std::unique_ptr<Class> store;
};

}  // namespace waybill::c

struct waybill_store : waybill::c::Handle<waybill::NodeStore> {};
struct waybill_streaming_store : waybill::c::Handle<waybill::StreamingStore> {};

namespace waybill::c {

// Callbacks of C as those of C++. `store`: the handle that they belong to; null for a call without
// one.
Clock ToClock(waybill_clock clock, void* context, const void* store);
BootClock ToBootClock(waybill_boot_clock clock, void* context, const void* store);
Progress ToProgress(waybill_progress progress, void* context, const void* store);

Witness ToWitness(std::int32_t kind, waybill_string path, Arguments& arguments);

// kInvalidArgument: a null pointer, or a call from a callback of the store.
Result<void> CheckHandle(const void* store);

// While it lives, the store can't be closed. False: it must not be used, and Refusal says why.
template <typename H>
class Visit {
 public:
  explicit Visit(H* store)
      : store_(store != nullptr && !CallbackScope::IsInside(store) && store->gate.Enter()
                   ? store
                   : nullptr) {}
  ~Visit() {
    if (store_ != nullptr) store_->gate.Leave();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  explicit operator bool() const { return store_ != nullptr; }

 private:
  H* store_;
};
Error Refusal(const void* store);

// Runs `body(Store&, Arguments&)`, which returns Result<void>, during a visit.
template <typename H, typename Body>
waybill_code OnStore(H* store, waybill_error** error, const Body& body) noexcept {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    const Visit visit(store);
    if (!visit) return Refusal(store);
    return body(*store->store, arguments);
  });
}

// Opens with `open(H*, Arguments&)`. On success the handle is the caller's.
template <typename H, typename Open>
waybill_code MakeHandle(H** store, waybill_error** error, const Open& open) noexcept {
  if (store != nullptr) *store = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    arguments.Given(store, "store");
    auto made = std::make_unique<H>();
    Result<std::unique_ptr<typename H::Store>> opened = open(made.get(), arguments);
    if (!opened) return opened.error();
    made->store = *std::move(opened);
    *store = made.release();
    return {};
  });
}

template <typename H>
waybill_code CloseHandle(H* store, waybill_error** error) noexcept {
  return Call(error, [&](Arguments&) -> Result<void> {
    if (auto checked = CheckHandle(store); !checked) return checked;
    if (!store->gate.Close()) {
      return Error{ErrorCode::kClosed, "the store is closed already", {}};
    }
    return store->store->Close();
  });
}

template <typename H>
void FreeHandle(H* store) noexcept {
  if (store == nullptr || CallbackScope::IsInside(store)) return;
  if (!store->gate.closed()) static_cast<void>(CloseHandle(store, nullptr));
  delete store;
}

// *out = what `get` returns of the store. `name` is that of the argument `out`.
template <typename H, typename C, typename Get>
waybill_code Query(H* store, C** out, const char* name, waybill_error** error,
                   const Get& get) noexcept {
  if (out != nullptr) *out = nullptr;
  return OnStore(store, error, [&](auto& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(out, name)) return arguments.error();
    return Give(get(opened), out);
  });
}

}  // namespace waybill::c

#endif  // WAYBILL_BINDINGS_C_STORE_H_
