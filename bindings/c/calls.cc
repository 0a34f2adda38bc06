// The functions of waybill.h that do what one of C++ does. Made by ./dev generate.

#include "bindings/c/described.h"
#include "bindings/c/store.h"

using namespace waybill::c;
using waybill::NodeStore;
using waybill::Result;
using waybill::StreamingStore;

waybill_string waybill_proof_checker_name(int32_t checker) {
  return NameOf(checker, waybill::VerifiedBy::kUnknown, waybill::VerifiedBy::kGuest,
                waybill::VerifiedByName);
}
waybill_code waybill_parse_proof_checker(waybill_string name, int32_t* checker,
                                         waybill_error** error) {
  return ParseName(name, waybill::ParseVerifiedBy, checker, "checker", error);
}

waybill_string waybill_pull_state_name(int32_t state) {
  return NameOf(state, waybill::PullState::kRunning, waybill::PullState::kDropped,
                waybill::PullStateName);
}

waybill_string waybill_rules_name(int32_t rules) {
  return NameOf(rules, waybill::Rules::kClosed, waybill::Rules::kKubelet, waybill::RulesName);
}
waybill_code waybill_parse_rules(waybill_string name, int32_t* rules, waybill_error** error) {
  return ParseName(name, waybill::ParseRules, rules, "rules", error);
}

waybill_string waybill_verification_mode_name(int32_t mode) {
  return NameOf(mode, waybill::Verification::kNeverVerify,
                waybill::Verification::kAlwaysVerify, waybill::VerificationName);
}
waybill_code waybill_parse_verification_mode(waybill_string name, int32_t* mode,
                                             waybill_error** error) {
  return ParseName(name, waybill::ParseVerification, mode, "mode", error);
}

waybill_string waybill_proofs_name(int32_t proofs) {
  return NameOf(proofs, waybill::Proofs::kAny, waybill::Proofs::kRegistry, waybill::ProofsName);
}
waybill_code waybill_parse_proofs(waybill_string name, int32_t* proofs, waybill_error** error) {
  return ParseName(name, waybill::ParseProofs, proofs, "proofs", error);
}

waybill_string waybill_short_names_name(int32_t short_names) {
  return NameOf(short_names, waybill::ShortNames::kAnywhere, waybill::ShortNames::kDockerHub,
                waybill::ShortNamesName);
}
waybill_code waybill_parse_short_names(waybill_string name, int32_t* short_names,
                                       waybill_error** error) {
  return ParseName(name, waybill::ParseShortNames, short_names, "short_names", error);
}

waybill_string waybill_reason_name(int32_t reason) {
  return NameOf(reason, waybill::Reason::kImageAbsent, waybill::Reason::kProofNotByRegistry,
                waybill::ReasonName);
}

waybill_string waybill_pull_policy_name(int32_t policy) {
  return NameOf(policy, waybill::PullPolicy::kAlways, waybill::PullPolicy::kNever,
                waybill::PullPolicyName);
}
waybill_code waybill_parse_pull_policy(waybill_string name, int32_t* policy,
                                       waybill_error** error) {
  return ParseName(name, waybill::ParsePullPolicy, policy, "policy", error);
}

waybill_string waybill_ensure_action_name(int32_t action) {
  return NameOf(action, waybill::EnsureAction::kPull, waybill::EnsureAction::kCredentialsError,
                waybill::EnsureActionName);
}

waybill_string waybill_credential_standing_name(int32_t standing) {
  return NameOf(standing, waybill::CredentialStanding::kCounts,
                waybill::CredentialStanding::kNotByRegistry, waybill::CredentialStandingName);
}

waybill_string waybill_revocation_kind_name(int32_t kind) {
  return NameOf(kind, waybill::RevocationKind::kSecret, waybill::RevocationKind::kCredential,
                waybill::RevocationKindName);
}

waybill_string waybill_stream_kind_name(int32_t kind) {
  return NameOf(kind, waybill::StreamKind::kExec, waybill::StreamKind::kPortForward,
                waybill::StreamKindName);
}

