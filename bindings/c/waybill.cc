// waybill.h on class Store. No exception leaves a function, every argument is checked before it is
// used, and a decision allocates nothing.

#include "bindings/c/waybill.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "store/base/caught.h"
#include "store/base/go_json.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "store/open_options.h"
#include "waybill/result.h"
#include "waybill/store.h"
#include "waybill/values.h"

using waybill::CredentialSource;
using waybill::Decision;
using waybill::Error;
using waybill::ErrorCode;
using waybill::PodCredentials;
using waybill::Result;
using waybill::internal::Guarded;

// One of the two is open.
struct waybill_store {
  // Another store may get the address of one that is gone.
  static std::uint64_t NextNumber() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
  const std::uint64_t number = NextNumber();
  waybill::internal::ManualClock clock;
  std::unique_ptr<waybill::Store> store;
  std::unique_ptr<waybill::Streams> streams;
};

// With what the first call was asked, since the second must be asked the same.
struct waybill_look {
  std::uint64_t store;
  std::string image;
  std::string image_ref;
  std::string runtime_handler;
  waybill::FirstLook first;

  waybill_look(const waybill_store& asked, const waybill_copy& copy)
      : store(asked.number),
        image(TextOf(copy.image)),
        image_ref(TextOf(copy.image_ref)),
        runtime_handler(TextOf(copy.runtime_handler)) {}
  static std::string_view TextOf(waybill_text text) {
    return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
  }
  waybill_look(const waybill_look&) = delete;
  waybill_look& operator=(const waybill_look&) = delete;
  ~waybill_look() { OPENSSL_cleanse(first.record.data(), first.record.size()); }
};

