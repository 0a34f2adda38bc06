// Version 3 keeps host ID ranges for pods in user namespaces (KEP-127).
//
// Up: nothing is rewritten; the new tables are empty. Ranges come from the kubelet's files, so a
// store beside a kubelet hands out none before their import. A store that is distrustful for a loss
// may have lost ranges, too.
//
// Down: the tables are dropped, and the kubelet continues with the ranges in its files. Refused
// while there are ranges that its files can't hold, or with which it would not start.

#include <map>
#include <string>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/empty_list.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/engine/trust/trust.h"
#include "store/node/userns/lost_ranges.h"

namespace waybill::internal {

namespace v2_to_v3 {
namespace {

constexpr std::size_t kMaxNamed = 10;

// A store that lost something may be an old copy of a store with ranges. A store with a kubelet's
// imported records lives beside a kubelet, whose ranges are unknown until they are imported.
Result<void> Up(StepRun& run) {
  auto reasons = TRY(ReasonsOfDistrust(run.txn));
  for (const Distrust& why : reasons) {
    if (!LosesNothing(why)) return HoldLostRanges(run.txn, why.reason);
  }
  if (run.txn.state().digest(Table::kImported).count > 0) {
    return HoldRangesOfKubelet(run.txn);
  }
  return {};
}

Result<void> Down(StepRun&) { return {}; }  // Losses refused before this

Error CannotHold(const std::string& what, const std::string& hint, Hint code = Hint::kNone) {
  return {ErrorCode::kConflict, "the kubelet's files can't hold " + what + "; nothing was changed",
          hint, code};
}

// Names the first kMaxNamed.
std::string Pods(const std::vector<UsernsHeld>& held) {
  std::string pods;
  for (std::size_t i = 0; i < held.size() && i < kMaxNamed; ++i) {
    pods += (i == 0 ? "" : ", ") +
            (held[i].pod.pod_uid.empty() ? "(lost ranges)" : ShownPodUid(held[i].pod.pod_uid));
  }
  return held.size() > kMaxNamed ? pods + ", …" : pods;
}

Result<std::vector<std::string>> Losses(const StoreTxn& txn) {
  auto held = TRY(ReadHeld(txn));
  std::erase_if(held, [](const UsernsHeld& one) { return IsUntilImport(one.pod); });
  if (!held.empty()) {
    return CannotHold("unverified ranges of held pods: " + Pods(held), {}, Hint::kSettleHeldPods);
  }
  auto mappings = TRY(ReadMappings(txn));
  std::map<std::uint32_t, std::uint64_t> lengths;
  for (const UsernsMapping& mapping : mappings) ++lengths[mapping.length];
  if (lengths.size() > 1) {
    std::string list;
    for (const auto& [length, pods] : lengths) {
      list += (list.empty() ? "" : ", ") + std::to_string(pods) + " of " + std::to_string(length);
    }
    return CannotHold("ranges of several lengths (" + list +
                          "): it does not start beside one that is not its own idsPerPod",
                      "release the ranges of one length once their pods are gone");
  }
  std::vector<std::string> losses;
  if (!mappings.empty()) {
    losses.push_back(HowMany(mappings.size(), "ID mapping") +
                     " of pods: a kubelet that does not find them in its files hands their ranges "
                     "out again, so export them first");
  }
  return losses;
}

}  // namespace
}  // namespace v2_to_v3

const Step kStepV2ToV3 = {2, 3, "user-namespaces", v2_to_v3::Up, v2_to_v3::Down, v2_to_v3::Losses};

}  // namespace waybill::internal
