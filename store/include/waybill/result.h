// Result<T>: what every waybill function that can fail returns. Such functions and decisions do not
// throw: an exception from a callback of the caller becomes kInternal, and the change under way is
// undone. Functions that return a plain value (a spelling, an encoding) throw std::bad_alloc if
// memory runs out, and nothing else.

#ifndef WAYBILL_RESULT_H_
#define WAYBILL_RESULT_H_

#if __cplusplus < 202002L
#error "waybill's headers need C++20, which is not this compiler's default: -std=c++20"
#endif

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace [[gnu::visibility("default")]] waybill {

// What the caller of a failed call should do. Error::message says it to a person.
enum class ErrorCode : std::uint8_t {
  // The call itself is wrong: correct the argument. Unlike kLimitExceeded, no smaller input helps.
  kInvalidArgument = 1,
  // The argument is sound but larger than a documented bound (waybill/limits.h).
  kLimitExceeded,
  // The store knows for certain that nothing has that name.
  kNotFound,
  // Stored bytes do not verify. Never read it as kNotFound: something was there.
  kDamaged,
  // Another process owns the store: wait for it, or observe instead of owning. Or the store's files
  // were removed or replaced under this one: close and open again.
  kOwned,
  // The store was written by a newer schema. Use the newer waybill; nothing was touched.
  kNewerSchema,
  // The store was written by an older schema, and migrating was not allowed. Nothing was touched.
  kOlderSchema,
  // The owner, mode or type of a path is unsafe. Correct it, then try again.
  kUnsafePath,
  // The map is full: prune, or open with a larger map. Deleting still works.
  kStoreFull,
  // The file system is full: free space, then try again.
  kDiskFull,
  // The operating system refused a read or a write. The text has its reason.
  kIo,
  // Two identities share one key, or a newer state forbids the change. Nothing was changed.
  kConflict,
  // The handle is an observer's: open the store as the owner.
  kNotOwner,
  // The caller's progress callback asked to stop. What was done so far is kept.
  kInterrupted,
  // A commit failed half way, in this call or an earlier one: it may or may not be on disk. Close
  // and open again to find out.
  kOutcomeUnknown,
  // The caller's CredentialSource could not get the pod's credentials.
  kCredentialsUnavailable,
  // Nothing can be read at this moment: no reader slot is free, or an observer could not reopen
  // files that were replaced. Nothing is known to be damaged: try again. Never read it as
  // kNotFound.
  kUnavailable,
  // The handle was closed: open the store again. Never read it as kNotFound.
  kClosed = 64,
  // Memory ran out. Nothing was changed.
  kOutOfMemory = 65,
  // A callback of the caller threw an exception, or the library has a bug. Nothing was changed.
  kInternal = 66,
};

// What to do next, where it is a call of waybill. The command has words of its own for it.
enum class Hint : std::uint8_t {
  kNone = 0,
  // The store is damaged or stale. An owner that opens it recovers it.
  kRecover,
  // Part of the store can't be read. Verifying it says what is damaged; an owner recovers it.
  kVerify,
  // One record can't be read. Pulling its image again replaces it; an owner recovers the store.
  kPullAgain,
  // There is no store yet. An owner makes one.
  kCreate,
  // The store has an older schema. An owner takes it to the newest, after a backup.
  kMigrate,
  // The migration would lose something. It goes on only where the caller accepts the loss.
  kAcceptLoss,
  // The migration failed. Put back the backup that the message names.
  kRestore,
  // The backup is damaged. Take another one.
  kListBackups,
  // This version of LMDB was not tested. Use a tested one, or allow this one.
  kAllowUntestedLmdb,
  // The map is full. Prune records, or open with a larger map.
  kPruneOrEnlarge,
  // The disk refuses to read a part. Skipping what it refuses treats that as damaged.
  kSkipUnreadable,
  // The list was empty, but the store is not. List again; confirm an empty list if it is right.
  kAllowEmpty,
  // The token is not of this store. Draw one before listing the images.
  kBeginList,
  // The token is not of this store. Draw one before listing the pods.
  kBeginUsernsCleanup,
  // The registry of runtime handlers does not allow it. Load what the runtime serves.
  kLoadHandlers,
  // All ID ranges are taken. Release those of pods that are gone, or enlarge the pool.
  kFreeRanges,
  // Held pods have unverified ID ranges. Adopt the ranges of pods that live, release the others.
  kSettleHeldPods,
  // Another pod has the ID range. Release it once that pod is gone.
  kReleasePod,
  // Another file is in the witness's place. Name another path; if a store was lost, close the gap.
  kReplaceWitness,
};
inline constexpr Hint kLastHint = Hint::kReplaceWitness;

// What to do, by the names of the calls, which are the same in every language. Empty for kNone.
std::string_view HintText(Hint hint);

// The name of a code, as the command line and JSON print it ("invalidArgument").
std::string_view ErrorCodeName(ErrorCode code);

// What failed, on which path or key, and what was left unchanged; and what to do next: a hint code,
// or a hint in words, or neither.
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string message = {};
  std::string hint = {};
  Hint hint_code = Hint::kNone;
  // How long from now until the same call can succeed; 0: unknown. Only PrepareStream sets it.
  std::chrono::nanoseconds retry_after{0};

  bool has_hint() const { return !hint.empty() || hint_code != Hint::kNone; }
  // "message; hint", for a log line, with the words of HintText().
  std::string ToString() const;
};

// A value or an Error. The class is [[nodiscard]]: ignoring one does not compile under -Werror.
template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using Base = tl::expected<T, Error>;
  using Base::Base;
  // NOLINTNEXTLINE(google-explicit-constructor): a Result is made by `return Error{…}`.
  Result(Error error) : Base(tl::unexpect, std::move(error)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): what monadic members of the base return.
  Result(Base base) : Base(std::move(base)) {}
};

}  // namespace waybill

#endif  // WAYBILL_RESULT_H_
