// waybill.h beside the C++ library: the same numbers, names, hashes and rates. And every
// number of the header, for ever: bindings/c/abi checks that none is missing here.

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "support.h"
#include "waybill/store.h"

using waybill::CheckResult;
using waybill::ErrorCode;
using waybill::PullOutcome;
using waybill::Reason;

namespace {

template <std::size_t kCount>
constexpr bool InARow(int first, const int (&numbers)[kCount]) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (numbers[i] != first + static_cast<int>(i)) return false;
  }
  return true;
}

// Numbers from `first` on, each one more than the one before it.
#define ROW(first, ...) static_assert(InARow(first, {__VA_ARGS__}))
ROW(0, WAYBILL_OK, WAYBILL_INVALID_ARGUMENT, WAYBILL_LIMIT_EXCEEDED, WAYBILL_NOT_FOUND,
    WAYBILL_DAMAGED, WAYBILL_OWNED, WAYBILL_NEWER_SCHEMA, WAYBILL_OLDER_SCHEMA, WAYBILL_UNSAFE_PATH,
    WAYBILL_STORE_FULL, WAYBILL_DISK_FULL, WAYBILL_IO, WAYBILL_CONFLICT, WAYBILL_NOT_OWNER,
    WAYBILL_INTERRUPTED, WAYBILL_OUTCOME_UNKNOWN, WAYBILL_UNAVAILABLE, WAYBILL_CLOSED,
    WAYBILL_OUT_OF_MEMORY, WAYBILL_INTERNAL);
ROW(1, WAYBILL_PULLED, WAYBILL_FAILED, WAYBILL_UNKNOWN, WAYBILL_NOTHING);
ROW(0, WAYBILL_HOST_USERS_UNSET, WAYBILL_HOST_USERS_TRUE, WAYBILL_HOST_USERS_FALSE);

static_assert(static_cast<int>(PullOutcome::kPulled) == WAYBILL_PULLED);
static_assert(static_cast<int>(PullOutcome::kFailed) == WAYBILL_FAILED);
static_assert(static_cast<int>(PullOutcome::kUnknown) == WAYBILL_UNKNOWN);
static_assert(static_cast<int>(PullOutcome::kNothing) == WAYBILL_NOTHING);
// A decision that is all zero says "pull".
static_assert(!waybill_decision{}.use);

void Names() {
  constexpr ErrorCode kCodes[] = {ErrorCode::kInvalidArgument,
                                  ErrorCode::kLimitExceeded,
                                  ErrorCode::kNotFound,
                                  ErrorCode::kDamaged,
                                  ErrorCode::kOwned,
                                  ErrorCode::kNewerSchema,
                                  ErrorCode::kOlderSchema,
                                  ErrorCode::kUnsafePath,
                                  ErrorCode::kStoreFull,
                                  ErrorCode::kDiskFull,
                                  ErrorCode::kIo,
                                  ErrorCode::kConflict,
                                  ErrorCode::kNotOwner,
                                  ErrorCode::kInterrupted,
                                  ErrorCode::kOutcomeUnknown,
                                  ErrorCode::kUnavailable,
                                  ErrorCode::kClosed,
                                  ErrorCode::kOutOfMemory,
                                  ErrorCode::kInternal};
  CHECK(waybill_code_name(WAYBILL_OK) == std::string_view("ok"));
  for (std::size_t i = 0; i < std::size(kCodes); ++i) {
    CHECK(waybill_code_name(static_cast<waybill_code>(i) + 1) == ErrorCodeName(kCodes[i]));
  }
  for (const waybill_code code : {-1, WAYBILL_INTERNAL + 1, 64, INT32_MAX, INT32_MIN}) {
    CHECK(waybill_code_name(code) == std::string_view());
  }
  constexpr auto kLastResult = static_cast<unsigned>(CheckResult::kError);
  constexpr auto kLastReason = static_cast<unsigned>(Reason::kProofNotByRegistry);
  for (unsigned number = 0; number < 256; ++number) {
    const auto byte = static_cast<std::uint8_t>(number);
    const auto result = static_cast<CheckResult>(byte);
    const auto reason = static_cast<Reason>(byte);
    const bool has = number <= kLastReason;
    CHECK(waybill_result_name(byte) == (number > kLastResult ? "" : CheckResultName(result)));
    CHECK(waybill_reason_name(byte) == (has ? ReasonName(reason) : ""));
    CHECK(waybill_reason_text(byte) == (has ? ReasonText(reason) : ""));
    CHECK(has == (waybill_reason_name(byte)[0] != '\0'));
  }
  CHECK(waybill_interface() == waybill::InterfaceText());
  CHECK(waybill_version()[0] != '\0');
}

waybill_text InC(std::string_view text) { return {text.data(), text.size()}; }

void HashesAndRates() {
  waybill_error* error = nullptr;
  const std::string_view texts[] = {"", "user", "p<&\"\xe9", "\xff\xfe caf\xc3\xa9"};
  for (const auto user : texts) {
    for (const auto password : texts) {
      char* hash = nullptr;
      MUST(waybill_hash_credentials(InC(user), InC(password), InC(user), &hash, &error));
      const auto expected =
          waybill::HashCredentials({std::string(user), std::string(password), std::string(user)});
      CHECK(expected.has_value() && *expected == hash);
      waybill_free(hash);
    }
  }

  waybill_rate_limit limit = waybill_rate_limit_make(1000, 100, 5);
  waybill::RateLimit bucket({.bytes_per_second = 1000, .burst_bytes = 100}, 5);
  std::int64_t now = 5;
  for (std::uint64_t i = 1; i < 2000; ++i) {
    now += static_cast<std::int64_t>(i * 7919 % 5'000'000);
    CHECK(waybill_rate_limit_take(&limit, i % 150, now) == bucket.Take(i % 150, now));
    CHECK(waybill_rate_limit_wait(&limit, i % 90, now) == bucket.Wait(i % 90, now));
    if (i % 3 != 0) continue;
    waybill_rate_limit_give_back(&limit, 1);
    bucket.GiveBack(1);
  }
  waybill_rate_limit zero{};
  CHECK(waybill_rate_limit_take(&zero, UINT64_MAX, 5) == UINT64_MAX);
  CHECK(waybill_rate_limit_wait(&zero, UINT64_MAX, 5) == 0);
  CHECK(waybill_rate_limit_take(nullptr, 1, 0) == 0);
  CHECK(waybill_rate_limit_wait(nullptr, 1, 0) == INT64_MAX);
  waybill_rate_limit_give_back(nullptr, 1);
  // Bytes that are not a bucket's give some answer.
  for (std::uint64_t& word : limit.state) word = UINT64_MAX;
  waybill_rate_limit_give_back(&limit, UINT64_MAX);
  waybill_rate_limit_take(&limit, 1, INT64_MIN);
  waybill_rate_limit_wait(&limit, UINT64_MAX, INT64_MAX);
}

}  // namespace

int main() {
  Names();
  HashesAndRates();
  return check_result();
}