waybill_string waybill_stream_url_refusal_name(int32_t refusal) {
  return NameOf(refusal, waybill::StreamUrlRefusal::kNone,
                waybill::StreamUrlRefusal::kRedirectDowngrade, waybill::StreamUrlRefusalName);
}

waybill_string waybill_stream_scheme_name(int32_t scheme) {
  return NameOf(scheme, waybill::StreamScheme::kHttp, waybill::StreamScheme::kHttps,
                waybill::StreamSchemeName);
}

waybill_string waybill_streaming_gate_name(int32_t gate) {
  return NameOf(gate, waybill::StreamingGate::kStreamingProxyRedirects,
                waybill::StreamingGate::kAllBeta, waybill::StreamingGateName);
}

waybill_string waybill_streaming_severity_name(int32_t severity) {
  return NameOf(severity, waybill::StreamingSeverity::kIgnored, waybill::StreamingSeverity::kFatal,
                waybill::StreamingSeverityName);
}

waybill_code waybill_repository_of(waybill_string image, waybill_string** repository,
                                   waybill_error** error) {
  if (repository != nullptr) *repository = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(repository, "repository")) return arguments.error();
    const auto image_in = arguments.Text(image, "image");
    if (!arguments.ok()) return arguments.error();
    return Give(Result<std::string>(waybill::RepositoryOf(image_in)), repository);
  });
}

waybill_code waybill_parse_platform(waybill_string text, waybill_platform** platform,
                                    waybill_error** error) {
  if (platform != nullptr) *platform = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(platform, "platform")) return arguments.error();
    const auto text_in = arguments.Text(text, "text");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::ParsePlatform(text_in), platform);
  });
}

waybill_code waybill_format_platform(const waybill_platform* platform, waybill_string** text,
                                     waybill_error** error) {
  if (text != nullptr) *text = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(text, "text")) return arguments.error();
    if (!arguments.Given(platform, "platform")) return arguments.error();
    const auto platform_in = FromC(*platform, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(Result<std::string>(waybill::FormatPlatform(platform_in)), text);
  });
}

waybill_code waybill_normalise_platform(const waybill_platform* platform,
                                        waybill_platform** normalised, waybill_error** error) {
  if (normalised != nullptr) *normalised = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(normalised, "normalised")) return arguments.error();
    if (!arguments.Given(platform, "platform")) return arguments.error();
    const auto platform_in = FromC(*platform, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(Result<waybill::Platform>(waybill::NormalisePlatform(platform_in)), normalised);
  });
}

waybill_code waybill_decode_image_index(waybill_string json, waybill_image_index** index,
                                        waybill_error** error) {
  if (index != nullptr) *index = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(index, "index")) return arguments.error();
    const auto json_in = arguments.Text(json, "json");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::DecodeImageIndex(json_in), index);
  });
}

waybill_code waybill_decode_pulled_record(waybill_string json, waybill_image_pulled_record** record,
                                          waybill_error** error) {
  if (record != nullptr) *record = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(record, "record")) return arguments.error();
    const auto json_in = arguments.Text(json, "json");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::DecodePulledRecord(json_in), record);
  });
}

waybill_code waybill_decode_pull_intent(waybill_string json, waybill_image_pull_intent** intent,
                                        waybill_error** error) {
  if (intent != nullptr) *intent = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(intent, "intent")) return arguments.error();
    const auto json_in = arguments.Text(json, "json");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::DecodePullIntent(json_in), intent);
  });
}

waybill_code waybill_decode_preloaded_record(waybill_string json,
                                             waybill_image_preloaded_record** record,
                                             waybill_error** error) {
  if (record != nullptr) *record = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(record, "record")) return arguments.error();
    const auto json_in = arguments.Text(json, "json");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::DecodePreloadedRecord(json_in), record);
  });
}