namespace {

// --- Results ---

// Before each result: what waybill_free needs to know.
struct alignas(std::max_align_t) Header {
  std::size_t size;
  void (*destroy)(void*);
};

// Null: memory ran out.
void* Allocate(std::size_t size, void (*destroy)(void*) = nullptr) noexcept {
  void* const memory = std::malloc(sizeof(Header) + size);
  return memory == nullptr ? nullptr : ::new (memory) Header{size, destroy} + 1;
}

void CopyText(std::string_view text, char* to) {
  std::copy(text.begin(), text.end(), to);
  to[text.size()] = '\0';
}

Error OutOfMemory() { return {ErrorCode::kOutOfMemory, "out of memory"}; }

Result<void> Give(std::string_view text, char** to) {
  *to = static_cast<char*>(Allocate(text.size() + 1));
  if (*to == nullptr) return OutOfMemory();
  CopyText(text, *to);
  return {};
}

// --- Errors ---

struct Code {
  ErrorCode code;
  waybill_code number;
};
constexpr Code kCodes[] = {
    {ErrorCode::kInvalidArgument, WAYBILL_INVALID_ARGUMENT},
    {ErrorCode::kLimitExceeded, WAYBILL_LIMIT_EXCEEDED},
    {ErrorCode::kNotFound, WAYBILL_NOT_FOUND},
    {ErrorCode::kDamaged, WAYBILL_DAMAGED},
    {ErrorCode::kOwned, WAYBILL_OWNED},
    {ErrorCode::kNewerSchema, WAYBILL_NEWER_SCHEMA},
    {ErrorCode::kOlderSchema, WAYBILL_OLDER_SCHEMA},
    {ErrorCode::kUnsafePath, WAYBILL_UNSAFE_PATH},
    {ErrorCode::kStoreFull, WAYBILL_STORE_FULL},
    {ErrorCode::kDiskFull, WAYBILL_DISK_FULL},
    {ErrorCode::kIo, WAYBILL_IO},
    {ErrorCode::kConflict, WAYBILL_CONFLICT},
    {ErrorCode::kNotOwner, WAYBILL_NOT_OWNER},
    {ErrorCode::kInterrupted, WAYBILL_INTERRUPTED},
    {ErrorCode::kOutcomeUnknown, WAYBILL_OUTCOME_UNKNOWN},
    {ErrorCode::kUnavailable, WAYBILL_UNAVAILABLE},
    {ErrorCode::kCredentialsUnavailable, WAYBILL_UNAVAILABLE},
    {ErrorCode::kClosed, WAYBILL_CLOSED},
    {ErrorCode::kOutOfMemory, WAYBILL_OUT_OF_MEMORY},
    {ErrorCode::kInternal, WAYBILL_INTERNAL},
};

waybill_code NumberOf(ErrorCode code) {
  const auto* const at = std::ranges::find(kCodes, code, &Code::code);
  return at == std::end(kCodes) ? WAYBILL_INTERNAL : at->number;
}

// In one piece of memory, so that one waybill_free is enough.
waybill_error* Worded(waybill_code code, const Error& error) {
  const std::string_view hint = error.hint.empty() ? HintText(error.hint_code) : error.hint;
  const std::size_t message_size = error.message.size() + 1;
  void* const memory = Allocate(sizeof(waybill_error) + message_size + hint.size() + 1);
  if (memory == nullptr) return nullptr;
  char* const message = static_cast<char*>(memory) + sizeof(waybill_error);
  CopyText(error.message, message);
  CopyText(hint, message + message_size);
  const auto retry = std::chrono::ceil<std::chrono::milliseconds>(error.retry_after).count();
  const auto retry_ms = std::clamp<std::int64_t>(retry, 0, std::numeric_limits<uint32_t>::max());
  return ::new (memory)
      waybill_error{code, static_cast<uint32_t>(retry_ms), message, message + message_size};
}

// Runs `body`, which returns Result<void>.
template <typename Body>
waybill_code Call(waybill_error** error, const Body& body) noexcept {
  if (error != nullptr) *error = nullptr;
  const Result<void> done = Guarded(body);
  if (done) return WAYBILL_OK;
  const waybill_code code = NumberOf(done.error().code);
  if (error != nullptr && code != WAYBILL_OUT_OF_MEMORY) *error = Worded(code, done.error());
  return code;
}

// --- Arguments ---

Error Wrong(std::string_view name, std::string_view what) {
  return {ErrorCode::kInvalidArgument,
          std::string(name).append(" ").append(what).append("; nothing was changed")};
}

// Almost all texts are ASCII: eight bytes at a time.
bool IsUtf8(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080U;
  std::uint64_t all = 0;
  std::uint64_t eight = 0;
  std::size_t at = 0;
  for (; at + sizeof eight <= text.size(); at += sizeof eight) {
    std::memcpy(&eight, text.data() + at, sizeof eight);
    all |= eight;
  }
  for (; at < text.size(); ++at) all |= static_cast<unsigned char>(text[at]);
  return (all & kHighBits) == 0 || waybill::ValidUtf8Prefix(text) == text.size();
}

std::string_view View(waybill_text text) {
  return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
}
bool IsSet(waybill_text text) { return text.data != nullptr || text.size == 0; }
bool IsSound(waybill_text text) { return IsSet(text) && IsUtf8(View(text)); }
bool IsSound(const waybill_copy& copy) {
  return IsSound(copy.image) && IsSound(copy.image_ref) && IsSound(copy.runtime_handler);
}
bool IsSound(const waybill_credential& one) {
  return IsSound(one.namespace_name) && IsSound(one.name) && IsSound(one.uid) && IsSound(one.hash);
}

// Checks arguments one after the other, and remembers the first that is wrong.
class Arguments {
 public:
  void Given(const void* pointer, std::string_view name) {
    if (pointer == nullptr) Refuse(name, "is a null pointer");
  }
  std::string_view Text(waybill_text text, std::string_view name) {
    if (!IsSet(text)) {
      Refuse(name, "is a null pointer with a size");
    } else if (!IsUtf8(View(text))) {
      Refuse(name, "is not UTF-8");
    }
    return View(text);
  }
  // The system would read only up to a zero byte.
  std::string_view Path(waybill_text path, std::string_view name) {
    const std::string_view text = Text(path, name);
    if (text.find('\0') != std::string_view::npos) Refuse(name, "has a zero byte in it");
    return text;
  }
  std::string_view Name(const char* name) {
    Given(name, "name");
    return Text(waybill_text_of(name), "name");
  }
  waybill::ImageCopy Copy(const waybill_copy& copy) {
    return {.image = Text(copy.image, "copy.image"),
            .image_ref = Text(copy.image_ref, "copy.image_ref"),
            .runtime_handler = Text(copy.runtime_handler, "copy.runtime_handler")};
  }
  std::span<const waybill_credential> List(const waybill_credential* items, std::size_t count,
                                           std::string_view name) {
    if (items != nullptr) return {items, count};
    if (count > 0) Refuse(name, "is a null pointer with a count");
    return {};
  }
  void Refuse(std::string_view name, std::string_view what) {
    if (ok_) ok_ = Wrong(name, what);
  }
  const Result<void>& ok() const { return ok_; }

