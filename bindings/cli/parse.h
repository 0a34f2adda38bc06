// Values of flags, and groups of flags that several commands share.

#ifndef WAYBILL_BINDINGS_CLI_PARSE_H_
#define WAYBILL_BINDINGS_CLI_PARSE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/flags.h"
#include "bindings/cli/kubelet_config.h"
#include "waybill/waybill.h"

namespace waybill::cli {

// kInvalidArgument, with a message about the flag `name`.
inline Error BadFlag(std::string_view name, std::string_view problem, std::string_view hint = {}) {
  return {ErrorCode::kInvalidArgument, std::string(name).append(": ").append(problem),
          std::string(hint)};
}

Result<std::uint64_t> ParseNumber(std::string_view flag, std::string_view text);
// Leaves `number` unchanged if the flag was not given.
Result<void> ParseNumber(std::string_view flag, const std::optional<std::string>& text,
                         std::uint64_t& number);
// "90s", "2m", "2h", "1d", at most a year; a bare 0.
Result<std::chrono::seconds> ParseDuration(std::string_view flag, std::string_view text);
// A pull's number, as `waybill intent` prints it.
Result<PullId> ParsePullId(std::string_view flag, std::string_view text);
// Neither empty nor longer than `most` bytes.
Result<void> CheckLength(std::string_view flag, std::string_view value, std::size_t most);

// "sha256:…": ALGORITHM:ENCODED.
Result<void> CheckDigest(std::string_view flag, std::string_view value);

// NAMESPACE/NAME/UID/HASH; the hash and the '/' before it are optional. No error quotes the text.
Result<ImagePullSecret> ParseSecret(std::string_view text);
// The namespace, name and UID are not empty, and nothing is too long.
Result<void> CheckSecret(std::string_view flag, const ImagePullSecret& secret,
                         std::string_view form);
// NAMESPACE/NAME/UID.
Result<ImagePullServiceAccount> ParseServiceAccount(std::string_view text);

// --store and --allow-untested-lmdb, of every command that opens a store, and --rules, of those
// that depend on them.
struct StoreFlags {
  std::string store;
  std::optional<std::string> rules_name;

  // Out: parsed.
  Rules rules = Rules::kClosed;
  std::chrono::seconds wait{0};  // DeclareWait

  void Declare(Flags& flags);
  // --store may be missing: `store` is empty then.
  void DeclareOptional(Flags& flags);
  // For a command that names its stores otherwise.
  void DeclareWithoutStore(Flags& flags);
  void DeclareRules(Flags& flags);
  // --wait, of commands that write: WhileOwned (owner_wait.h).
  void DeclareWait(Flags& flags);
  Result<void> Parse();

 private:
  void DeclareUntestedLmdb(Flags& flags);

  std::optional<std::string> optional_store_;
  std::optional<std::string> wait_;
  bool is_optional_ = false;
  bool allow_untested_lmdb_ = false;
};

// --allow-empty and --dry-run, of commands that delete. Each command declares those that it takes.
struct ChangeFlags {
  ChangeOptions options;

  // `list`: "list of images".
  void DeclareAllowEmpty(Flags& flags, std::string_view list);
  void DeclareDryRun(Flags& flags);
};

// --short-names, --grace and --window: how long a pull that ended may still have brought an image,
// and which one. --remember: of images that are gone. A command that judges images takes all.
struct EvidenceFlags {
  EvidenceOptions options;  // out: parsed

  void Declare(Flags& flags);
  void DeclareShortNames(Flags& flags);
  Result<void> Parse();
  // kInvalidArgument: a flag was given, and the owner that is to be asked goes by another value.
  Result<void> CheckOwner(const EvidenceOptions& owner) const;

 private:
  std::optional<std::string> short_names_;
  std::optional<std::string> grace_;
  std::optional<std::string> window_;
  std::optional<std::string> remember_;
};

// --first-start: of images that nobody recorded.
struct FirstStartFlag {
  FirstStart first_start = FirstStart::kPresume;  // out: parsed

  void Declare(Flags& flags);
  Result<void> Parse();

 private:
  std::optional<std::string> name_;
};

// --max-age, --max-age-service-accounts, --max-age-node-pods and --keep-revocations.
struct AgeFlags {
  std::optional<AgeLimits> limits;  // out: parsed; nullopt: none of the flags was given

  void Declare(Flags& flags);
  Result<void> Parse();

 private:
  std::optional<std::string> credentials_;
  std::optional<std::string> service_accounts_;
  std::optional<std::string> node_pods_;
  std::optional<std::string> revocations_;
};

// --runtime: which handler's copy of an image is meant.
struct RuntimeFlag {
  std::string handler;  // empty: the default handler

  void Declare(Flags& flags);
  bool given() const { return given_.has_value(); }
  Result<void> Parse();

 private:
  std::optional<std::string> given_;
};

// --policy, --allow, --allow-preloaded-only, and --kubelet-config in place of the first two.
struct PolicyFlags {
  std::optional<std::string> policy_name;
  std::vector<std::string> allow;
  KubeletConfigFlag kubelet_config;
  bool allow_preloaded_only = false;

  // Out: parsed.
  VerificationPolicy policy;

  void Declare(Flags& flags);
  Result<void> Parse();
};

// The flags about a pull. `check`, `intent`, `pulled` and `failed` all take them, so that a script
// can pass the same flags to each.
struct PullFlags {
  StoreFlags store;
  PolicyFlags policy;
  RuntimeFlag runtime;
  std::optional<std::string> image_text;
  std::string image;
  std::optional<std::string> image_ref;  // may be empty: not on the node
  std::vector<std::string> secret_texts;
  std::optional<std::string> secrets_path;
  std::optional<std::string> service_account_text;
  std::optional<std::string> pull_policy_name;

  // Out: parsed.
  std::vector<ImagePullSecret> secrets;
  std::optional<ImagePullServiceAccount> service_account;
  std::optional<PullPolicy> pull_policy;

  void Declare(Flags& flags);
  Result<void> Parse();
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PARSE_H_