waybill_code waybill_encode_pulled_record(const waybill_image_pulled_record* record,
                                          int32_t version, waybill_string** json,
                                          waybill_error** error) {
  if (json != nullptr) *json = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(json, "json")) return arguments.error();
    if (!arguments.Given(record, "record")) return arguments.error();
    const auto record_in = FromC(*record, arguments);
    const auto version_in =
        arguments.OneOf(version, waybill::KubeletApiVersion::kV1Alpha1, "version");
    if (!arguments.ok()) return arguments.error();
    return Give(Result<std::string>(waybill::EncodePulledRecord(record_in, version_in)), json);
  });
}

waybill_code waybill_encode_pull_intent(const waybill_image_pull_intent* intent, int32_t version,
                                        waybill_string** json, waybill_error** error) {
  if (json != nullptr) *json = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(json, "json")) return arguments.error();
    if (!arguments.Given(intent, "intent")) return arguments.error();
    const auto intent_in = FromC(*intent, arguments);
    const auto version_in =
        arguments.OneOf(version, waybill::KubeletApiVersion::kV1Alpha1, "version");
    if (!arguments.ok()) return arguments.error();
    return Give(Result<std::string>(waybill::EncodePullIntent(intent_in, version_in)), json);
  });
}

waybill_code waybill_encode_preloaded_record(const waybill_image_preloaded_record* record,
                                             int32_t version, waybill_string** json,
                                             waybill_error** error) {
  if (json != nullptr) *json = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(json, "json")) return arguments.error();
    if (!arguments.Given(record, "record")) return arguments.error();
    const auto record_in = FromC(*record, arguments);
    const auto version_in =
        arguments.OneOf(version, waybill::KubeletApiVersion::kV1Alpha1, "version");
    if (!arguments.ok()) return arguments.error();
    return Give(Result<std::string>(waybill::EncodePreloadedRecord(record_in, version_in)), json);
  });
}

waybill_code waybill_decode_image_list(waybill_string json, waybill_images_on_node** images,
                                       waybill_error** error) {
  if (images != nullptr) *images = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(images, "images")) return arguments.error();
    const auto json_in = arguments.Text(json, "json");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::DecodeImageList(json_in), images);
  });
}

waybill_code waybill_decode_pod_list(waybill_string json, waybill_strings** pod_uids,
                                     waybill_error** error) {
  if (pod_uids != nullptr) *pod_uids = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(pod_uids, "pod_uids")) return arguments.error();
    const auto json_in = arguments.Text(json, "json");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::DecodePodList(json_in), pod_uids);
  });
}

waybill_code waybill_decode_runtime_status(waybill_string json, waybill_runtime_handlers** handlers,
                                           waybill_error** error) {
  if (handlers != nullptr) *handlers = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(handlers, "handlers")) return arguments.error();
    const auto json_in = arguments.Text(json, "json");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::DecodeRuntimeStatus(json_in), handlers);
  });
}

waybill_code waybill_read_runtime_pulls(const waybill_runtime_answers* answers,
                                        waybill_runtime_pulls** pulls, waybill_error** error) {
  if (pulls != nullptr) *pulls = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(pulls, "pulls")) return arguments.error();
    const auto answers_in = FromC(answers, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::ReadRuntimePulls(answers_in), pulls);
  });
}

waybill_code waybill_pull_sources_of(const waybill_runtime_pulls* pulls, waybill_string image,
                                     waybill_string runtime_handler, waybill_pull_sources** sources,
                                     waybill_error** error) {
  if (sources != nullptr) *sources = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(sources, "sources")) return arguments.error();
    if (!arguments.Given(pulls, "pulls")) return arguments.error();
    const auto pulls_in = FromC(*pulls, arguments);
    const auto image_in = arguments.Text(image, "image");
    const auto runtime_handler_in = arguments.Text(runtime_handler, "runtime_handler");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::PullSourcesOf(pulls_in, image_in, runtime_handler_in), sources);
  });
}

waybill_code waybill_decode_auth_document(waybill_string json, waybill_registry_auths** auths,
                                          waybill_error** error) {
  if (auths != nullptr) *auths = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(auths, "auths")) return arguments.error();
    const auto json_in = arguments.Text(json, "json");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::DecodeAuthDocument(json_in), auths, Wiping());
  });
}

