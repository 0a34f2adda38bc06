// Parsers of flags' values, and groups of flags that several commands share.

#ifndef WAYBILL_BINDINGS_CLI_PARSE_H_
#define WAYBILL_BINDINGS_CLI_PARSE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/flags.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/base/words.h"
#include "waybill/result.h"
#include "waybill/waybill.h"

namespace waybill::cli {

// An error of the library, with the flag that it is about.
Error About(std::string_view flag, Error error);

// A whole number within bounds.
struct Number {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
  Result<std::uint64_t> operator()(std::string_view flag, std::string_view text) const;
};
// Neither empty nor longer than `most` bytes.
struct Length {
  std::size_t most = SIZE_MAX;
  std::string hint = {};  // where it is empty
  Result<std::string> operator()(std::string_view flag, const std::string& text) const;
};
// The same, or empty.
struct LengthOrNone {
  std::size_t most = SIZE_MAX;
  Result<std::string> operator()(std::string_view flag, const std::string& text) const;
};
// The enumerator that the text names; `what` it is.
template <typename T>
auto Word(std::string_view what) {
  return [what](std::string_view flag, const std::string& text) -> Result<T> {
    auto named = FromWord<T>(text, what);
    if (!named) return About(flag, named.error());
    return named;
  };
}
// "linux/arm64".
Result<Platform> PlatformOf(std::string_view flag, const std::string& text);
// "90s", "2m", "2h", "1d", at most a year; a bare 0.
Result<std::chrono::seconds> ParseDuration(std::string_view flag, std::string_view text);
// RFC 3339.
Result<Timestamp> ParseTime(std::string_view flag, std::string_view text);
// A pull's number, as `waybill intent` prints it.
Result<PullId> ParsePullId(std::string_view flag, std::string_view text);
// "sha256:…": ALGORITHM:ENCODED.
Result<std::string> ParseDigest(std::string_view flag, const std::string& text);
// A bare one, or NAMESPACE.
Result<std::string> ParseNamespace(std::string_view flag, const std::string& text);
// Pull Secrets. Every user of the node can see arguments, so the hash of a credential may come from
// a file instead. No error quotes such a file.
//
// --secret: NAMESPACE/NAME/UID/HASH, the hash and the '/' before it optional; or @FILE, a file with
// one such line.
Result<ImagePullSecret> ReadSecret(std::string_view flag, const std::string& text);

// --secrets: the file `path` ("-": standard input), a line each:
//   {"namespace":"…","name":"…","uid":"…","credentialHash":"…"}
// as in a kubelet's record; credentialHash is optional. Empty lines are ignored.
Result<std::vector<ImagePullSecret>> ReadSecrets(const std::string& path);

// NAMESPACE/NAME/UID.
Result<ImagePullServiceAccount> ParseServiceAccount(std::string_view flag, std::string_view text);

// --store and --allow-untested-lmdb, of every command that opens a store.
struct StoreFlags {
  std::string store;
  std::chrono::seconds wait{0};

  void Declare(Flags& flags);
  // --store may be missing: `store` is empty then.
  Flag& DeclareOptional(Flags& flags);
  // --wait, of commands that write: WhileOwned (store_access.h).
  void DeclareWait(Flags& flags);
  // Both. Also of an action that reads, if another of its command writes: a script may give each
  // the same flags.
  void DeclareToWrite(Flags& flags);
  // For a command that names its stores otherwise.
  void DeclareUntestedLmdb(Flags& flags);

 private:
  bool allow_untested_lmdb_ = false;
};

// --allow-empty and --dry-run, of commands that delete. Each command declares those that it takes.
struct ChangeFlags : ChangeOptions {
  // `list`: "list of images".
  void DeclareAllowEmpty(Flags& flags, std::string_view list);
  void DeclareDryRun(Flags& flags);
};

// --short-names: which image a pull of a name without a registry may have brought.
struct ShortNamesFlag {
  void Declare(Flags& flags);
  EvidenceOptions options() const;
  // kInvalidArgument: the flag was given, and the owner that is to be asked goes by another value.
  Result<void> CheckOwner(const waybill::Settings& owner) const;

 private:
  std::optional<ShortNames> given_;
};

// --first-start: of images that nobody recorded.
void DeclareFirstStart(Flags& flags, FirstStart* target);

// --max-age. nullopt: it was not given.
void DeclareMaxAge(Flags& flags, std::optional<std::chrono::seconds>* target);

// --runtime: which handler's copy of an image is meant.
struct RuntimeFlag {
  void Declare(Flags& flags);
  bool given() const { return given_.has_value(); }
  // Empty: the default handler.
  const std::string& handler() const { return given_ ? *given_ : none_; }

 private:
  std::optional<std::string> given_;
  std::string none_;
};

// --proofs: which proofs count, by who checked the credential (store/base/policy.h).
class ProofsFlag {
 public:
  Flag& Declare(Flags& flags);
  bool given() const { return !rules_.empty(); }
  // The policy with these rules.
  Result<VerificationPolicy> In(const VerificationPolicy& policy) const;

 private:
  std::vector<ProofRule> rules_;
};

// --policy, --allow, --allow-preloaded-only, and --kubelet-config in place of the first two;
// --proofs.
// --allow, --allow-preloaded-only and --kubelet-config, beside --policy, which is declared before.
void DeclareAllowlist(Flags& flags, std::vector<std::string>* allow, bool* preloaded_only);
// What another policy than the store's would give: these flags, of which no setting counts.
std::vector<Flag*> WithoutSettings(Flags& flags);
// What is typed of these four, so that no setting of them counts.
const FromSettings& UnlessPolicyIsTyped();

struct PolicyFlags {
  VerificationPolicy policy;

  void Declare(Flags& flags);
  // The same to ask what another policy than the store's would give; no setting of them counts.
  void DeclareWhatIf(Flags& flags);
  // nullptr: none of them was given.
  const VerificationPolicy* what_if() const { return is_given_ ? &policy : nullptr; }

 private:
  Result<void> Make();

  std::optional<Verification> mode_;
  std::vector<std::string> allow_;
  bool allow_preloaded_only_ = false;
  ProofsFlag proofs_;
  bool is_given_ = false;
};
// The policy of these flags, all but --kubelet-config and --proofs. Errors are about them.
Result<VerificationPolicy> MakePolicy(Verification mode, std::vector<std::string> allow,
                                      bool allow_preloaded_only);
// For --policy.
Flag::Values PolicyNames();

// The flags about a pull. `check`, `intent`, `pulled` and `failed` all take them, so that a script
// can pass the same flags to each.
struct PullFlags {
  StoreFlags store;
  RuntimeFlag runtime;
  std::string image;
  std::optional<std::string> image_ref;  // may be empty: not on the node
  std::vector<ImagePullSecret> secrets;  // of both flags
  std::optional<ImagePullServiceAccount> service_account;
  std::optional<PullPolicy> pull_policy;

  // `needs_image`: nothing else names it than --image.
  void Declare(Flags& flags, bool needs_image = true);
  bool has_secrets_file() const { return secrets_path_.has_value(); }

 private:
  std::optional<std::string> secrets_path_;
};

// --map-size: whole pages. The library knows the bounds.
Result<std::uint64_t> ParseMapSize(std::string_view flag, std::string_view text);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PARSE_H_
