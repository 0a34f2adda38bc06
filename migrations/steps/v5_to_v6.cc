// Version 6 can forget: it stores what was forgotten, and when each credential was proven.
//
// Up: records stay as they are: when their credentials were proven is unknown.
//
// Down: records are written without forgotten credentials. Version 5 has no ages, so credentials
// whose age is limited are left out, too: their images must be verified again.

#include <algorithm>
#include <string>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/empty_list.h"
#include "store/base/try.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/revocations_table.h"
#include "store/node/records/typed_tables.h"

namespace waybill::internal {

namespace v5_to_v6 {
namespace {

Result<void> Up(StepRun&) { return {}; }

// Version 5 would open an image, by the coordinates, to a Secret that was rotated to a forgotten
// hash.
Result<bool> ForgotHashes(const StoreTxn& txn) {
  auto all = TRY(ReadRevocations(txn));
  return std::any_of(all.begin(), all.end(),
                     [](const Revocation& one) { return one.kind == RevocationKind::kCredential; });
}

// Removes credentials that version 5 would keep for too long: those with a limited age, and with
// `forgot_hashes` every Secret. Returns whether the record had any.
bool DropLimited(const AgeLimits& ages, bool forgot_hashes, ImagePulledRecord& record) {
  const std::chrono::seconds none{0};
  const bool accounts = ages.credentials > none || ages.service_accounts > none;
  bool any = false;
  for (auto at = record.credential_mapping.begin(); at != record.credential_mapping.end();) {
    ImagePullCredentials& entry = at->second;
    const ImagePullCredentials before = entry;
    if (ages.credentials > none || forgot_hashes) entry.kubernetes_secrets.clear();
    if (accounts) entry.kubernetes_service_accounts.clear();
    if (ages.node_pods > none) entry.node_pods_accessible = false;
    const bool changed = !(entry == before);
    any = any || changed;
    at = changed && entry.empty() ? record.credential_mapping.erase(at) : std::next(at);
  }
  return any;
}

Result<void> Down(StepRun& run) {
  auto forgot_hashes = TRY(ForgotHashes(run.txn));
  return RewriteRecords(run, 5, [&](ImagePulledRecord& record) -> Result<void> {
    TRY(DropForgotten(run.txn, record));
    DropLimited(run.txn.state().ages, forgot_hashes, record);
    for (auto& [name, entry] : record.credential_mapping) {
      entry.node_pods_proof = {};
      for (ImagePullSecret& secret : entry.kubernetes_secrets) secret.proof = {};
      for (auto& account : entry.kubernetes_service_accounts) account.proof = {};
    }
    return {};
  });
}

Result<std::vector<std::string>> Losses(const StoreTxn& txn) {
  std::vector<std::string> losses;
  if (!txn.schema().has(Table::kRevocations)) return losses;
  if (const auto count = txn.state().digest(Table::kRevocations).count; count > 0) {
    losses.push_back(HowMany(count, "revocation") +
                     ": what was forgotten is gone, but a kubelet's file or a pull that began "
                     "before may bring it back");
  }
  auto forgot_hashes = TRY(ForgotHashes(txn));
  std::uint64_t limited = 0;
  std::uint64_t rotatable = 0;
  const bool any_limit = !(txn.state().ages == AgeLimits());
  if (!any_limit && !forgot_hashes) return losses;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    auto record = DecodePulledRecordValue(payload);
    if (record && DropLimited(txn.state().ages, false, *record)) {
      ++limited;
    } else if (record && forgot_hashes && DropLimited({}, true, *record)) {
      ++rotatable;
    }
    return true;
  }));
  if (limited > 0) {
    losses.push_back("the credentials of " + HowMany(limited, "record") +
                     " whose age is limited: to be verified again, since version 5 has no ages");
  }
  if (rotatable > 0) {
    losses.push_back("the Secrets of " + HowMany(rotatable, "record") +
                     ": to be verified again, since version 5 opens to one that is rotated to a "
                     "forgotten credential");
  }
  return losses;
}

}  // namespace
}  // namespace v5_to_v6

const Step kStepV5ToV6 = {5, 6, "revocation", v5_to_v6::Up, v5_to_v6::Down, v5_to_v6::Losses};

}  // namespace waybill::internal
