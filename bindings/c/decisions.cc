// Decisions. This path allocates nothing.

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/c/store.h"

struct waybill_first_look {
  waybill::FirstLook look;
};

namespace waybill::c {

waybill_decision ToC(const Decision& decision) {
  return {.pull = decision.pull,
          .credentials_read = decision.credentials_read,
          .result = static_cast<std::uint8_t>(decision.result),
          .reason = static_cast<std::uint8_t>(decision.reason)};
}

waybill_ensure_outcome ToC(const EnsureOutcome& made, Memory& memory) {
  return {.action = static_cast<std::int32_t>(made.action),
          .decided = made.decision.has_value(),
          .decision = ToC(made.decision.value_or(Decision{})),
          .message = Copy(made.message, memory)};
}

namespace {

// A pod's credentials as C++ takes them. Up to 8 secrets need no allocation.
class Views {
 public:
  // False: a null pointer with a length or a count.
  bool Set(const waybill_pod_credentials& from) {
    const std::size_t count = from.secret_count;
    if (count > 0 && from.secrets == nullptr) return false;
    ImagePullSecretView* views = few_.data();
    if (count > few_.size()) {
      many_.resize(count);
      views = many_.data();
    }
    for (std::size_t i = 0; i < count; ++i) {
      const waybill_image_pull_secret& secret = from.secrets[i];
      if (!IsText(secret.uid) || !IsText(secret.namespace_name) || !IsText(secret.name) ||
          !IsText(secret.credential_hash)) {
        return false;
      }
      views[i] = {View(secret.uid), View(secret.namespace_name), View(secret.name),
                  View(secret.credential_hash)};
    }
    credentials_.secrets = {views, count};
    if (const auto* account = from.service_account; account != nullptr) {
      if (!IsText(account->uid) || !IsText(account->namespace_name) || !IsText(account->name)) {
        return false;
      }
      credentials_.service_account.emplace(View(account->uid), View(account->namespace_name),
                                           View(account->name));
    }
    return true;
  }
  const PodCredentials& credentials() const { return credentials_; }

 private:
  std::array<ImagePullSecretView, 8> few_;
  std::vector<ImagePullSecretView> many_;
  PodCredentials credentials_;
};

Error Unavailable(const char* why) { return {ErrorCode::kCredentialsUnavailable, why, {}}; }

class GivenCredentials final : public CredentialSource {
 public:
  explicit GivenCredentials(const waybill_pod_credentials* given, FirstLook* first_look = nullptr)
      : given_(given), first_look_(first_look) {}
  Result<PodCredentials> Fetch() override {
    if (given_ == nullptr) return Unavailable("they are unavailable");
    if (!views_.Set(*given_)) return Unavailable("a null pointer with a length or a count");
    return views_.credentials();
  }
  bool may_block() const override { return false; }
  FirstLook* first_look() override { return first_look_; }

 private:
  const waybill_pod_credentials* given_;
  FirstLook* first_look_;
  Views views_;
};

class FetchedCredentials final : public CredentialSource {
 public:
  FetchedCredentials(const waybill_store* store, waybill_fetch_credentials fetch, void* context)
      : store_(store), fetch_(fetch), context_(context) {}
  Result<PodCredentials> Fetch() override {
    waybill_pod_credentials fetched{};
    if (fetch_ == nullptr) return Unavailable("there is no function to fetch them");
    {
      const CallbackScope scope(store_);
      if (!fetch_(context_, &fetched)) return Unavailable("fetching them failed");
    }
    if (!views_.Set(fetched)) return Unavailable("a null pointer with a length or a count");
    return views_.credentials();
  }

