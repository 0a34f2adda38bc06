#include "bindings/cli/parse.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "bindings/cli/input.h"
#include "bindings/cli/kubelet_config.h"
#include "bindings/cli/output.h"
#include "store/base/described.h"
#include "store/base/platform.h"
#include "store/base/policy.h"
#include "store/base/timestamp.h"
#include "store/base/try.h"
#include "store/disk/lmdb/version.h"
#include "waybill/limits.h"

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

// NAMESPACE/NAME/UID/HASH; the hash and the '/' before it are optional. No error quotes the text.
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

constexpr std::size_t kMaxSecretFileBytes = std::size_t{64} << 10;
constexpr std::string_view kLineForm =
    R"(the form of a line is {"namespace":"…","name":"…","uid":"…","credentialHash":"…"})";

// The line of a file that has one line.
Result<std::string> ReadLine(const std::string& path) {
  auto line = ReadInput(path, kMaxSecretFileBytes);
  if (!line) return line;
  if (line->ends_with('\n')) line->pop_back();
  if (line->ends_with('\r')) line->pop_back();
  if (line->find('\n') == std::string::npos) return line;
  return BadFlag("--secret", fmt::format("{} has more than one line", path),
                 "a file for each secret; or all in JSON lines: --secrets FILE");
}

Result<ImagePullSecret> SecretOf(std::string_view line) {
  std::map<std::string, internal::JsonText> object;
  const auto is_flat = [](const auto& field) {
    return !field.second.text.starts_with('{') && !field.second.text.starts_with('[');
  };
  if (!internal::FromJson(line, object).empty() || !std::ranges::all_of(object, is_flat)) {
    return BadFlag("--secrets", "not a flat JSON object", kLineForm);
  }
  ImagePullSecret secret;
  for (const auto& [key, value] : object) {
    std::string* const target = key == "namespace"        ? &secret.namespace_name
                                : key == "name"           ? &secret.name
                                : key == "uid"            ? &secret.uid
                                : key == "credentialHash" ? &secret.credential_hash
                                                          : nullptr;
    if (target == nullptr) return BadFlag("--secrets", "a field is unknown", kLineForm);
    if (!internal::FromJson(value.text, *target).empty()) {
      return BadFlag("--secrets", fmt::format("{} is not a string", key), kLineForm);
    }
  }
  TRY(CheckParts("--secrets",
                 {secret.namespace_name, secret.name, secret.uid, secret.credential_hash},
                 kLineForm));
  return secret;
}

// "registry", or "registry.example/team/*=registry".
Result<ProofRule> ParseProofRule(std::string_view flag, const std::string& given) {
  std::string_view text = given;
  ProofRule rule;
  const std::size_t equals = text.rfind('=');
  if (equals == 0) return BadFlag(flag, "nothing stands before the \"=\"", "name the images");
  if (equals != std::string_view::npos) {
    rule.pattern = text.substr(0, equals);
    text.remove_prefix(equals + 1);
  }
  rule.proofs = TRY(Word<Proofs>("word for the proofs that count")(flag, std::string(text)));
  return rule;
}

}  // namespace

Error About(std::string_view flag, Error error) {
  error.message = fmt::format("{}: {}", flag, error.message);
  return error;
}

Result<std::uint64_t> Number::operator()(std::string_view flag, std::string_view text) const {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) {
    return BadFlag(
        flag, fmt::format("'{}' is not a number from {} to {}", text.substr(0, 200), least, most));
  }
  if (value >= least && value <= most) return value;
  return BadFlag(flag, fmt::format("{} is out of range", value),
                 fmt::format("use {} to {}", least, most));
}