 private:
  Result<void> ok_;
};

// The store that most functions need.
Result<waybill::Store*> StoreOf(waybill_store* handle) {
  if (handle == nullptr) return Wrong("store", "is a null pointer");
  if (handle->store == nullptr) return Wrong("store", "is one of streams");
  return handle->store.get();
}

// Opens by `open(waybill_store&, Arguments&)`. On success the handle is the caller's.
template <typename Open>
waybill_code Opened(waybill_store** store, waybill_error** error, const Open& open) noexcept {
  if (store != nullptr) *store = nullptr;
  return Call(error, [&]() -> Result<void> {
    Arguments arguments;
    arguments.Given(store, "store");
    TRY(arguments.ok());
    auto made = std::make_unique<waybill_store>();
    TRY(open(*made, arguments));
    *store = made.release();
    return {};
  });
}

// --- Decisions ---

// The words are so short that a std::string does not allocate for them.
Error NoCredentials(const char* why) { return {ErrorCode::kCredentialsUnavailable, why}; }

// A pod's credentials as the caller gave them.
class GivenCredentials final : public CredentialSource {
 public:
  GivenCredentials(const waybill_credentials* given, waybill::FirstLook* first)
      : given_(given), first_(first) {}

  Result<PodCredentials> Fetch() override {
    if (given_ == nullptr) return NoCredentials("unavailable");
    const std::size_t count = given_->secret_count;
    const std::size_t accounts = given_->service_account_count;
    if ((count > 0 && given_->secrets == nullptr) ||
        (accounts > 0 && given_->service_accounts == nullptr) || accounts > 1) {
      return NoCredentials("they are wrong");
    }
    auto* const few = reinterpret_cast<waybill::ImagePullSecretView*>(few_.data());
    if (count > kFew) many_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const waybill_credential& secret = given_->secrets[i];
      if (!IsSound(secret)) return NoCredentials("they are wrong");
      const waybill::ImagePullSecretView view{View(secret.uid), View(secret.namespace_name),
                                              View(secret.name), View(secret.hash)};
      if (count > kFew) {
        many_.push_back(view);
      } else {
        ::new (few + i) waybill::ImagePullSecretView(view);
      }
    }
    PodCredentials pod{.secrets = {count > kFew ? many_.data() : few, count}};
    if (accounts == 1) {
      const waybill_credential& account = given_->service_accounts[0];
      if (!IsSound(account)) return NoCredentials("they are wrong");
      pod.service_account.emplace(View(account.uid), View(account.namespace_name),
                                  View(account.name));
    }
    return pod;
  }
  bool may_block() const override { return false; }
  waybill::FirstLook* first_look() override { return first_; }

 private:
  const waybill_credentials* given_;
  waybill::FirstLook* first_;
  // Not made before they are needed: that would take as long as a tenth of a decision.
  static constexpr std::size_t kFew = 8;
  alignas(waybill::ImagePullSecretView)
      std::array<std::byte, kFew * sizeof(waybill::ImagePullSecretView)> few_;
  std::vector<waybill::ImagePullSecretView> many_;
};

waybill_decision ToC(const Decision& decision) {
  return {.use = !decision.pull,
          .credentials_read = decision.credentials_read,
          .result = static_cast<uint8_t>(decision.result),
          .reason = static_cast<uint8_t>(decision.reason)};
}

// A look at `memory`, which is freed if there is no room for what it holds.
waybill_look* MadeAt(void* memory, const waybill_store& store, const waybill_copy& copy) {
  try {
    return ::new (memory) waybill_look(store, copy);
  } catch (...) {
    std::free(static_cast<Header*>(memory) - 1);
    throw;
  }
}

// "Pull", unless a store says otherwise. `keep`, if it is not null, gets what a second call needs.
waybill_decision Decide(waybill_store* store, const waybill_copy& copy, CredentialSource& source,
                        waybill_look** keep = nullptr) noexcept {
  try {
    if (store == nullptr || store->store == nullptr || !IsSound(copy)) return ToC({});
    const Decision decision = store->store->MustPull(
        {View(copy.image), View(copy.image_ref), View(copy.runtime_handler)}, source);
    if (keep != nullptr && decision.reason == waybill::Reason::kCredentialsNeeded) {
      void* const memory = Allocate(sizeof(waybill_look), [](void* made) {
        static_cast<waybill_look*>(made)->~waybill_look();
      });
      if (memory != nullptr) {
        *keep = MadeAt(memory, *store, copy);
        (*keep)->first = std::move(*source.first_look());
      }
    }
    return ToC(decision);
  } catch (...) {
    return ToC({});  // memory ran out
  }
}