waybill_code waybill_format_timestamp(waybill_timestamp time, waybill_string** text,
                                      waybill_error** error) {
  if (text != nullptr) *text = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(text, "text")) return arguments.error();
    const auto time_in = FromC(time, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(Result<std::string>(waybill::FormatTimestamp(time_in)), text);
  });
}

waybill_code waybill_parse_timestamp(waybill_string text, waybill_timestamp* time,
                                     waybill_error** error) {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(time, "time")) return arguments.error();
    const auto text_in = arguments.Text(text, "text");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::ParseTimestamp(text_in), time);
  });
}

waybill_code waybill_check_user_namespace_pool(const waybill_user_namespace_pool* pool,
                                               waybill_error** error) {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(pool, "pool")) return arguments.error();
    const auto pool_in = FromC(*pool, arguments);
    if (!arguments.ok()) return arguments.error();
    return waybill::CheckIdPool(pool_in);
  });
}

waybill_code waybill_names_given_by(const waybill_open_pull* pull, int32_t short_names,
                                    waybill_strings** names, waybill_error** error) {
  if (names != nullptr) *names = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(names, "names")) return arguments.error();
    if (!arguments.Given(pull, "pull")) return arguments.error();
    const auto pull_in = FromC(*pull, arguments);
    const auto short_names_in =
        arguments.OneOf(short_names, waybill::ShortNames::kDockerHub, "short_names");
    if (!arguments.ok()) return arguments.error();
    return Give(Result<std::vector<std::string>>(waybill::NamesGivenBy(pull_in, short_names_in)),
                names);
  });
}

waybill_code waybill_flush(waybill_store* store, waybill_error** error) {
  return OnStore(store, error,
                 [&](NodeStore& opened, Arguments&) -> Result<void> { return opened.Flush(); });
}

waybill_code waybill_record_pull_intent(waybill_store* store, waybill_image_copy copy,
                                        waybill_pull_id* pull, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.RecordPullIntent(copy_in), pull);
  });
}

waybill_code waybill_record_image_pulled(waybill_store* store, waybill_image_copy copy,
                                         const waybill_image_pull_credentials* credentials,
                                         const waybill_pull_result* result, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    const auto credentials_in = FromCIfAny(credentials, arguments);
    const auto result_in = FromC(result, arguments);
    if (!arguments.ok()) return arguments.error();
    return opened.RecordImagePulled(copy_in, credentials_in, result_in);
  });
}

waybill_code waybill_record_image_pull_failed(waybill_store* store, waybill_image_copy copy,
                                              int32_t failure, waybill_pull_id pull,
                                              waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    const auto failure_in =
        arguments.OneOf(failure, waybill::PullFailure::kNothingTransferred, "failure");
    if (!arguments.ok()) return arguments.error();
    return opened.RecordImagePullFailed(copy_in, failure_in, waybill::PullId{pull});
  });
}

waybill_code waybill_record_image_pull_error(waybill_store* store, waybill_image_copy copy,
                                             const waybill_pull_error* failed,
                                             waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    const auto failed_in = FromC(failed, arguments);
    if (!arguments.ok()) return arguments.error();
    return opened.RecordImagePullError(copy_in, failed_in);
  });
}

waybill_code waybill_begin_list(waybill_store* store, waybill_list_token* token,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(token, "token")) return arguments.error();
    return Give(opened.BeginList(), token);
  });
}

waybill_code waybill_observe_images(waybill_store* store, const waybill_image_list* list,
                                    const waybill_change_options* options,
                                    waybill_observe_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto list_in = FromC(list, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.ObserveImages(list_in, options_in), report);
  });
}

waybill_code waybill_note_gap(waybill_store* store, waybill_string why, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto why_in = arguments.Text(why, "why");
    if (!arguments.ok()) return arguments.error();
    return opened.NoteGap(why_in);
  });
}