Result<PullId> ParsePullId(std::string_view flag, std::string_view text) {
  auto number = Number{.least = 1}(flag, text);
  if (number) return PullId{*number};
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

Result<Platform> PlatformOf(std::string_view flag, const std::string& text) {
  auto platform = ParsePlatform(text);
  if (!platform) return About(flag, platform.error());
  return platform;
}

Result<Timestamp> ParseTime(std::string_view flag, std::string_view text) {
  auto time = ParseTimestamp(text);
  if (time) return time;
  return BadFlag(flag, time.error().message,
                 "the form is 2026-01-02T03:04:05Z, or with an offset such as +02:00");
}

Result<std::string> Length::operator()(std::string_view flag, const std::string& text) const {
  if (text.empty()) return BadFlag(flag, "the value is empty", hint);
  return LengthOrNone{most}(flag, text);
}

Result<std::string> LengthOrNone::operator()(std::string_view flag, const std::string& text) const {
  if (text.size() <= most) return text;
  return Error{
      ErrorCode::kLimitExceeded,
      fmt::format("{}: the value has {} bytes, and {} are allowed", flag, text.size(), most),
      {}};
}

Result<std::string> ParseDigest(std::string_view flag, const std::string& text) {
  auto value = TRY(Length{kMaxImageRefBytes}(flag, text));
  constexpr std::string_view kAlgorithm = "abcdefghijklmnopqrstuvwxyz0123456789+._-";
  constexpr std::string_view kEncoded =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=_-";
  const std::size_t colon = value.find(':');
  const bool formed = colon != 0 && colon < value.size() - 1 &&
                      value.find_first_not_of(kAlgorithm) == colon &&
                      value.find_first_not_of(kEncoded, colon + 1) == std::string_view::npos;
  if (formed) return value;
  return BadFlag(flag, fmt::format("'{}' is not a digest", value.substr(0, 200)),
                 "the form is sha256:… or another algorithm's");
}

Result<std::string> ParseNamespace(std::string_view flag, const std::string& text) {
  if (text.find('/') == std::string::npos) return Length{kMaxCoordinateBytes}(flag, text);
  return BadFlag(flag, "a namespace has no '/' in it");
}

Result<ImagePullSecret> ReadSecret(std::string_view /*flag*/, const std::string& text) {
  if (!text.starts_with('@')) return ParseSecret(text);
  const std::string path = text.substr(1);
  if (path == "-") {
    return BadFlag("--secret", "@- is not a file", "--secrets - reads standard input");
  }
  auto line = TRY(ReadLine(path));
  auto secret = ParseSecret(line);
  if (!secret) secret.error().message += fmt::format(", in {}", path);
  return secret;
}

Result<std::vector<ImagePullSecret>> ReadSecrets(const std::string& path) {
  const auto content = TRY(ReadInput(path, kMaxRecordFileBytes));
  std::vector<ImagePullSecret> secrets;
  std::string_view rest = content;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto secret = SecretOf(line);
    if (!secret) {
      Error error = secret.error();
      error.message += fmt::format(", in line {} of {}", number, InputName(path));
      return error;
    }
    secrets.push_back(*std::move(secret));
  }
  return secrets;
}

Result<ImagePullServiceAccount> ParseServiceAccount(std::string_view flag, std::string_view text) {
  std::vector<std::string> parts = Split(text, 3);
  if (parts.size() != 3) {
    return BadFlag(flag, "it does not have 3 parts", kServiceAccountForm);
  }
  TRY(CheckParts(flag, parts, kServiceAccountForm));
  return ImagePullServiceAccount{.uid = parts[2], .namespace_name = parts[0], .name = parts[1]};
}

void StoreFlags::Declare(Flags& flags) {
  flags.Value("--store", &store, "DIR",
              "the store's directory; else WAYBILL_STORE, or the settings",
              Length{.hint = "name the store's directory"}, kRequired | kTakesSetting);
  DeclareUntestedLmdb(flags);
}

Flag& StoreFlags::DeclareOptional(Flags& flags) {
  DeclareUntestedLmdb(flags);
  return flags.Value("--store", &store, "DIR", "the store's directory",
                     Length{.hint = "name the store's directory"});
}

void StoreFlags::DeclareUntestedLmdb(Flags& flags) {
  flags.Switch("--allow-untested-lmdb", &allow_untested_lmdb_,
               "go on with a version of LMDB that waybill was not tested with", kSeldom);
  flags.Check([this]() -> Result<void> {
    if (allow_untested_lmdb_) AllowUntestedLmdb(true);
    return {};
  });
}

void StoreFlags::DeclareToWrite(Flags& flags) {
  Declare(flags);
  DeclareWait(flags);
}

void StoreFlags::DeclareWait(Flags& flags) {
  const auto parse = [](std::string_view flag,
                        const std::string& text) -> Result<std::chrono::seconds> {
    const bool is_bare = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    auto parsed = TRY(ParseDuration(flag, is_bare ? text + "s" : text));
    if (parsed > std::chrono::hours(24)) return BadFlag(flag, "the most is 1d");
    return parsed;
  };
  flags.Value("--wait", &wait, "TIME",
              "how long to wait for another process that owns the store, 1d at most", parse,
              kSeldom);
}

