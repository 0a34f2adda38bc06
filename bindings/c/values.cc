// Functions that need no store, and are no copy of one of C++: calls.cc has those.

#include <array>

#include "bindings/c/convert.h"
#include "store/base/try.h"

using namespace waybill::c;
using waybill::Result;

namespace {

// Makes a result of one text.
template <typename C, typename Make>
waybill_code FromText(waybill_string text, C** out, waybill_error** error,
                      const Make& make) noexcept {
  if (out != nullptr) *out = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    arguments.Given(out, "the place for the result");
    const auto view = arguments.Text(text, "text");
    if (!arguments.ok()) return arguments.error();
    return make(view, out);
  });
}

// The result of `ask` for the policy; NULL: the default policy.
template <typename Ask>
auto Asked(const waybill_policy* policy, const Ask& ask) {
  return policy == nullptr ? ask(waybill::VerificationPolicy()) : ask(policy->policy);
}

}  // namespace

int32_t waybill_classify_pull_error(waybill_string text) {
  if (text.data == nullptr) return WAYBILL_PULL_ERROR_UNKNOWN;
  try {
    return static_cast<int32_t>(waybill::ClassifyPullError({text.data, text.length}));
  } catch (...) {  // out of memory
    return WAYBILL_PULL_ERROR_UNKNOWN;
  }
}

waybill_string waybill_code_name(waybill_code code) {
  switch (code) {
    case WAYBILL_OK:
      return Borrow("ok");
    default:
      if (code < WAYBILL_INVALID_ARGUMENT || code > WAYBILL_INTERNAL ||
          (code > WAYBILL_UNAVAILABLE && code < WAYBILL_CLOSED)) {
        return Borrow("");
      }
      return Borrow(waybill::ErrorCodeName(static_cast<waybill::ErrorCode>(code)));
  }
}

waybill_string waybill_version(void) { return Borrow(WAYBILL_VERSION); }

void waybill_allow_untested_lmdb(bool allow) { waybill::AllowUntestedLmdb(allow); }
uint32_t waybill_newest_schema(void) { return waybill::kNewestSchema; }
uint32_t waybill_oldest_schema(void) { return waybill::kOldestSchema; }

waybill_string waybill_check_result_name(int32_t result) {
  return NameOf(result, waybill::CheckResult{}, waybill::CheckResult::kError,
                waybill::CheckResultName);
}
waybill_string waybill_reason_text(int32_t reason) {
  return NameOf(reason, waybill::Reason{}, waybill::Reason::kProofNotByRegistry,
                waybill::ReasonText);
}
waybill_code waybill_other_answer(int32_t reason, waybill_string hint, waybill_string** answer,
                                  waybill_error** error) {
  if (answer != nullptr) *answer = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    const auto of = arguments.OneOf(reason, waybill::Reason::kProofNotByRegistry, "reason");
    // It uses only the hint of an explanation.
    const waybill::Explanation why{.hint = arguments.String(hint, "hint")};
    arguments.Given(answer, "answer");
    if (!arguments.ok()) return arguments.error();
    return Give(Result<std::string>(waybill::OtherAnswer(of, why)), answer);
  });
}
waybill_code waybill_hash_credentials(waybill_string username, waybill_string password,
                                      waybill_string email, waybill_string** hash,
                                      waybill_error** error) {
  return FromText(
      username, hash, error, [&](std::string_view name, waybill_string** out) -> Result<void> {
        Arguments arguments;
        const waybill::AuthConfig auth{std::string(name), arguments.String(password, "password"),
                                       arguments.String(email, "email")};
        if (!arguments.ok()) return arguments.error();
        return Give(waybill::HashCredentials(auth), out);
      });
}

bool waybill_parse_image(waybill_string image, waybill_image_parts* parts) {
  const auto parsed = waybill::PartsOfImage(View(image));
  if (parts != nullptr) {
    const auto p = parsed.value_or(waybill::ImageParts{});
    *parts = {Borrow(p.name), Borrow(p.domain), Borrow(p.path), Borrow(p.tag), Borrow(p.digest)};
  }
  return parsed.has_value();
}