bool IsOf(const waybill_look& look, const waybill_store* store, const waybill_copy& copy) {
  return store != nullptr && look.store == store->number && look.image == View(copy.image) &&
         look.image_ref == View(copy.image_ref) &&
         look.runtime_handler == View(copy.runtime_handler);
}

// The name of a number, if there is one.
template <typename Enum>
const char* NameOf(uint8_t number, Enum last, std::string_view (*name)(Enum)) {
  return number > static_cast<uint8_t>(last) ? "" : name(static_cast<Enum>(number)).data();
}

// --- Pulls ---

std::optional<waybill::PullOutcome> OutcomeOf(int32_t outcome) {
  switch (outcome) {
    case WAYBILL_PULLED:
      return waybill::PullOutcome::kPulled;
    case WAYBILL_FAILED:
      return waybill::PullOutcome::kFailed;
    case WAYBILL_UNKNOWN:
      return waybill::PullOutcome::kUnknown;
    case WAYBILL_NOTHING:
      return waybill::PullOutcome::kNothing;
    default:
      return std::nullopt;
  }
}

waybill::ImagePullCredentials PulledWith(const waybill_credentials& from, Arguments& arguments) {
  waybill::ImagePullCredentials to;
  to.node_pods_accessible = from.every_pod;
  const auto text = [&](waybill_text member) {
    return std::string(arguments.Text(member, "a member of credentials"));
  };
  for (const auto& one : arguments.List(from.secrets, from.secret_count, "credentials.secrets")) {
    to.kubernetes_secrets.push_back(
        {text(one.uid), text(one.namespace_name), text(one.name), text(one.hash)});
  }
  for (const auto& one : arguments.List(from.service_accounts, from.service_account_count,
                                        "credentials.service_accounts")) {
    to.kubernetes_service_accounts.push_back(
        {text(one.uid), text(one.namespace_name), text(one.name)});
  }
  if (from.every_pod && from.secret_count + from.service_account_count > 0) {
    arguments.Refuse("credentials.every_pod", "is set beside credentials");
  }
  return to;
}

// --- Rate limits ---

// The state that C keeps is the bytes of a RateLimit, so that all zero is one without a limit.
static_assert(std::is_trivially_copyable_v<waybill::RateLimit>);
static_assert(sizeof(waybill::RateLimit) <= sizeof(waybill_rate_limit));

class Bucket {
 public:
  explicit Bucket(waybill_rate_limit* state) : state_(state), limit_({}, 0) {
    std::memcpy(static_cast<void*>(&limit_), state, sizeof limit_);
  }
  ~Bucket() { std::memcpy(state_, &limit_, sizeof limit_); }
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;
  waybill::RateLimit* operator->() { return &limit_; }

 private:
  waybill_rate_limit* state_;
  waybill::RateLimit limit_;
};

}  // namespace

void waybill_free(void* result) {
  if (result == nullptr) return;
  Header* const header = static_cast<Header*>(result) - 1;
  if (header->destroy != nullptr) header->destroy(result);
  OPENSSL_cleanse(header, sizeof(Header) + header->size);
  std::free(header);
}

const char* waybill_code_name(waybill_code code) {
  if (code == WAYBILL_OK) return "ok";
  const auto* const at = std::ranges::find(kCodes, code, &Code::number);
  return at == std::end(kCodes) ? "" : ErrorCodeName(at->code).data();
}

const char* waybill_version(void) { return WAYBILL_VERSION; }

waybill_code waybill_open(waybill_text directory, waybill_text loss_marker, waybill_text options,
                          waybill_store** store, waybill_error** error) {
  return Opened(store, error, [&](waybill_store& made, Arguments& arguments) -> Result<void> {
    const auto path = arguments.Path(directory, "directory");
    const auto marker = arguments.Path(loss_marker, "loss_marker");
    const auto json = arguments.Text(options, "options");
    TRY(arguments.ok());
    auto parsed = TRY(waybill::internal::OpenOptionsOf(path, marker, json, made.clock));
    made.store = TRY(waybill::Store::Open(std::move(parsed)));
    return {};
  });
}

waybill_code waybill_observe(waybill_text directory, waybill_store** store, waybill_error** error) {
  return Opened(store, error, [&](waybill_store& made, Arguments& arguments) -> Result<void> {
    const auto path = arguments.Path(directory, "directory");
    TRY(arguments.ok());
    made.store = TRY(waybill::Store::Observe(path));
    return {};
  });
}

