#include "bindings/cli/parse.h"

#include <fmt/core.h>

#include <charconv>

#include "bindings/cli/secrets.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kSecretForm =
    "the form is NAMESPACE/NAME/UID/HASH, or NAMESPACE/NAME/UID where the hash is not known";
constexpr std::string_view kServiceAccountForm = "the form is NAMESPACE/NAME/UID";

// `text` cut at each '/'. Stops after `most` + 1 parts: that is too many.
std::vector<std::string> Split(std::string_view text, std::size_t most) {
  std::vector<std::string> parts;
  while (parts.size() <= most) {
    const std::size_t slash = text.find('/');
    parts.emplace_back(text.substr(0, slash));
    if (slash == std::string_view::npos) break;
    text.remove_prefix(slash + 1);
  }
  return parts;
}

Result<void> CheckParts(std::string_view flag, const std::vector<std::string>& parts,
                        std::string_view form) {
  constexpr std::string_view kNames[] = {"namespace", "name", "UID", "hash"};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty() && i < 3) {
      return BadFlag(flag, fmt::format("the {} is empty", kNames[i]), form);
    }
    if (parts[i].size() > kMaxCoordinateBytes) {
      return Error{ErrorCode::kLimitExceeded,
                   fmt::format("{}: the {} has {} bytes, and {} are allowed", flag, kNames[i],
                               parts[i].size(), kMaxCoordinateBytes),
                   std::string(form)};
    }
  }
  return {};
}

// An error of the library, with the flag that it is about.
Error About(std::string_view flag, Error error) {
  error.message = fmt::format("{}: {}", flag, error.message);
  return error;
}

}  // namespace

Result<std::uint64_t> ParseNumber(std::string_view flag, std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) {
    return BadFlag(flag, fmt::format("'{}' is not a number from 0 to {}", text, UINT64_MAX));
  }
  return value;
}

Result<void> ParseNumber(std::string_view flag, const std::optional<std::string>& text,
                         std::uint64_t& number) {
  if (!text) return {};
  return ParseNumber(flag, *text).map([&](std::uint64_t parsed) { number = parsed; });
}

Result<PullId> ParsePullId(std::string_view flag, std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && stop == end && value != 0) return PullId{value};
  return BadFlag(flag, fmt::format("'{}' is not the number of a pull", text.substr(0, 200)),
                 "it is the number that `waybill intent` printed, or that `waybill pulls` lists");
}

Result<std::chrono::seconds> ParseDuration(std::string_view flag, std::string_view text) {
  struct Unit {
    char name;
    std::uint64_t seconds;
  };
  constexpr Unit kUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
  constexpr std::uint64_t kMost = std::uint64_t{365} * 86400;
  if (text == "0") return std::chrono::seconds(0);
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  for (const Unit& unit : kUnits) {
    if (error != std::errc{} || stop + 1 != end || *stop != unit.name) continue;
    if (number > kMost / unit.seconds) break;
    return std::chrono::seconds(number * unit.seconds);
  }
  return BadFlag(flag, fmt::format("'{}' is not a time from 0s to 365d", text.substr(0, 200)),
                 "write a whole number with s, m, h or d behind it, like 90s or 2h");
}

Result<void> CheckLength(std::string_view flag, std::string_view value, std::size_t most) {
  if (value.empty()) return BadFlag(flag, "the value is empty");
  if (value.size() <= most) return {};
  return Error{
      ErrorCode::kLimitExceeded,
      fmt::format("{}: the value has {} bytes, and {} are allowed", flag, value.size(), most),
      {}};
}

Result<void> CheckDigest(std::string_view flag, std::string_view value) {
  TRY(CheckLength(flag, value, kMaxImageRefBytes));
  constexpr std::string_view kAlgorithm = "abcdefghijklmnopqrstuvwxyz0123456789+._-";
  constexpr std::string_view kEncoded =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=_-";
  const std::size_t colon = value.find(':');
  const bool formed = colon != 0 && colon < value.size() - 1 &&
                      value.find_first_not_of(kAlgorithm) == colon &&
                      value.find_first_not_of(kEncoded, colon + 1) == std::string_view::npos;
  if (formed) return {};
  return BadFlag(flag, fmt::format("'{}' is not a digest", value.substr(0, 200)),
                 "the form is sha256:… or another algorithm's");
}