waybill_code waybill_normalise_image(waybill_string image, waybill_string** full,
                                     waybill_error** error) {
  return FromText(image, full, error,
                  [](std::string_view text, waybill_string** out) -> Result<void> {
                    const auto made = waybill::NormaliseImage(text);
                    if (!made) {
                      return waybill::Error{waybill::ErrorCode::kInvalidArgument,
                                            "the image string has no full form: it does not parse, "
                                            "or is ambiguous",
                                            {}};
                    }
                    return Give(Result<std::string>(*made), out);
                  });
}

waybill_code waybill_choose_manifest(const waybill_image_index* index, const waybill_platform* host,
                                     const waybill_platform* guest, size_t* chosen,
                                     waybill_error** error) {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(index, "index") || !arguments.Given(host, "host") ||
        !arguments.Given(chosen, "chosen")) {
      return arguments.error();
    }
    const auto items = arguments.Array(index->items, index->count, "index");
    std::vector<waybill::ManifestDescriptor> manifests;
    for (const auto& item : items) {
      manifests.push_back({.media_type = arguments.String(item.media_type, "media_type"),
                           .digest = arguments.String(item.digest, "digest"),
                           // The index in place of the size: it tells equal entries apart.
                           .size = manifests.size(),
                           .platform = FromCIfAny(item.platform, arguments),
                           .is_attestation = item.is_attestation});
    }
    const auto on = FromC(*host, arguments);
    const auto inside = FromCIfAny(guest, arguments);
    if (!arguments.ok()) return arguments.error();
    return waybill::ManifestFor(manifests, on, inside)
        .map([&](const waybill::ManifestDescriptor& made) { *chosen = made.size; });
  });
}

waybill_code waybill_policy_make(int32_t mode, waybill_strings patterns, int32_t scope,
                                 waybill_policy** policy, waybill_error** error) {
  if (policy != nullptr) *policy = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(policy, "policy")) return arguments.error();
    const auto m = arguments.OneOf(mode, waybill::Verification::kAlwaysVerify, "mode");
    const auto s = arguments.OneOf(scope, waybill::AllowlistScope::kPreloadedOnly, "scope");
    auto list = arguments.Strings(patterns, "patterns");
    if (!arguments.ok()) return arguments.error();
    auto made = TRY(waybill::VerificationPolicy::Make(m, std::move(list), s));
    *policy = new waybill_policy{std::move(made)};
    return {};
  });
}

waybill_code waybill_policy_with_proofs(const waybill_policy* policy,
                                        const waybill_proof_rule* rules, size_t count,
                                        waybill_policy** made, waybill_error** error) {
  if (made != nullptr) *made = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(made, "made")) return arguments.error();
    const auto list = ListFromC(rules, count, "rules", arguments);
    if (!arguments.ok()) return arguments.error();
    auto with = TRY(Asked(policy, [&](const auto& p) { return p.WithProofs(list); }));
    *made = new waybill_policy{std::move(with)};
    return {};
  });
}

void waybill_policy_free(waybill_policy* policy) { delete policy; }

int32_t waybill_policy_mode(const waybill_policy* policy) {
  return static_cast<std::int32_t>(Asked(policy, [](const auto& p) { return p.mode(); }));
}

int32_t waybill_policy_scope(const waybill_policy* policy) {
  return static_cast<std::int32_t>(Asked(policy, [](const auto& p) { return p.scope(); }));
}

bool waybill_policy_proof_counts(const waybill_policy* policy, waybill_string image_name,
                                 int32_t checker) {
  if (checker < 0 || checker > static_cast<std::int32_t>(waybill::VerifiedBy::kGuest) ||
      !IsText(image_name)) {
    return false;
  }
  return Asked(policy, [&](const auto& p) {
    return p.ProofCounts(View(image_name), static_cast<waybill::VerifiedBy>(checker));
  });
}

bool waybill_policy_requires_verification(const waybill_policy* policy, waybill_string image_name,
                                          int32_t origin) {
  if (origin < 0 || origin > static_cast<std::int32_t>(waybill::ImageOrigin::kUnknown) ||
      !IsText(image_name)) {
    return true;
  }
  return Asked(policy, [&](const auto& p) {
    return p.RequiresVerification(View(image_name), static_cast<waybill::ImageOrigin>(origin));
  });
}