void ChangeFlags::DeclareAllowEmpty(Flags& flags, std::string_view list) {
  flags.Switch("--allow-empty", &allow_empty, fmt::format("accept an empty {}", list));
}

void ChangeFlags::DeclareDryRun(Flags& flags) {
  flags.Switch("--dry-run", &dry_run, "say what would be done, and change nothing");
}

void ShortNamesFlag::Declare(Flags& flags) {
  flags.Choice("--short-names", &given_, "anywhere|docker.io",
               "what an image without a registry may name: anything (default), or\n"
               "only what completing it with docker.io gives (containerd)",
               Word<ShortNames>("meaning of short names"), kTakesSetting);
}

EvidenceOptions ShortNamesFlag::options() const {
  EvidenceOptions options;
  if (given_) options.short_names = *given_;
  return options;
}

Result<void> ShortNamesFlag::CheckOwner(const waybill::Settings& owner) const {
  const ShortNames owners =
      owner.short_names_anywhere ? ShortNames::kAnywhere : ShortNames::kDockerHub;
  if (!given_ || *given_ == owners) return {};
  return BadFlag("--short-names",
                 fmt::format("the process that owns the store goes by {}", WordOf(owners)),
                 "leave the flag out, or restart that process with it");
}

void DeclareFirstStart(Flags& flags, FirstStart* target) {
  flags.Choice("--first-start", target, "presume|close",
               "what a new store makes of images that have neither record nor open\n"
               "pull: presume them preloaded (default), or close them",
               Word<FirstStart>("first start"), kTakesSetting);
}

void DeclareMaxAge(Flags& flags, std::optional<std::chrono::seconds>* target) {
  const auto parse = [](std::string_view flag,
                        std::string_view text) -> Result<std::chrono::seconds> {
    const std::chrono::seconds age = TRY(ParseDuration(flag, text));
    if (age.count() != 0 && age < kMinAge) {
      return BadFlag(flag, fmt::format("the least is {} seconds", kMinAge.count()));
    }
    return age;
  };
  flags.Value("--max-age", target, "TIME",
              "how long a proof opens images, of whatever kind: 60s to 365d, or 0, for ever\n"
              "(default). The store remembers it",
              parse, kSeldom | kTakesSetting);
}

void RuntimeFlag::Declare(Flags& flags) {
  flags.Value("--runtime", &given_, "HANDLER",
              "the runtime handler of the pod's RuntimeClass; '' is the default one",
              LengthOrNone{kMaxRuntimeHandlerBytes});
}

Flag& ProofsFlag::Declare(Flags& flags) {
  Flag& flag = flags.List("--proofs", &rules_, "[PATTERN=]any|registry",
                          "which proofs count, of all images or those of PATTERN: any (default),\n"
                          "or only what the registry checked; may be repeated",
                          ParseProofRule);
  flag.choices = {"any", "registry"};
  return flag.TakesSetting();
}

Result<VerificationPolicy> ProofsFlag::In(const VerificationPolicy& policy) const {
  auto with = policy.WithProofs(rules_);
  if (!with) return About("--proofs", with.error());
  return with;
}

Flag::Values PolicyNames() {
  Flag::Values names;
  for (const Verification mode :
       {Verification::kNeverVerify, Verification::kNeverVerifyPreloadedImages,
        Verification::kNeverVerifyAllowlistedImages, Verification::kAlwaysVerify}) {
    names.emplace_back(WordOf(mode));
  }
  return names;
}

const FromSettings& UnlessPolicyIsTyped() {
  static const FromSettings kUnless = {
      .unless = {"--policy", "--allow", "--allow-preloaded-only", "--kubelet-config"}};
  return kUnless;
}

void DeclareAllowlist(Flags& flags, std::vector<std::string>* allow, bool* preloaded_only) {
  const FromSettings& unless = UnlessPolicyIsTyped();
  flags
      .List("--allow", allow, "PATTERN",
            "an image name or PREFIX/* of the allowlist; may be repeated")
      .TakesSetting(unless);
  flags
      .Switch("--allow-preloaded-only", preloaded_only,
              "the allowlist opens only images that were not pulled", kSeldom)
      .TakesSetting(unless);
  DeclareKubeletConfig(flags).TakesSetting(unless);
}