waybill_code waybill_list_open_pulls(waybill_store* store, waybill_open_pulls** pulls,
                                     waybill_error** error) {
  if (pulls != nullptr) *pulls = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(pulls, "pulls")) return arguments.error();
    return Give(opened.ListOpenPulls(), pulls);
  });
}

waybill_code waybill_drop_open_pull(waybill_store* store, waybill_pull_id pull,
                                    waybill_string reason, const waybill_change_options* options,
                                    waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto reason_in = arguments.Text(reason, "reason");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return opened.DropOpenPull(waybill::PullId{pull}, reason_in, options_in);
  });
}

waybill_code waybill_list_ledger(waybill_store* store, waybill_ledger_entries** entries,
                                 waybill_error** error) {
  if (entries != nullptr) *entries = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(entries, "entries")) return arguments.error();
    return Give(opened.ListLedger(), entries);
  });
}

waybill_code waybill_add_to_ledger(waybill_store* store, const waybill_image_on_node* image,
                                   waybill_string source, waybill_string reason,
                                   const waybill_change_options* options, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(image, "image")) return arguments.error();
    const auto image_in = FromC(*image, arguments);
    const auto source_in = arguments.Text(source, "source");
    const auto reason_in = arguments.Text(reason, "reason");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return opened.AddToLedger(image_in, source_in, reason_in, options_in);
  });
}

waybill_code waybill_remove_from_ledger(waybill_store* store, waybill_image_copy copy,
                                        waybill_string reason,
                                        const waybill_change_options* options, bool* removed,
                                        waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    const auto reason_in = arguments.Text(reason, "reason");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.RemoveFromLedger(copy_in, reason_in, options_in), removed);
  });
}

waybill_code waybill_settle_presumed(waybill_store* store, waybill_image_copy copy, int32_t settled,
                                     waybill_string reason, const waybill_change_options* options,
                                     bool* presumed, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    const auto settled_in = arguments.OneOf(settled, waybill::Settled::kClosed, "settled");
    const auto reason_in = arguments.Text(reason, "reason");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.SettlePresumed(copy_in, settled_in, reason_in, options_in), presumed);
  });
}

waybill_code waybill_explain(waybill_store* store, waybill_image_copy copy, waybill_strings names,
                             waybill_explanation** explanation, waybill_error** error) {
  if (explanation != nullptr) *explanation = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(explanation, "explanation")) return arguments.error();
    const auto copy_in = FromC(copy, arguments);
    const auto names_in = arguments.Strings(names, "names");
    if (!arguments.ok()) return arguments.error();
    return Give(opened.Explain(copy_in, names_in), explanation);
  });
}

waybill_code waybill_forget_secret(waybill_store* store, waybill_credential_name who,
                                   const waybill_change_options* options,
                                   waybill_forget_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto who_in = FromC(who, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.ForgetSecret(who_in, options_in), report);
  });
}

waybill_code waybill_forget_service_account(waybill_store* store, waybill_credential_name who,
                                            const waybill_change_options* options,
                                            waybill_forget_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto who_in = FromC(who, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.ForgetServiceAccount(who_in, options_in), report);
  });
}

waybill_code waybill_forget_namespace(waybill_store* store, waybill_string namespace_name,
                                      const waybill_change_options* options,
                                      waybill_forget_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto namespace_name_in = arguments.Text(namespace_name, "namespace_name");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.ForgetNamespace(namespace_name_in, options_in), report);
  });
}

waybill_code waybill_forget_image(waybill_store* store, waybill_image_copy copy,
                                  const waybill_change_options* options,
                                  waybill_forget_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.ForgetImage(copy_in, options_in), report);
  });
}

waybill_code waybill_forget_credential(waybill_store* store, waybill_string credential_hash,
                                       const waybill_change_options* options,
                                       waybill_forget_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto credential_hash_in = arguments.Text(credential_hash, "credential_hash");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.ForgetCredential(credential_hash_in, options_in), report);
  });
}

