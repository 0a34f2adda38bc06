#include "tests/simulation/scenario.h"

#include <algorithm>
#include <array>

namespace waybill::simulation {

namespace {

const std::array kScenarios = {
    // The figures of EVIDENCE.
    Scenario{.name = "reachable", .wrong_closings_at_most = 0.01, .imports = kDay},
    Scenario{
        .name = "unreachable", .wrong_closings_at_most = 0.01, .reachable_half_the_time = true},
    Scenario{.name = "hostile", .wrong_closings_at_most = 0.01, .attacks = 5 * kMinute},
    Scenario{.name = "prefetched", .wrong_closings_at_most = 3, .percent_prefetched = 10},
    Scenario{.name = "storms", .open_pulls_after_storm_at_most = 30, .storms = 6 * kHour},
    Scenario{.name = "attacked",
             .open_pulls_at_most = 125,
             .attacks = 2 * kMinute,
             .percent_cut = 50,
             .percent_misreported = 20},
    // Everything else that goes wrong.
    Scenario{.name = "troubles",
             .removals = 3 * kHour,
             .imports = 2 * kHour,
             .imports_of_tags = 2 * kHour,
             .kills = 3 * kHour,
             .handovers = 3 * kHour,
             .reboots = 12 * kHour,
             .losses = 12 * kHour,
             .gaps = 12 * kHour,
             .operators = kHour,
             .upgrades = 12 * kHour,
             .clock_jumps = 6 * kHour,
             .attacks = 10 * kMinute,
             .storms = 12 * kHour,
             .percent_cut = 20,
             .percent_misreported = 10,
             .percent_prefetched = 10,
             .runtime_handlers = true,
             .older_adapters = true},
    Scenario{.name = "no-losses",
             .removals = 3 * kHour,
             .imports = 2 * kHour,
             .imports_of_tags = 2 * kHour,
             .kills = 3 * kHour,
             .handovers = 3 * kHour,
             .reboots = 12 * kHour,
             .operators = kHour,
             .upgrades = 12 * kHour,
             .clock_jumps = 6 * kHour,
             .attacks = 10 * kMinute,
             .percent_cut = 25,
             .percent_late = 70,
             .percent_misreported = 15,
             .runtime_handlers = true,
             .older_adapters = true},
    // Credentials are deleted, and proofs grow old by a clock that never jumps.
    Scenario{.name = "forgetting",
             .wrong_closings_at_most = 0.1,
             .tag_moves = 2 * kHour,
             .collections = 6 * kHour,
             .rotations = 12 * kHour,
             .kills = 6 * kHour,
             .handovers = 12 * kHour,
             .reboots = kDay,
             .deletions = kHour,
             .forgettings = 2 * kHour,
             .percent_cut = 20,
             .percent_misreported = 10,
             .runtime_handlers = true,
             .ages = true},
    // And everything else goes wrong meanwhile.
    Scenario{.name = "forgetful",
             .removals = 3 * kHour,
             .imports = 2 * kHour,
             .imports_of_tags = 2 * kHour,
             .rotations = 12 * kHour,
             .kills = 3 * kHour,
             .handovers = 3 * kHour,
             .reboots = 12 * kHour,
             .losses = 12 * kHour,
             .gaps = 12 * kHour,
             .operators = kHour,
             .upgrades = 12 * kHour,
             .clock_jumps = 6 * kHour,
             .attacks = 10 * kMinute,
             .deletions = kHour,
             .forgettings = 2 * kHour,
             .backups = 6 * kHour,
             .storms = 12 * kHour,
             .percent_cut = 20,
             .percent_misreported = 10,
             .percent_prefetched = 10,
             .runtime_handlers = true,
             .older_adapters = true,
             .ages = true},
    // Beyond what EVIDENCE promises: each such opening is counted.
    Scenario{.name = "limits",
             .removals = 3 * kHour,
             .imports = 2 * kHour,
             .imports_of_tags = 2 * kHour,
             .kills = 3 * kHour,
             .reboots = 12 * kHour,
             .operators = 20 * kMinute,
             .percent_cut = 25,
             .percent_late = 70,
             .percent_misreported = 15,
             .beyond_limits = true},
};

}  // namespace

std::span<const Scenario> Scenarios() { return kScenarios; }

const Scenario* FindScenario(std::string_view name) {
  const auto found = std::find_if(kScenarios.begin(), kScenarios.end(),
                                  [&](const Scenario& s) { return s.name == name; });
  return found == kScenarios.end() ? nullptr : &*found;
}

std::string_view BreakageName(Breakage breakage) {
  switch (breakage) {
    case Breakage::kNone:
      return "nothing";
    case Breakage::kNoIntents:
      return "no intents";
    case Breakage::kAllNothingTransferred:
      return "every failure transferred nothing";
    case Breakage::kCutIsFailed:
      return "cancelled pulls are failures of the runtime";
    case Breakage::kSuccessOfCutPulls:
      return "cancelled pulls succeed";
    case Breakage::kSuccessOfAnotherPull:
      return "a success names another pull";
    case Breakage::kTokenAfterList:
      return "tokens are drawn after the list";
    case Breakage::kPartialListAsComplete:
      return "partial lists are complete";
    case Breakage::kOldListAsNew:
      return "old lists get new tokens";
    case Breakage::kWindowTooShort:
      return "the window is a second";
    case Breakage::kShortNamesHaveNoAliases:
      return "CRI-O is taken for containerd";
    case Breakage::kGapUnreported:
      return "a gap is not reported";
    case Breakage::kLossUnwitnessed:
      return "the witness is lost with the store";
    case Breakage::kDistrustClearedByAdoption:
      return "distrust is cleared by adopting everything";
    case Breakage::kAnonymousSuccess:
      return "private images are recorded as public";
    case Breakage::kEveryStartIsABoot:
      return "every start is a boot";
    case Breakage::kPullsNeverEnd:
      return "pulls of earlier processes never end";
    case Breakage::kForgettingUntold:
      return "the store does not hear what is deleted";
    case Breakage::kBeginsAtItsEnd:
      return "pulls are announced when they have succeeded";
    case Breakage::kAgesUntold:
      return "the owner names no limits of ages";
  }
  return "";
}

}  // namespace waybill::simulation
