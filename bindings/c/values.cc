// Functions that need no store: names of enumerators, image names, platforms, policies, the
// kubelet's JSON.

#include <array>

#include "bindings/c/convert.h"
#include "store/base/try.h"

using namespace waybill::c;
using waybill::Result;

namespace {

// C and C++ use the same numbers for codes.

template <typename Enum>
waybill_code ParseName(waybill_string name, Result<Enum> (*parse)(std::string_view),
                       std::int32_t* number, waybill_error** error) noexcept {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    arguments.Given(number, "the place for the result");
    const auto text = arguments.Text(name, "name");
    if (!arguments.ok()) return arguments.error();
    return parse(text).map([&](Enum parsed) { *number = static_cast<std::int32_t>(parsed); });
  });
}

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

template <typename From, typename Make>
waybill_code ToText(const From* from, waybill_string** text, waybill_error** error,
                    const Make& make) noexcept {
  if (text != nullptr) *text = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(from, "the value") || !arguments.Given(text, "the place for the result")) {
      return arguments.error();
    }
    const Result<std::string> made = make(*from, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(made, text);
  });
}

// Decodes a text into a result.
template <typename C, typename T>
waybill_code Decode(waybill_string json, Result<T> (*decode)(std::string_view), C** out,
                    waybill_error** error) noexcept {
  return FromText(json, out, error,
                  [&](std::string_view text, C** to) { return Give(decode(text), to); });
}

// The result of `ask` for the policy; NULL: the default policy.
template <typename Ask>
auto Asked(const waybill_policy* policy, const Ask& ask) {
  return policy == nullptr ? ask(waybill::VerificationPolicy()) : ask(policy->policy);
}

waybill::KubeletApiVersion ToApiVersion(std::int32_t version, Arguments& arguments) {
  return arguments.OneOf(version, waybill::KubeletApiVersion::kV1Alpha1, "api_version");
}

}  // namespace

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

waybill_string waybill_rules_name(int32_t rules) {
  return NameOf(rules, waybill::Rules::kKubelet, waybill::RulesName);
}
waybill_code waybill_parse_rules(waybill_string name, int32_t* rules, waybill_error** error) {
  return ParseName(name, waybill::ParseRules, rules, error);
}
waybill_string waybill_verification_mode_name(int32_t mode) {
  return NameOf(mode, waybill::VerificationMode::kAlwaysVerify, waybill::VerificationModeName);
}
waybill_code waybill_parse_verification_mode(waybill_string name, int32_t* mode,
                                             waybill_error** error) {
  return ParseName(name, waybill::ParseVerificationMode, mode, error);
}
waybill_string waybill_pull_policy_name(int32_t policy) {
  return NameOf(policy, waybill::PullPolicy::kNever, waybill::PullPolicyName);
}
waybill_code waybill_parse_pull_policy(waybill_string name, int32_t* policy,
                                       waybill_error** error) {
  return ParseName(name, waybill::ParsePullPolicy, policy, error);
}
waybill_string waybill_check_result_name(int32_t result) {
  return NameOf(result, waybill::CheckResult::kError, waybill::CheckResultName);
}
waybill_string waybill_reason_name(int32_t reason) {
  return NameOf(reason, waybill::Reason::kProofTooOld, waybill::ReasonName);
}
waybill_string waybill_reason_text(int32_t reason) {
  return NameOf(reason, waybill::Reason::kProofTooOld, waybill::ReasonText);
}
waybill_code waybill_other_answer(int32_t reason, waybill_string hint, waybill_string** answer,
                                  waybill_error** error) {
  if (answer != nullptr) *answer = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    const auto of = arguments.OneOf(reason, waybill::Reason::kProofTooOld, "reason");
    // It uses only the hint of an explanation.
    const waybill::Explanation why{.hint = arguments.String(hint, "hint")};
    arguments.Given(answer, "answer");
    if (!arguments.ok()) return arguments.error();
    return Give(Result<std::string>(waybill::OtherAnswer(of, why)), answer);
  });
}
waybill_string waybill_credential_standing_name(int32_t standing) {
  return NameOf(standing, waybill::CredentialStanding::kForgotten, waybill::CredentialStandingName);
}
waybill_string waybill_pull_state_name(int32_t state) {
  if (state < WAYBILL_OPEN_PULL_RUNNING) return Borrow("");
  return NameOf(state, waybill::PullState::kUnknown, waybill::PullStateName);
}
waybill_string waybill_short_names_name(int32_t short_names) {
  return NameOf(short_names, waybill::ShortNames::kDockerHub, waybill::ShortNamesName);
}
waybill_code waybill_parse_short_names(waybill_string name, int32_t* short_names,
                                       waybill_error** error) {
  return ParseName(name, waybill::ParseShortNames, short_names, error);
}
waybill_string waybill_ensure_action_name(int32_t action) {
  return NameOf(action, waybill::EnsureAction::kCredentialsError, waybill::EnsureActionName);
}

waybill_code waybill_names_given_by(const waybill_open_pull* pull, int32_t short_names,
                                    waybill_strings** names, waybill_error** error) {
  if (names != nullptr) *names = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(pull, "pull") || !arguments.Given(names, "names")) {
      return arguments.error();
    }
    const auto open_pull = FromC(*pull, arguments);
    const auto how = arguments.OneOf(short_names, waybill::ShortNames::kDockerHub, "short_names");
    if (!arguments.ok()) return arguments.error();
    return Give(Result<std::vector<std::string>>(waybill::NamesGivenBy(open_pull, how)), names);
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
  const auto parsed = waybill::ParseImage(View(image));
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

