// Version 8 says of each proof who checked the credential, and until when it is good.
//
// Up: records stay as they are: who checked their credentials is unknown.
//
// Down: version 7 counts every proof for as long as AgeLimits say. So credentials that end by
// themselves are left out: their images must be verified again.

#include <string>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/empty_list.h"
#include "store/base/try.h"
#include "store/node/records/pulled_record.h"

namespace waybill::internal {

namespace v7_to_v8 {
namespace {

Result<void> Up(StepRun&) { return {}; }

struct Dropped {
  std::uint64_t ending = 0;   // credentials that end by themselves
  std::uint64_t checked = 0;  // of the others, those of which is known who checked them
};

// Removes from the record what version 7 has no place for.
Dropped DropTerms(ImagePulledRecord& record) {
  Dropped dropped;
  const auto ends = [&](Proof& proof) {
    if (proof.good_until) {
      ++dropped.ending;
      return true;
    }
    if (proof.checker != VerifiedBy::kUnknown) ++dropped.checked;
    proof.checker = VerifiedBy::kUnknown;
    return false;
  };
  for (auto at = record.credential_mapping.begin(); at != record.credential_mapping.end();) {
    ImagePullCredentials& entry = at->second;
    const bool was_empty = entry.empty();
    if (entry.node_pods_accessible && ends(entry.node_pods_proof)) {
      entry.node_pods_accessible = false;
    }
    std::erase_if(entry.kubernetes_secrets, [&](auto& one) { return ends(one.proof); });
    std::erase_if(entry.kubernetes_service_accounts, [&](auto& one) { return ends(one.proof); });
    at = !was_empty && entry.empty() ? record.credential_mapping.erase(at) : std::next(at);
  }
  return dropped;
}

Result<void> Down(StepRun& run) {
  return RewriteRecords(run, 7, [](ImagePulledRecord& record) -> Result<void> {
    DropTerms(record);
    return {};
  });
}

Result<std::vector<std::string>> Losses(const StoreTxn& txn) {
  Dropped all;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    auto record = TRY(Decoded(payload));
    const Dropped dropped = DropTerms(record);
    all.ending += dropped.ending;
    all.checked += dropped.checked;
    return true;
  }));
  std::vector<std::string> losses;
  if (all.ending > 0) {
    losses.push_back(HowMany(all.ending, "credential") +
                     " that end by themselves: to be verified again, since version 7 would count "
                     "them for longer");
  }
  if (all.checked > 0) {
    losses.push_back("who checked " + HowMany(all.checked, "credential") +
                     ": version 7 counts a mirror's answer like the registry's");
  }
  return losses;
}

}  // namespace
}  // namespace v7_to_v8

const Step kStepV7ToV8 = {7, 8, "checkers", v7_to_v8::Up, v7_to_v8::Down, v7_to_v8::Losses};

}  // namespace waybill::internal
