// --proofs: which proofs count, by who checked the credential (waybill/policy.h).

#ifndef WAYBILL_BINDINGS_CLI_PROOFS_FLAG_H_
#define WAYBILL_BINDINGS_CLI_PROOFS_FLAG_H_

#include <vector>

#include "bindings/cli/flags.h"
#include "waybill/policy.h"
#include "waybill/result.h"

namespace waybill::cli {

class ProofsFlag {
 public:
  Flag& Declare(Flags& flags);
  // The policy with these rules.
  Result<VerificationPolicy> In(const VerificationPolicy& policy) const;

 private:
  std::vector<ProofRule> rules_;
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PROOFS_FLAG_H_