waybill_code waybill_repository_of(waybill_string image, waybill_string** repository,
                                   waybill_error** error) {
  return FromText(image, repository, error, [](std::string_view text, waybill_string** out) {
    return Give(Result<std::string>(waybill::RepositoryOf(text)), out);
  });
}

waybill_code waybill_parse_platform(waybill_string text, waybill_platform** platform,
                                    waybill_error** error) {
  return Decode(text, waybill::ParsePlatform, platform, error);
}

waybill_code waybill_format_platform(const waybill_platform* platform, waybill_string** text,
                                     waybill_error** error) {
  return ToText(platform, text, error, [](const waybill_platform& from, Arguments& arguments) {
    return waybill::FormatPlatform(FromC(from, arguments));
  });
}

waybill_code waybill_normalise_platform(const waybill_platform* platform,
                                        waybill_platform** normalised, waybill_error** error) {
  if (normalised != nullptr) *normalised = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(platform, "platform") || !arguments.Given(normalised, "normalised")) {
      return arguments.error();
    }
    Result<waybill::Platform> made = waybill::NormalisePlatform(FromC(*platform, arguments));
    if (!arguments.ok()) return arguments.error();
    return Give(made, normalised);
  });
}

waybill_code waybill_decode_image_index(waybill_string json, waybill_image_index** index,
                                        waybill_error** error) {
  return Decode(json, waybill::DecodeImageIndex, index, error);
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
    return waybill::ChooseManifest(manifests, on, inside)
        .map([&](const waybill::ManifestDescriptor& made) { *chosen = made.size; });
  });
}

waybill_code waybill_decode_pulled_record(waybill_string json, waybill_image_pulled_record** record,
                                          waybill_error** error) {
  return Decode(json, waybill::DecodePulledRecord, record, error);
}
waybill_code waybill_decode_pull_intent(waybill_string json, waybill_image_pull_intent** intent,
                                        waybill_error** error) {
  return Decode(json, waybill::DecodePullIntent, intent, error);
}
waybill_code waybill_decode_preloaded_record(waybill_string json,
                                             waybill_image_preloaded_record** record,
                                             waybill_error** error) {
  return Decode(json, waybill::DecodePreloadedRecord, record, error);
}

waybill_code waybill_encode_pulled_record(const waybill_image_pulled_record* record,
                                          int32_t api_version, waybill_string** json,
                                          waybill_error** error) {
  return ToText(record, json, error, [&](const auto& from, Arguments& arguments) {
    return waybill::EncodePulledRecord(FromC(from, arguments),
                                       ToApiVersion(api_version, arguments));
  });
}
waybill_code waybill_encode_pull_intent(const waybill_image_pull_intent* intent,
                                        int32_t api_version, waybill_string** json,
                                        waybill_error** error) {
  return ToText(intent, json, error, [&](const auto& from, Arguments& arguments) {
    return waybill::EncodePullIntent({arguments.String(from.image, "image"),
                                      arguments.String(from.runtime_handler, "runtime_handler")},
                                     ToApiVersion(api_version, arguments));
  });
}
waybill_code waybill_encode_preloaded_record(const waybill_image_preloaded_record* record,
                                             int32_t api_version, waybill_string** json,
                                             waybill_error** error) {
  return ToText(record, json, error, [&](const auto& from, Arguments& arguments) {
    return waybill::EncodePreloadedRecord(FromC(from, arguments),
                                          ToApiVersion(api_version, arguments));
  });
}

waybill_code waybill_decode_image_list(waybill_string json, waybill_images_on_node** images,
                                       waybill_error** error) {
  return Decode(json, waybill::DecodeImageList, images, error);
}
waybill_code waybill_decode_pod_list(waybill_string json, waybill_strings** pod_uids,
                                     waybill_error** error) {
  return Decode(json, waybill::DecodePodList, pod_uids, error);
}
waybill_code waybill_decode_runtime_status(waybill_string json, waybill_runtime_handlers** handlers,
                                           waybill_error** error) {
  return Decode(json, waybill::DecodeRuntimeStatus, handlers, error);
}

waybill_code waybill_decode_auth_document(waybill_string json, waybill_registry_auths** auths,
                                          waybill_error** error) {
  return FromText(json, auths, error, [](std::string_view text, waybill_registry_auths** out) {
    return Give(waybill::DecodeAuthDocument(text), out, Wiping());
  });
}

waybill_code waybill_format_timestamp(waybill_timestamp time, waybill_string** text,
                                      waybill_error** error) {
  return ToText(&time, text, error,
                [](const waybill_timestamp& from, Arguments& arguments) -> Result<std::string> {
                  const auto checked = FromC(from, arguments);
                  if (!arguments.ok()) return arguments.error();
                  return waybill::FormatTimestamp(checked);
                });
}
waybill_code waybill_parse_timestamp(waybill_string text, waybill_timestamp* time,
                                     waybill_error** error) {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    arguments.Given(time, "time");
    const auto view = arguments.Text(text, "text");
    if (!arguments.ok()) return arguments.error();
    return waybill::ParseTimestamp(view).map([&](auto parsed) { *time = ToC(parsed); });
  });
}

waybill_code waybill_policy_make(int32_t mode, waybill_strings patterns, int32_t scope,
                                 waybill_policy** policy, waybill_error** error) {
  if (policy != nullptr) *policy = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(policy, "policy")) return arguments.error();
    const auto m = arguments.OneOf(mode, waybill::VerificationMode::kAlwaysVerify, "mode");
    const auto s = arguments.OneOf(scope, waybill::AllowlistScope::kPreloadedOnly, "scope");
    auto list = arguments.Strings(patterns, "patterns");
    if (!arguments.ok()) return arguments.error();
    auto made = TRY(waybill::VerificationPolicy::Make(m, std::move(list), s));
    *policy = new waybill_policy{std::move(made)};
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
