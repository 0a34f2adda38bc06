#include "bindings/cli/proofs_flag.h"

#include <string>
#include <string_view>

#include "bindings/cli/parse.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

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
  rule.proofs = TRY(Named(ParseProofs)(flag, std::string(text)));
  return rule;
}

}  // namespace

Flag& ProofsFlag::Declare(Flags& flags) {
  Flag& flag = flags.List("--proofs", &rules_, "[PATTERN=]any|registry",
                          "which proofs count: any (default), or only what the registry itself\n"
                          "checked; of the images that an image name or PREFIX/* names, or of\n"
                          "all others; may be repeated",
                          ParseProofRule);
  flag.choices = {"any", "registry"};
  return flag.TakesSetting();
}

Result<VerificationPolicy> ProofsFlag::In(const VerificationPolicy& policy) const {
  auto with = policy.WithProofs(rules_);
  if (!with) return About("--proofs", with.error());
  return with;
}

}  // namespace waybill::cli