waybill_code waybill_serve(waybill_store* store, waybill_error** error) {
  return Call(error, [&]() -> Result<void> {
    auto* const opened = TRY(StoreOf(store));
    return opened->Serve();
  });
}

waybill_code waybill_close(waybill_store* store, waybill_error** error) {
  return Call(error, [&]() -> Result<void> {
    if (store == nullptr) return Wrong("store", "is a null pointer");
    return store->store != nullptr ? store->store->Close() : store->streams->Close();
  });
}

void waybill_store_free(waybill_store* store) { delete store; }

waybill_decision waybill_decide(waybill_store* store, waybill_copy copy,
                                const waybill_credentials* credentials) {
  GivenCredentials given(credentials, nullptr);
  return Decide(store, copy, given);
}

waybill_decision waybill_decide_first(waybill_store* store, waybill_copy copy,
                                      waybill_look** look) {
  if (look == nullptr) return ToC({});
  *look = nullptr;
  waybill::DeferredCredentials deferred;
  return Decide(store, copy, deferred, look);
}

waybill_decision waybill_decide_second(waybill_store* store, waybill_copy copy, waybill_look* look,
                                       const waybill_credentials* credentials) {
  if (look == nullptr || !IsSound(copy) || !IsOf(*look, store, copy)) return ToC({});
  GivenCredentials given(credentials, &look->first);
  return Decide(store, copy, given);
}

const char* waybill_result_name(uint8_t result) {
  return NameOf(result, waybill::CheckResult::kError, &waybill::CheckResultName);
}
const char* waybill_reason_name(uint8_t reason) {
  return NameOf(reason, waybill::Reason::kProofNotByRegistry, &waybill::ReasonName);
}
const char* waybill_reason_text(uint8_t reason) {
  return NameOf(reason, waybill::Reason::kProofNotByRegistry, &waybill::ReasonText);
}

waybill_code waybill_hash_credentials(waybill_text username, waybill_text password,
                                      waybill_text email, char** hash, waybill_error** error) {
  if (hash != nullptr) *hash = nullptr;
  return Call(error, [&]() -> Result<void> {
    if (hash == nullptr) return Wrong("hash", "is a null pointer");
    if (!IsSet(username) || !IsSet(password) || !IsSet(email)) {
      return Wrong("username, password or email", "is a null pointer with a size");
    }
    waybill::AuthConfig auth{std::string(View(username)), std::string(View(password)),
                             std::string(View(email))};
    const auto made = waybill::HashCredentials(auth);
    OPENSSL_cleanse(auth.password.data(), auth.password.size());
    if (!made) return made.error();
    return Give(*made, hash);
  });
}

waybill_code waybill_begin_pull(waybill_store* store, waybill_copy copy, uint64_t* pull,
                                waybill_error** error) {
  if (pull != nullptr) *pull = 0;
  return Call(error, [&]() -> Result<void> {
    auto* const opened = TRY(StoreOf(store));
    Arguments arguments;
    arguments.Given(pull, "pull");
    const auto of = arguments.Copy(copy);
    TRY(arguments.ok());
    const auto begun = TRY(opened->BeginPull(of));
    *pull = begun.value;
    return {};
  });
}

waybill_code waybill_end_pull(waybill_store* store, waybill_copy copy, uint64_t pull,
                              int32_t outcome, const waybill_credentials* credentials,
                              waybill_text details, waybill_error** error) {
  return Call(error, [&]() -> Result<void> {
    auto* const opened = TRY(StoreOf(store));
    Arguments arguments;
    const auto of = arguments.Copy(copy);
    const auto ended = OutcomeOf(outcome);
    if (!ended) arguments.Refuse("outcome", "has no such number");
    std::optional<waybill::ImagePullCredentials> with;
    if (credentials != nullptr) with = PulledWith(*credentials, arguments);
    const auto json = arguments.Text(details, "details");
    TRY(arguments.ok());
    const auto parsed = TRY(waybill::internal::PullDetailsOf(json));
    return opened->EndPull(of, waybill::PullId{pull}, *ended, with, parsed);
  });
}