Result<ImagePullSecret> ParseSecret(std::string_view text) {
  std::vector<std::string> parts = Split(text, 4);
  if (parts.size() < 3 || parts.size() > 4) {
    return BadFlag("--secret", "it does not have 3 or 4 parts", kSecretForm);
  }
  TRY(CheckParts("--secret", parts, kSecretForm));
  return ImagePullSecret{.uid = parts[2],
                         .namespace_name = parts[0],
                         .name = parts[1],
                         .credential_hash = parts.size() == 4 ? parts[3] : std::string()};
}

Result<void> CheckSecret(std::string_view flag, const ImagePullSecret& secret,
                         std::string_view form) {
  return CheckParts(flag, {secret.namespace_name, secret.name, secret.uid, secret.credential_hash},
                    form);
}

Result<ImagePullServiceAccount> ParseServiceAccount(std::string_view text) {
  std::vector<std::string> parts = Split(text, 3);
  if (parts.size() != 3) {
    return BadFlag("--service-account", "it does not have 3 parts", kServiceAccountForm);
  }
  TRY(CheckParts("--service-account", parts, kServiceAccountForm));
  return ImagePullServiceAccount{.uid = parts[2], .namespace_name = parts[0], .name = parts[1]};
}

void StoreFlags::Declare(Flags& flags) {
  flags.Required("--store", &store, "DIR",
                 "the store's directory; else that of WAYBILL_STORE, or of the\n"
                 "configuration file");
  flags.TakesSetting("--store");
  DeclareUntestedLmdb(flags);
}

void StoreFlags::DeclareOptional(Flags& flags) {
  is_optional_ = true;
  flags.Value("--store", &optional_store_, "DIR", "the store's directory");
  DeclareUntestedLmdb(flags);
}

void StoreFlags::DeclareWithoutStore(Flags& flags) {
  is_optional_ = true;
  DeclareUntestedLmdb(flags);
}

void StoreFlags::DeclareUntestedLmdb(Flags& flags) {
  flags.Switch("--allow-untested-lmdb", &allow_untested_lmdb_,
               "go on with a version of LMDB that waybill was not tested with");
}

void StoreFlags::DeclareRules(Flags& flags) {
  flags.Value("--rules", &rules_name, "closed|kubelet",
              "closed (default), or exactly what the kubelet answers");
}

void StoreFlags::DeclareWait(Flags& flags) {
  flags.Value("--wait", &wait_, "TIME",
              "how long to wait while another process owns the store: seconds, or\n"
              "30s, 2m, at most 1d; 0 (default): not at all");
}

Result<void> StoreFlags::Parse() {
  if (optional_store_) store = *optional_store_;
  const bool may_be_empty = is_optional_ && !optional_store_;
  if (store.empty() && !may_be_empty) {
    return BadFlag("--store", "the value is empty", "name the store's directory");
  }
  if (allow_untested_lmdb_) AllowUntestedLmdb(true);
  if (wait_) {
    const bool is_bare =
        !wait_->empty() && wait_->find_first_not_of("0123456789") == std::string::npos;
    auto parsed = TRY(ParseDuration("--wait", is_bare ? *wait_ + "s" : *wait_));
    if (parsed > std::chrono::hours(24)) return BadFlag("--wait", "the most is 1d");
    wait = parsed;
  }
  if (!rules_name) return {};
  auto parsed = ParseRules(*rules_name);
  if (!parsed) return About("--rules", parsed.error());
  rules = *parsed;
  return {};
}

void ChangeFlags::DeclareAllowEmpty(Flags& flags, std::string_view list) {
  flags.Switch("--allow-empty", &options.allow_empty,
               fmt::format("accept an empty {}; otherwise it is refused (2)\n"
                           "if the store holds something",
                           list));
}

void ChangeFlags::DeclareDryRun(Flags& flags) {
  flags.Switch("--dry-run", &options.dry_run, "say what would be done, and change nothing");
}

void EvidenceFlags::DeclareShortNames(Flags& flags) {
  flags.Value("--short-names", &short_names_, "anywhere|docker.io",
              "what an image without a registry may name: anything (default), or\n"
              "only what completing it with docker.io gives (containerd)");
  flags.TakesSetting("--short-names");
}

void EvidenceFlags::Declare(Flags& flags) {
  DeclareShortNames(flags);
  flags.Value("--grace", &grace_, "TIME",
              "how long after a failure that the runtime reported a pull may\n"
              "still have brought its image: 2m (default)");
  flags.Value("--window", &window_, "TIME",
              "the same after an end that is not known: 2h (default)");
  flags.Value("--remember", &remember_, "TIME",
              "how long is remembered what was known of an image that is\n"
              "gone: 30d (default); 0: not at all");
  for (const char* flag : {"--grace", "--window", "--remember"}) flags.TakesSetting(flag);
}