void PolicyFlags::Declare(Flags& flags) {
  flags
      .Value("--policy", &mode_, "POLICY",
             "NeverVerify, NeverVerifyPreloadedImages (default),\n"
             "NeverVerifyAllowlistedImages or AlwaysVerify",
             Word<Verification>("credential verification policy"))
      .TakesSetting(UnlessPolicyIsTyped())
      .choices = PolicyNames();
  DeclareAllowlist(flags, &allow_, &allow_preloaded_only_);
  proofs_.Declare(flags);
  flags.Excludes("--kubelet-config", {"--policy", "--allow"});
  flags.Check([this] { return Make(); });
}

void PolicyFlags::DeclareWhatIf(Flags& flags) {
  Declare(flags);
  flags.Find("--policy")->help =
      "say what another policy than the store's would give: NeverVerify,\n"
      "NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages or AlwaysVerify";
  for (Flag* const flag : WithoutSettings(flags)) {
    flags.Check([this, flag]() -> Result<void> {
      is_given_ = is_given_ || flag->given();
      return {};
    });
  }
}

std::vector<Flag*> WithoutSettings(Flags& flags) {
  std::vector<Flag*> all;
  for (const char* const name :
       {"--policy", "--allow", "--allow-preloaded-only", "--kubelet-config", "--proofs"}) {
    all.push_back(flags.Find(name));
    all.back()->settings.reset();
  }
  return all;
}

Result<void> PolicyFlags::Make() {
  policy = TRY(MakePolicy(mode_.value_or(Verification::kNeverVerifyPreloadedImages), allow_,
                          allow_preloaded_only_));
  policy = TRY(proofs_.In(policy));
  return {};
}

Result<VerificationPolicy> MakePolicy(Verification mode, std::vector<std::string> allow,
                                      bool allow_preloaded_only) {
  if (allow_preloaded_only && mode != Verification::kNeverVerifyAllowlistedImages) {
    return BadFlag("--allow-preloaded-only", "it needs the policy NeverVerifyAllowlistedImages",
                   "add --policy NeverVerifyAllowlistedImages");
  }
  auto made = VerificationPolicy::Make(
      mode, std::move(allow),
      allow_preloaded_only ? AllowlistScope::kPreloadedOnly : AllowlistScope::kAnyImage);
  if (!made) return About("--allow", made.error());
  return made;
}

void PullFlags::Declare(Flags& flags, bool needs_image) {
  store.DeclareToWrite(flags);
  Flag& named = flags.Value("--image", &image, "IMAGE",
                            "the container's image, as the pod spells it", Length{kMaxImageBytes});
  if (needs_image) named.Required("give the container's image as the pod spells it");
  flags.Value("--image-ref", &image_ref, "REF",
              "what the runtime calls the image, or short for it; '' if it is not\n"
              "on the node (needed by check and pulled)",
              LengthOrNone{kMaxImageRefBytes});
  flags.List("--secret", &secrets, "NS/NAME/UID/HASH|@FILE",
             "a pull Secret of the pod, with or without hash; @FILE: in a file", ReadSecret);
  flags.Value("--secrets", &secrets_path_, "FILE|-",
              "pull Secrets of the pod, a line of JSON each; other users don't see them");
  flags.Value("--service-account", &service_account, "NS/NAME/UID", "the pod's service account",
              ParseServiceAccount);
  runtime.Declare(flags);
  flags.Choice("--pull-policy", &pull_policy, "Always|IfNotPresent|Never",
               "the container's imagePullPolicy", Word<PullPolicy>("pull policy"));
  flags.Check([this]() -> Result<void> {
    if (!secrets_path_) return {};
    auto more = TRY(ReadSecrets(*secrets_path_));
    secrets.insert(secrets.end(), more.begin(), more.end());
    return {};
  });
}

Result<std::uint64_t> ParseMapSize(std::string_view flag, std::string_view text) {
  auto parsed = TRY(Number()(flag, text));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (parsed == 0 || parsed % page != 0) {
    const std::uint64_t below = parsed / page * page;
    return BadFlag(flag, fmt::format("{} is not a multiple of the page size, {}", parsed, page),
                   below == 0 ? "" : fmt::format("{} is one", below));
  }
  return parsed;
}

}  // namespace waybill::cli