waybill_code waybill_claim_user_namespace(waybill_store* store, waybill_text pod_uid,
                                          int32_t host_users, waybill_text runtime_handler,
                                          waybill_mapping* mapping, waybill_error** error) {
  if (mapping != nullptr) *mapping = {};
  return Call(error, [&]() -> Result<void> {
    auto* const opened = TRY(StoreOf(store));
    Arguments arguments;
    arguments.Given(mapping, "mapping");
    waybill::UserNamespaceRequest request;
    request.pod_uid = arguments.Text(pod_uid, "pod_uid");
    request.runtime_handler = arguments.Text(runtime_handler, "runtime_handler");
    if (host_users < WAYBILL_HOST_USERS_UNSET || host_users > WAYBILL_HOST_USERS_FALSE) {
      arguments.Refuse("host_users", "has no such number");
    }
    if (host_users != WAYBILL_HOST_USERS_UNSET) {
      request.host_users = host_users == WAYBILL_HOST_USERS_TRUE;
    }
    TRY(arguments.ok());
    const auto claimed = TRY(opened->ClaimUserNamespace(request));
    if (!claimed.uids.empty()) {
      *mapping = {claimed.uids.front().host_id, claimed.uids.front().length};
    }
    return {};
  });
}

waybill_code waybill_call(waybill_store* store, const char* name, waybill_text parameters,
                          char** answer, waybill_error** error) {
  if (answer != nullptr) *answer = nullptr;
  return Call(error, [&]() -> Result<void> {
    Arguments arguments;
    arguments.Given(answer, "answer");
    const auto called = arguments.Name(name);
    const auto json = arguments.Text(parameters, "parameters");
    TRY(arguments.ok());
    const auto made = TRY(store == nullptr          ? waybill::Library::CallJson(called, json)
                          : store->store != nullptr ? store->store->CallJson(called, json)
                                                    : store->streams->CallJson(called, json));
    return Give(made, answer);
  });
}

waybill_code waybill_ask(waybill_text directory, const char* name, waybill_text parameters,
                         uint32_t patience_ms, char** answer, waybill_error** error) {
  if (answer != nullptr) *answer = nullptr;
  return Call(error, [&]() -> Result<void> {
    Arguments arguments;
    arguments.Given(answer, "answer");
    const auto path = arguments.Path(directory, "directory");
    const auto called = arguments.Name(name);
    const auto json = arguments.Text(parameters, "parameters");
    TRY(arguments.ok());
    const std::chrono::milliseconds patience(patience_ms);
    const auto owner = patience_ms == 0 ? waybill::Owner(path) : waybill::Owner(path, patience);
    const auto made = TRY(owner.CallJson(called, json));
    return Give(made, answer);
  });
}

const char* waybill_interface(void) { return waybill::InterfaceText().data(); }

waybill_code waybill_open_streams(waybill_text directory, waybill_text loss_marker,
                                  waybill_text options, waybill_store** store,
                                  waybill_error** error) {
  return Opened(store, error, [&](waybill_store& made, Arguments& arguments) -> Result<void> {
    const auto path = arguments.Path(directory, "directory");
    const auto marker = arguments.Path(loss_marker, "loss_marker");
    const auto json = arguments.Text(options, "options");
    TRY(arguments.ok());
    auto parsed = TRY(waybill::internal::StreamOptionsOf(path, marker, json, made.clock));
    made.streams = TRY(waybill::Streams::Open(std::move(parsed)));
    return {};
  });
}

waybill_rate_limit waybill_rate_limit_make(uint64_t bytes_per_second, uint64_t burst_bytes,
                                           int64_t now_ns) {
  const waybill::RateLimit limit({.bytes_per_second = bytes_per_second, .burst_bytes = burst_bytes},
                                 now_ns);
  waybill_rate_limit made{};
  std::memcpy(&made, &limit, sizeof limit);
  return made;
}

uint64_t waybill_rate_limit_take(waybill_rate_limit* limit, uint64_t wanted, int64_t now_ns) {
  return limit == nullptr ? 0 : Bucket(limit)->Take(wanted, now_ns);
}

void waybill_rate_limit_give_back(waybill_rate_limit* limit, uint64_t bytes) {
  if (limit != nullptr) Bucket(limit)->GiveBack(bytes);
}

int64_t waybill_rate_limit_wait(waybill_rate_limit* limit, uint64_t wanted, int64_t now_ns) {
  return limit == nullptr ? std::numeric_limits<int64_t>::max()
                          : Bucket(limit)->Wait(wanted, now_ns);
}

waybill_code waybill_set_time(waybill_store* store, int64_t unix_ns, int64_t boot_ns) {
  if (store == nullptr || !store->clock.used()) return WAYBILL_INVALID_ARGUMENT;
  store->clock.Set(unix_ns, boot_ns);
  return WAYBILL_OK;
}