Result<void> EvidenceFlags::Parse() {
  if (short_names_) {
    auto parsed = ParseShortNames(*short_names_);
    if (!parsed) return About("--short-names", parsed.error());
    options.short_names = *parsed;
  }
  if (grace_) {
    options.grace = TRY(ParseDuration("--grace", *grace_));
  }
  if (window_) {
    options.window = TRY(ParseDuration("--window", *window_));
  }
  if (remember_) {
    options.remember = TRY(ParseDuration("--remember", *remember_));
  }
  return {};
}

void FirstStartFlag::Declare(Flags& flags) {
  flags.Value("--first-start", &name_, "presume|close",
              "what to make of images that have neither record nor open pull when\n"
              "the store is new: presume them preloaded, as a kubelet does\n"
              "(default), or close them");
  flags.TakesSetting("--first-start");
}

Result<void> FirstStartFlag::Parse() {
  if (!name_) return {};
  auto parsed = ParseFirstStart(*name_);
  if (!parsed) return About("--first-start", parsed.error());
  first_start = *parsed;
  return {};
}

void AgeFlags::Declare(Flags& flags) {
  flags.Value("--max-age", &credentials_, "TIME",
              "how long a credential opens images after a pull proved it: 60s to\n"
              "365d, or 0, for ever (default). With one of these four flags the\n"
              "store remembers all four, until a start gives one again");
  flags.Value("--max-age-service-accounts", &service_accounts_, "TIME",
              "a shorter one for service accounts");
  flags.Value("--max-age-node-pods", &node_pods_, "TIME",
              "the same for images that were pulled without credentials");
  flags.Value("--keep-revocations", &revocations_, "TIME",
              "how long what `waybill forget` forgot is kept from coming back:\n"
              "1d or more, 30d (default)");
  for (const char* flag :
       {"--max-age", "--max-age-service-accounts", "--max-age-node-pods", "--keep-revocations"}) {
    flags.TakesSetting(flag);
  }
}

Result<void> AgeFlags::Parse() {
  AgeLimits parsed;
  struct Limit {
    std::string_view name;
    const std::optional<std::string>& text;
    std::chrono::seconds& span;
    std::chrono::seconds least;
  };
  for (const Limit& flag :
       {Limit{"--max-age", credentials_, parsed.credentials, kMinAge},
        Limit{"--max-age-service-accounts", service_accounts_, parsed.service_accounts, kMinAge},
        Limit{"--max-age-node-pods", node_pods_, parsed.node_pods, kMinAge},
        Limit{"--keep-revocations", revocations_, parsed.revocations, std::chrono::hours(24)}}) {
    if (!flag.text) continue;
    auto span = TRY(ParseDuration(flag.name, *flag.text));
    const bool is_off = span.count() == 0 && flag.least == kMinAge;
    if (!is_off && span < flag.least) {
      return BadFlag(flag.name, fmt::format("the least is {} seconds", flag.least.count()));
    }
    flag.span = span;
    limits.emplace();
  }
  if (!limits) return {};
  if (parsed.credentials.count() != 0 && parsed.service_accounts > parsed.credentials) {
    return BadFlag("--max-age-service-accounts", "it is longer than --max-age");
  }
  *limits = parsed;
  return {};
}

Result<void> EvidenceFlags::CheckOwner(const EvidenceOptions& owner) const {
  const auto differs = [](std::string_view flag, const std::string& value) {
    return BadFlag(flag, "the process that owns the store goes by " + value,
                   "leave the flag out, or restart that process with it");
  };
  const auto seconds = [](std::chrono::seconds span) { return fmt::format("{}s", span.count()); };
  if (short_names_ && options.short_names != owner.short_names) {
    return differs("--short-names", std::string(ShortNamesName(owner.short_names)));
  }
  if (grace_ && options.grace != owner.grace) return differs("--grace", seconds(owner.grace));
  if (window_ && options.window != owner.window) return differs("--window", seconds(owner.window));
  if (remember_ && options.remember != owner.remember) {
    return differs("--remember", seconds(owner.remember));
  }
  return {};
}

void RuntimeFlag::Declare(Flags& flags) {
  flags.Value("--runtime", &given_, "HANDLER",
              "the runtime handler of the pod's RuntimeClass; '' (default)\n"
              "or its name is the default handler");
}