 private:
  const waybill_store* store_;
  waybill_fetch_credentials fetch_;
  void* context_;
  Views views_;
};

// "Pull", for invalid arguments.
waybill_decision Refused() noexcept { return ToC(Decision{}); }

// Stores what a second call needs, if the decision asks for one.
void Keep(const std::optional<Decision>& decision, FirstLook& look, waybill_first_look** to) {
  if (!decision || decision->reason != Reason::kCredentialsNeeded) return;
  *to = NewResult<waybill_first_look>(
      [&look](waybill_first_look& kept, Memory&) { kept.look = std::move(look); });
}

waybill_decision Decide(waybill_store* store, waybill_image_copy copy, CredentialSource& source,
                        waybill_first_look** keep = nullptr) noexcept {
  waybill_decision decision = ToC(Decision{});
  // If the store can't be used, or memory runs out, the decision stays "pull".
  try {
    const Visit visit(store);
    if (visit && IsText(copy.image) && IsText(copy.image_ref) && IsText(copy.runtime_handler)) {
      const Decision made = store->store->MustAttemptPull(
          {View(copy.image), View(copy.image_ref), View(copy.runtime_handler)}, source);
      if (keep != nullptr) Keep(made, *source.first_look(), keep);
      decision = ToC(made);
    }
  } catch (...) {
  }
  return decision;
}

waybill_code NoFirstLook(waybill_error** error) noexcept {
  return Call(error, [](Arguments& arguments) -> Result<void> {
    arguments.Given(nullptr, "first_look");
    return arguments.error();
  });
}

waybill_code Ensure(waybill_store* store, waybill_image_copy copy, int32_t pull_policy,
                    CredentialSource& source, waybill_ensure_outcome** outcome,
                    waybill_error** error, waybill_first_look** keep = nullptr) noexcept {
  if (outcome != nullptr) *outcome = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(outcome, "outcome")) return arguments.error();
    const auto policy = arguments.OneOf(pull_policy, PullPolicy::kNever, "pull_policy");
    const auto image_copy = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    const Result<EnsureOutcome> made = node_store.EnsureImage(image_copy, policy, source);
    if (keep != nullptr) Keep(made->decision, *source.first_look(), keep);
    return Give(made, outcome);
  });
}

}  // namespace
}  // namespace waybill::c

using namespace waybill::c;

waybill_decision waybill_must_attempt_pull(waybill_store* store, waybill_image_copy copy,
                                           const waybill_pod_credentials* credentials) {
  GivenCredentials given(credentials);
  return Decide(store, copy, given);
}

waybill_decision waybill_must_attempt_pull_first(waybill_store* store, waybill_image_copy copy,
                                                 waybill_first_look** first_look) {
  if (first_look == nullptr) return Refused();
  *first_look = nullptr;
  waybill::DeferredCredentials deferred;
  return Decide(store, copy, deferred, first_look);
}

waybill_decision waybill_must_attempt_pull_second(waybill_store* store, waybill_image_copy copy,
                                                  waybill_first_look* first_look,
                                                  const waybill_pod_credentials* credentials) {
  if (first_look == nullptr) return Refused();
  GivenCredentials given(credentials, &first_look->look);
  return Decide(store, copy, given);
}

waybill_decision waybill_must_attempt_pull_lazily(waybill_store* store, waybill_image_copy copy,
                                                  waybill_fetch_credentials fetch, void* context) {
  FetchedCredentials fetched(store, fetch, context);
  return Decide(store, copy, fetched);
}

waybill_code waybill_ensure_image(waybill_store* store, waybill_image_copy copy,
                                  int32_t pull_policy, const waybill_pod_credentials* credentials,
                                  waybill_ensure_outcome** outcome, waybill_error** error) {
  GivenCredentials given(credentials);
  return Ensure(store, copy, pull_policy, given, outcome, error);
}

waybill_code waybill_ensure_image_first(waybill_store* store, waybill_image_copy copy,
                                        int32_t pull_policy, waybill_first_look** first_look,
                                        waybill_ensure_outcome** outcome, waybill_error** error) {
  if (outcome != nullptr) *outcome = nullptr;
  if (first_look == nullptr) return NoFirstLook(error);
  *first_look = nullptr;
  waybill::DeferredCredentials deferred;
  const waybill_code code = Ensure(store, copy, pull_policy, deferred, outcome, error, first_look);
  if (code != WAYBILL_OK) {  // if a call fails, its results are NULL
    static_cast<void>(waybill_free(*first_look));
    *first_look = nullptr;
  }
  return code;
}

waybill_code waybill_ensure_image_second(waybill_store* store, waybill_image_copy copy,
                                         int32_t pull_policy, waybill_first_look* first_look,
                                         const waybill_pod_credentials* credentials,
                                         waybill_ensure_outcome** outcome, waybill_error** error) {
  if (outcome != nullptr) *outcome = nullptr;
  if (first_look == nullptr) return NoFirstLook(error);
  GivenCredentials given(credentials, &first_look->look);
  return Ensure(store, copy, pull_policy, given, outcome, error);
}

waybill_code waybill_ensure_image_lazily(waybill_store* store, waybill_image_copy copy,
                                         int32_t pull_policy, waybill_fetch_credentials fetch,
                                         void* context, waybill_ensure_outcome** outcome,
                                         waybill_error** error) {
  FetchedCredentials fetched(store, fetch, context);
  return Ensure(store, copy, pull_policy, fetched, outcome, error);
}
