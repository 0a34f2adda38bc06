// How commands open a store that exists, and wait for the process that owns it (--wait).

#ifndef WAYBILL_BINDINGS_CLI_STORE_ACCESS_H_
#define WAYBILL_BINDINGS_CLI_STORE_ACCESS_H_

#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>

#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/base/try.h"
#include "store/calls/node_store.h"
#include "waybill/result.h"
#include "waybill/store.h"
#include "waybill/values.h"

namespace waybill::cli {

// Naps between attempts, each longer than the one before, up to 100 ms, and never as long as
// another process's.
class OwnerWait {
 public:
  explicit OwnerWait(const StoreFlags& flags);
  ~OwnerWait();
  OwnerWait(const OwnerWait&) = delete;
  OwnerWait& operator=(const OwnerWait&) = delete;

  // After an attempt that failed with `owned` (kOwned): naps. nullopt: try again. Otherwise the
  // error to end with: the time is up, or kInterrupted: SIGINT or SIGTERM came.
  std::optional<Error> Nap(const Error& owned);

 private:
  using Clock = std::chrono::steady_clock;

  const StoreFlags& flags_;
  const Clock::time_point began_ = Clock::now();
  std::chrono::microseconds nap_{2'000};
  std::minstd_rand draw_;
  bool catches_ = false;
  std::array<struct sigaction, 2> before_{};
};

// A nap between two requests to an owner that is busy.
void NapWhileBusy();

// Calls `request`, which returns a Result, again as long as the owner did not take it
// (kUnavailable: nothing was changed): for half a minute, or for `wait` if that is longer.
template <typename Request>
std::invoke_result_t<Request> WhileBusy(std::chrono::seconds wait, const Request& request) {
  constexpr std::chrono::seconds kLeast{30};
  const auto deadline = std::chrono::steady_clock::now() + std::max(wait, kLeast);
  while (true) {
    auto result = std::invoke(request);
    if (result || result.error().code != ErrorCode::kUnavailable ||
        std::chrono::steady_clock::now() >= deadline) {
      return result;
    }
    NapWhileBusy();
  }
}

// Calls `attempt`, which returns a Result, again as long as it is kOwned and --wait allows.
template <typename Attempt>
std::invoke_result_t<Attempt> WhileOwned(const StoreFlags& flags, const Attempt& attempt) {
  OwnerWait wait(flags);
  while (true) {
    auto result = std::invoke(attempt);
    if (result || result.error().code != ErrorCode::kOwned) return result;
    if (auto error = wait.Nap(result.error())) return *std::move(error);
  }
}

// What a store is opened with beside StoreFlags.
struct Opening {
  EvidenceOptions evidence = {};
  const ShortNamesFlag* short_names = nullptr;  // the flag that set it, if the command has one
  // For a command that only shows content by which nobody decides: it also shows a store that may
  // be older than its witness, with a warning.
  // And what no longer counts.
  bool shows_any_age = false;
};

// As the owner, to write. The store must exist and have the newest schema; its witness is the one
// that it remembers. Pulls that run go on running: a command begins one, and another ends it.
// While another process owns the store, waits as long as --wait says; so does Writer::Open, unless
// that process serves.
Result<std::unique_ptr<NodeStore>> OwnStore(const StoreFlags& flags, const Opening& how = {});

// To read: beside a live owner, on a read-only file system, and from a copy. Creates nothing in the
// store's directory (ObserveOptions::needs_slot).
Result<std::unique_ptr<NodeStore>> ObserveStore(const StoreFlags& flags, const Opening& how = {});
// The same for a store of streaming requests, as far as it is sound.
Result<VerifyReport> VerifyStreams(const StoreFlags& flags);

// Changes a store that may have a live owner: as its owner for the moment, or else through the
// socket of the process that owns it. Both do the same, and the command writes the same.
class Writer {
 public:
  // As OwnStore. With a live owner that serves, what it takes for evidence counts: kInvalidArgument
  // if a flag says otherwise. kOwned: it does not serve.
  static Result<Writer> Open(const StoreFlags& flags, const Opening& how = {});

  template <typename C>
  Result<typename C::Answer> Call(const C& call) {
    return owner_ ? owner_->Call(call) : store_->Call(call);
  }
  // The same; again while the owner is too busy to take it, for half a minute at least, or as long
  // as --wait says.
  template <typename C>
  Result<typename C::Answer> Ask(const C& call) {
    return WhileBusy(wait_, [&] { return Call(call); });
  }
  // The store's content now.
  const NodeStore& store() const { return *store_; }
  Mode rules() const { return rules_; }
  Result<void> Close() { return store_->Close(); }

 private:
  static Result<Writer> Try(const StoreFlags& flags, const Opening& how);
  Writer(std::unique_ptr<NodeStore> store, std::optional<Owner> owner, Mode rules,
         std::chrono::seconds wait)
      : store_(std::move(store)), owner_(std::move(owner)), rules_(rules), wait_(wait) {}
  std::unique_ptr<NodeStore> store_;
  std::optional<Owner> owner_;  // nullopt: this process
  Mode rules_;
  std::chrono::seconds wait_;
};

// Runs `body(Writer&)`, which returns a Result. What it returns, or the error of opening or
// closing.
template <typename Body>
std::invoke_result_t<Body, Writer&> WithWriter(Result<Writer> writer, const Body& body) {
  if (!writer) return writer.error();
  auto result = std::invoke(body, *writer);
  if (!result) return result;
  TRY(writer->Close());
  return result;
}

// Runs `body(NodeStore&)`, which returns a Result, on an opened store, and closes the store. What
// `body` returns, or the error of opening or closing.
template <typename Body>
std::invoke_result_t<Body, NodeStore&> WithStore(Result<std::unique_ptr<NodeStore>> store,
                                                 const Body& body) {
  if (!store) return store.error();
  auto result = std::invoke(body, **store);
  if (!result) return result;
  TRY((*store)->Close());
  return result;
}

// If the store does not exist, the hint says how to create one.
Error WithStartHint(Error error);

// What distrust means for images.
inline constexpr std::string_view kDistrustMeans =
    "images that have neither record nor ledger entry must be pulled before a pod may use them";

// How distrust is cleared: a command for a shell, complete except for the reason.
std::string ClearDistrustHint(const std::string& store);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_STORE_ACCESS_H_