waybill_code waybill_reconcile(waybill_store* store, const waybill_existing_credentials* truth,
                               waybill_list_token token, const waybill_change_options* options,
                               waybill_reconcile_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto truth_in = FromC(truth, arguments);
    const auto token_in = FromC(token, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.Reconcile(truth_in, token_in, options_in), report);
  });
}

waybill_code waybill_tidy_up(waybill_store* store, waybill_error** error) {
  return OnStore(store, error,
                 [&](NodeStore& opened, Arguments&) -> Result<void> { return opened.TidyUp(); });
}

waybill_code waybill_list_revocations(waybill_store* store, waybill_revocations** revocations,
                                      waybill_error** error) {
  if (revocations != nullptr) *revocations = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(revocations, "revocations")) return arguments.error();
    return Give(opened.ListRevocations(), revocations);
  });
}

waybill_code waybill_prune(waybill_store* store, waybill_images_on_node images,
                           waybill_list_token token, const waybill_change_options* options,
                           waybill_prune_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto images_in = ListFromC(images.items, images.count, "images", arguments);
    const auto token_in = FromC(token, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.Prune(images_in, token_in, options_in), report);
  });
}

waybill_code waybill_prune_before(waybill_store* store, waybill_images_on_node images,
                                  waybill_timestamp until, const waybill_change_options* options,
                                  waybill_prune_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto images_in = ListFromC(images.items, images.count, "images", arguments);
    const auto until_in = FromC(until, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.PruneBefore(images_in, until_in, options_in), report);
  });
}

waybill_code waybill_get_record(waybill_store* store, waybill_image_copy copy,
                                waybill_image_pulled_record** record, waybill_error** error) {
  if (record != nullptr) *record = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(record, "record")) return arguments.error();
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.GetRecord(copy_in), record);
  });
}

waybill_code waybill_list_records(waybill_store* store, waybill_image_pulled_records** records,
                                  waybill_error** error) {
  if (records != nullptr) *records = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(records, "records")) return arguments.error();
    return Give(opened.ListRecords(), records);
  });
}

waybill_code waybill_put_record(waybill_store* store, const waybill_image_pulled_record* record,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(record, "record")) return arguments.error();
    const auto record_in = FromC(*record, arguments);
    if (!arguments.ok()) return arguments.error();
    return opened.PutRecord(record_in);
  });
}

waybill_code waybill_delete_record(waybill_store* store, waybill_image_copy copy,
                                   waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return opened.DeleteRecord(copy_in);
  });
}

waybill_code waybill_has_intent(waybill_store* store, waybill_image_copy copy, bool* exists,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(exists, "exists")) return arguments.error();
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.HasIntent(copy_in), exists);
  });
}

waybill_code waybill_list_intents(waybill_store* store, waybill_image_pull_intents** intents,
                                  waybill_error** error) {
  if (intents != nullptr) *intents = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(intents, "intents")) return arguments.error();
    return Give(opened.ListIntents(), intents);
  });
}

waybill_code waybill_put_intent(waybill_store* store, waybill_image_copy copy,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return opened.PutIntent(copy_in);
  });
}

waybill_code waybill_delete_intent(waybill_store* store, waybill_image_copy copy,
                                   waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return opened.DeleteIntent(copy_in);
  });
}

waybill_code waybill_list_quarantine(waybill_store* store, waybill_quarantine_entries** entries,
                                     waybill_error** error) {
  if (entries != nullptr) *entries = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(entries, "entries")) return arguments.error();
    return Give(opened.ListQuarantine(), entries);
  });
}

waybill_code waybill_list_preloaded(waybill_store* store, waybill_image_preloaded_records** records,
                                    waybill_error** error) {
  if (records != nullptr) *records = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(records, "records")) return arguments.error();
    return Give(opened.ListPreloaded(), records);
  });
}

waybill_code waybill_list_runtime_handlers(waybill_store* store,
                                           waybill_runtime_handlers** handlers,
                                           waybill_error** error) {
  if (handlers != nullptr) *handlers = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(handlers, "handlers")) return arguments.error();
    return Give(opened.ListRuntimeHandlers(), handlers);
  });
}

