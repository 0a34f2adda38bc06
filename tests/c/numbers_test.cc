// waybill.h beside the C++ library: the same numbers, names, decisions and answers. And every
// number of the header, for ever: bindings/c/abi checks that none is missing here.

#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

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

// Kept in pieces, so that both sides borrow the same texts.
struct Question {
  std::string_view image;
  std::string_view image_ref;
  std::string_view handler;
  std::string_view ns;
  std::string_view name;
  std::string_view uid;
  std::string_view hash;
  bool by_account;

  waybill::ImageCopy copy() const { return {image, image_ref, handler}; }
};

waybill_text InC(std::string_view text) { return {text.data(), text.size()}; }

std::vector<Question> Questions() {
  std::vector<Question> all;
  const std::string_view images[] = {IMAGE, "registry.example.com/team/app", "open.example.com/a:1",
                                     "UPPER:not an image", ""};
  const std::string_view refs[] = {REF, "sha256:open", "sha256:none", ""};
  const std::string_view handlers[] = {"", "runc", "kata"};
  const std::string_view secrets[][4] = {{"tenant-a", "pull", "uid-1", "hash-1"},
                                         {"tenant-b", "other", "uid-2", "hash-1"},
                                         {"tenant-a", "pull", "uid-1", "rotated"},
                                         {"tenant-b", "other", "uid-2", ""}};
  for (const auto image : images) {
    for (const auto ref : refs) {
      for (const auto handler : handlers) {
        for (const auto& [ns, name, uid, hash] : secrets) {
          all.push_back({image, ref, handler, ns, name, uid, hash, false});
        }
        all.push_back({image, ref, handler, "tenant-a", "account", "uid-3", "", true});
      }
    }
  }
  return all;
}

waybill::Decision AskedInCpp(waybill::Store& store, const Question& q) {
  if (q.by_account) {
    waybill::PodCredentials pod;
    pod.service_account.emplace(q.uid, q.ns, q.name);
    return store.MustPull(q.copy(), pod);
  }
  const waybill::ImagePullSecretView secret(q.uid, q.ns, q.name, q.hash);
  return store.MustPull(q.copy(), waybill::PodCredentials{.secrets = {&secret, 1}});
}

waybill_decision AskedInC(waybill_store* store, const Question& q, bool in_two) {
  const waybill_copy copy{InC(q.image), InC(q.image_ref), InC(q.handler)};
  const waybill_credential one{InC(q.ns), InC(q.name), InC(q.uid), InC(q.hash)};
  waybill_credentials pod{};
  (q.by_account ? pod.service_accounts : pod.secrets) = &one;
  (q.by_account ? pod.service_account_count : pod.secret_count) = 1;
  if (!in_two) return waybill_decide(store, copy, &pod);
  waybill_look* look = nullptr;
  waybill_decision decision = waybill_decide_first(store, copy, &look);
  if (look != nullptr) decision = waybill_decide_second(store, copy, look, &pod);
  waybill_free(look);
  return decision;
}

// The same questions to observers of one store: they write nothing back.
void Decisions(const char* settings_in_c, const waybill::Settings& settings) {
  const auto questions = Questions();
  std::vector<std::array<waybill_decision, 2>> in_c;
  waybill_store* store = nullptr;
  waybill_error* error = nullptr;
  MUST(waybill_observe(scratch("judged"), waybill_text_of(settings_in_c), &store, &error));
  for (const auto& question : questions) {
    in_c.push_back({AskedInC(store, question, false), AskedInC(store, question, true)});
  }
  end_store(store);
  auto opened = waybill::Store::Observe(scratch("judged").data, settings);
  if (!CHECK(opened.has_value())) check_exit();
  std::size_t used = 0;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const waybill::Decision expected = AskedInCpp(**opened, questions[i]);
    used += expected.pull ? 0 : 1;
    for (const waybill_decision& got : in_c[i]) {
      CHECK(got.use == !expected.pull && got.credentials_read == expected.credentials_read);
      CHECK(got.result == static_cast<std::uint8_t>(expected.result));
      CHECK(got.reason == static_cast<std::uint8_t>(expected.reason));
    }
  }
  CHECK(used > 0 && used < questions.size());
  // A call has the same answer.
  const char* const parameters = "{\"imageRef\": \"" REF "\", \"hashes\": true}";
  const auto answer = (*opened)->CallJson("ListImages", parameters);
  CHECK((*opened)->Close().has_value());
  if (!CHECK(answer.has_value())) return;
  MUST(waybill_observe(scratch("judged"), waybill_text_of(settings_in_c), &store, &error));
  expect(store, "ListImages", parameters, answer->c_str());
  end_store(store);
}

void Judged() {
  waybill_error* error = nullptr;
  waybill_store* store = open_store("judged");
  pull(store);
  waybill_credentials all{};
  all.every_pod = true;
  const waybill_copy open{WAYBILL_TEXT("open.example.com/a:1"), WAYBILL_TEXT("sha256:open"),
                          WAYBILL_NONE};
  std::uint64_t number = 0;
  MUST(waybill_begin_pull(store, open, &number, &error));
  MUST(waybill_end_pull(store, open, number, WAYBILL_PULLED, &all, WAYBILL_NONE, &error));
  end_store(store);
  Decisions("", {});
  waybill::Settings kubelet{.mode = waybill::Mode::kKubelet};
  kubelet.policy.verification = waybill::Verification::kAlwaysVerify;
  Decisions("{\"mode\": \"kubelet\", \"policy\": {\"verification\": \"AlwaysVerify\"}}", kubelet);
}

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
  Judged();
  HashesAndRates();
  return check_result();
}