Result<void> RuntimeFlag::Parse() {
  if (!given_ || given_->empty()) return {};
  handler = *given_;
  return CheckLength("--runtime", handler, kMaxRuntimeHandlerBytes);
}

void PolicyFlags::Declare(Flags& flags) {
  flags.Value("--policy", &policy_name, "POLICY",
              "NeverVerify, NeverVerifyPreloadedImages (default),\n"
              "NeverVerifyAllowlistedImages or AlwaysVerify");
  flags.List("--allow", &allow, "PATTERN",
             "an image name or PREFIX/* of the allowlist; may be repeated");
  flags.Switch("--allow-preloaded-only", &allow_preloaded_only,
               "the allowlist opens only images that were not pulled");
  const std::vector<std::string> group = {"--policy", "--allow", "--allow-preloaded-only",
                                          "--kubelet-config"};
  kubelet_config.Declare(flags, group);
  for (const char* flag : {"--policy", "--allow", "--allow-preloaded-only"}) {
    flags.TakesSetting(flag, {.unless = group});
  }
}

Result<void> PolicyFlags::Parse() {
  VerificationMode mode = VerificationMode::kNeverVerifyPreloadedImages;
  if (kubelet_config.given()) {
    if (policy_name || !allow.empty()) {
      return BadFlag("--kubelet-config", "it excludes --policy and --allow");
    }
    auto kubelet = TRY(kubelet_config.Read());
    policy_name = kubelet.policy;
    allow = std::move(kubelet.allow);
  }
  if (policy_name) {
    auto parsed = ParseVerificationMode(*policy_name);
    if (!parsed) return About("--policy", parsed.error());
    mode = *parsed;
  }
  if (allow_preloaded_only && mode != VerificationMode::kNeverVerifyAllowlistedImages) {
    return BadFlag("--allow-preloaded-only", "it needs the policy NeverVerifyAllowlistedImages",
                   "add --policy NeverVerifyAllowlistedImages");
  }
  auto made = VerificationPolicy::Make(
      mode, allow,
      allow_preloaded_only ? AllowlistScope::kPreloadedOnly : AllowlistScope::kAnyImage);
  if (!made) return About("--allow", made.error());
  policy = *std::move(made);
  return {};
}

void PullFlags::Declare(Flags& flags) {
  store.Declare(flags);
  store.DeclareWait(flags);
  flags.Value("--image", &image_text, "IMAGE", "the container's image, as the pod spells it");
  flags.Value("--image-ref", &image_ref, "REF",
              "what the runtime calls the image, or for check short for it; '' if it\n"
              "is not on the node (needed by check and pulled)");
  flags.List("--secret", &secret_texts, "NS/NAME/UID/HASH|@FILE",
             "a pull Secret of the pod; without a hash NS/NAME/UID; @FILE reads\n"
             "the line from a file; may be repeated");
  flags.Value("--secrets", &secrets_path, "FILE|-",
              "pull Secrets of the pod, a line of JSON each; other users can see\n"
              "arguments, but not what is read");
  flags.Value("--service-account", &service_account_text, "NS/NAME/UID",
              "the pod's service account");
  runtime.Declare(flags);
  policy.Declare(flags);
  store.DeclareRules(flags);
  flags.Value("--pull-policy", &pull_policy_name, "Always|IfNotPresent|Never",
              "the container's imagePullPolicy");
}

Result<void> PullFlags::Parse() {
  TRY(store.Parse());
  TRY(policy.Parse());
  TRY(runtime.Parse());
  if (!image_text) {
    return BadFlag("--image", "it is missing", "give the container's image as the pod spells it");
  }
  image = *image_text;
  TRY(CheckLength("--image", image, kMaxImageBytes));
  if (image_ref && !image_ref->empty()) {
    TRY(CheckLength("--image-ref", *image_ref, kMaxImageRefBytes));
  }
  for (const std::string& text : secret_texts) {
    auto secret = TRY(ReadSecret(text));
    secrets.push_back(std::move(secret));
  }
  if (secrets_path) {
    auto more = TRY(ReadSecrets(*secrets_path));
    secrets.insert(secrets.end(), more.begin(), more.end());
  }
  if (service_account_text) {
    service_account = TRY(ParseServiceAccount(*service_account_text));
  }
  if (pull_policy_name) {
    auto parsed = ParsePullPolicy(*pull_policy_name);
    if (!parsed) return About("--pull-policy", parsed.error());
    pull_policy = *parsed;
  }
  return {};
}

}  // namespace waybill::cli