waybill_code waybill_replace_runtime_handlers(waybill_store* store,
                                              const waybill_runtime_handlers* handlers,
                                              const waybill_change_options* options,
                                              waybill_runtimes_report** report,
                                              waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(handlers, "handlers")) return arguments.error();
    const auto handlers_in = ListFromC(handlers->items, handlers->count, "handlers", arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.ReplaceRuntimeHandlers(handlers_in, options_in), report);
  });
}

waybill_code waybill_collapse_runtime_handlers(waybill_store* store,
                                               const waybill_change_options* options,
                                               waybill_collapse_report** report,
                                               waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.CollapseRuntimeHandlers(options_in), report);
  });
}

waybill_code waybill_get_user_namespace(waybill_store* store, waybill_string pod_uid,
                                        waybill_user_namespace_allocation** allocation,
                                        waybill_error** error) {
  if (allocation != nullptr) *allocation = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(allocation, "allocation")) return arguments.error();
    const auto pod_uid_in = arguments.Text(pod_uid, "pod_uid");
    if (!arguments.ok()) return arguments.error();
    return Give(opened.GetUserNamespace(pod_uid_in), allocation);
  });
}

waybill_code waybill_release_user_namespace(waybill_store* store, waybill_string pod_uid,
                                            const waybill_change_options* options, bool* released,
                                            waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto pod_uid_in = arguments.Text(pod_uid, "pod_uid");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.ReleaseUserNamespace(pod_uid_in, options_in), released);
  });
}

waybill_code waybill_list_user_namespaces(waybill_store* store,
                                          waybill_user_namespace_allocations** allocations,
                                          waybill_error** error) {
  if (allocations != nullptr) *allocations = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(allocations, "allocations")) return arguments.error();
    return Give(opened.ListUserNamespaces(), allocations);
  });
}

waybill_code waybill_list_held_pods(waybill_store* store, waybill_held_pods** pods,
                                    waybill_error** error) {
  if (pods != nullptr) *pods = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(pods, "pods")) return arguments.error();
    return Give(opened.ListHeldPods(), pods);
  });
}

waybill_code waybill_clean_up_user_namespaces(waybill_store* store, waybill_strings existing,
                                              waybill_strings running, waybill_list_token token,
                                              const waybill_change_options* options,
                                              waybill_user_namespace_cleanup_report** report,
                                              waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto existing_in = arguments.Strings(existing, "existing");
    const auto running_in = arguments.Strings(running, "running");
    const auto token_in = FromC(token, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.CleanUpUserNamespaces(existing_in, running_in, token_in, options_in),
                report);
  });
}

waybill_code waybill_adopt_user_namespace(waybill_store* store, waybill_string pod_uid,
                                          uint64_t host_id, uint64_t length,
                                          waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto pod_uid_in = arguments.Text(pod_uid, "pod_uid");
    if (!arguments.ok()) return arguments.error();
    return opened.AdoptUserNamespace(pod_uid_in, host_id, length);
  });
}

waybill_code waybill_release_lost_user_namespaces(waybill_store* store,
                                                  const waybill_change_options* options,
                                                  bool* released, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.ReleaseLostUserNamespaces(options_in), released);
  });
}

waybill_code waybill_get_user_namespace_statistics(waybill_store* store,
                                                   waybill_user_namespace_statistics** statistics,
                                                   waybill_error** error) {
  if (statistics != nullptr) *statistics = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(statistics, "statistics")) return arguments.error();
    return Give(opened.GetUserNamespaceStatistics(), statistics);
  });
}

waybill_code waybill_get_statistics(waybill_store* store, waybill_statistics** statistics,
                                    waybill_error** error) {
  if (statistics != nullptr) *statistics = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(statistics, "statistics")) return arguments.error();
    return Give(opened.GetStatistics(), statistics);
  });
}

waybill_code waybill_verify(waybill_store* store, waybill_verify_report** report,
                            waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(report, "report")) return arguments.error();
    return Give(opened.Verify(), report);
  });
}

waybill_code waybill_get_trust(waybill_store* store, waybill_trust_state** trust,
                               waybill_error** error) {
  if (trust != nullptr) *trust = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(trust, "trust")) return arguments.error();
    return Give(opened.GetTrust(), trust);
  });
}

waybill_code waybill_clear_distrust(waybill_store* store, waybill_string reason,
                                    const waybill_clear_options* options,
                                    waybill_observe_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    const auto reason_in = arguments.Text(reason, "reason");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.ClearDistrust(reason_in, options_in), report);
  });
}

waybill_code waybill_list_backups(waybill_string directory, waybill_backups** backups,
                                  waybill_error** error) {
  if (backups != nullptr) *backups = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(backups, "backups")) return arguments.error();
    const auto directory_in = arguments.Path(directory, "directory");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::BackupsOf(directory_in), backups);
  });
}

waybill_code waybill_make_backup(waybill_store* store, waybill_backup** backup,
                                 waybill_error** error) {
  if (backup != nullptr) *backup = nullptr;
  return OnStore(store, error, [&](NodeStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(backup, "backup")) return arguments.error();
    return Give(opened.MakeBackup(), backup);
  });
}

waybill_code waybill_check_streaming_request(const waybill_streaming_request* request,
                                             waybill_error** error) {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(request, "request")) return arguments.error();
    const auto request_in = FromC(*request, arguments);
    if (!arguments.ok()) return arguments.error();
    return waybill::CheckStreamRequest(request_in);
  });
}

waybill_code waybill_stream_token_id(waybill_string token, waybill_string** id,
                                     waybill_error** error) {
  if (id != nullptr) *id = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(id, "id")) return arguments.error();
    const auto token_in = arguments.Text(token, "token");
    if (!arguments.ok()) return arguments.error();
    return Give(Result<std::string>(waybill::StreamTokenId(token_in)), id);
  });
}

waybill_code waybill_prepare_stream(waybill_streaming_store* store,
                                    const waybill_streaming_request* request,
                                    waybill_string** token, waybill_error** error) {
  if (token != nullptr) *token = nullptr;
  return OnStore(store, error, [&](StreamingStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(token, "token")) return arguments.error();
    if (!arguments.Given(request, "request")) return arguments.error();
    const auto request_in = FromC(*request, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(opened.Prepare(request_in), token, Wiping());
  });
}

waybill_code waybill_consume_stream(waybill_streaming_store* store, waybill_string token,
                                    int32_t kind, waybill_streaming_request** request,
                                    waybill_error** error) {
  if (request != nullptr) *request = nullptr;
  return OnStore(store, error, [&](StreamingStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(request, "request")) return arguments.error();
    const auto token_in = arguments.Text(token, "token");
    const auto kind_in = arguments.OneOf(kind, waybill::StreamKind::kExec,
                                         waybill::StreamKind::kPortForward, "kind");
    if (!arguments.ok()) return arguments.error();
    return Give(opened.Consume(token_in, kind_in), request, Wiping());
  });
}

waybill_code waybill_list_streams(waybill_streaming_store* store, waybill_open_streams** streams,
                                  waybill_error** error) {
  if (streams != nullptr) *streams = nullptr;
  return OnStore(store, error, [&](StreamingStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(streams, "streams")) return arguments.error();
    return Give(opened.List(), streams);
  });
}

waybill_code waybill_verify_streaming(waybill_streaming_store* store,
                                      waybill_verify_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](StreamingStore& opened, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(report, "report")) return arguments.error();
    return Give(opened.Verify(), report);
  });
}

waybill_code waybill_parse_kubernetes_version(waybill_string text,
                                              waybill_kubernetes_version* version,
                                              waybill_error** error) {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(version, "version")) return arguments.error();
    const auto text_in = arguments.Text(text, "text");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::ParseKubernetesVersion(text_in), version);
  });
}
