#include "tests/simulation/scenario.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace waybill::simulation {

namespace {

constexpr Scenario Troubles(std::string_view name) {
  return {.name = name,
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
          .older_adapters = true};
}

constexpr Scenario Forgetful(Scenario scenario) {
  scenario.rotations = 12 * kHour;
  scenario.deletions = kHour;
  scenario.forgettings = 2 * kHour;
  scenario.backups = 6 * kHour;
  scenario.ages = true;
  return scenario;
}

// A disk with images goes for hours, and comes back, while a cluster pulls little.
constexpr Scenario Away(std::string_view name) {
  return {.name = name,
          .life = 8 * kDay,
          .questions = 2 * kMinute,
          .lists = 15 * kMinute,
          .tag_moves = 2 * kHour,
          .collections = 4 * kHour,
          .kills = 12 * kHour,
          .reboots = 2 * kDay,
          .disks = 8 * kHour,
          .percent_cut = 10};
}

// The clock is wrong for one command, for hours, at a start or at a boot.
constexpr Scenario WrongClocks(Scenario scenario) {
  scenario.clock_jumps = 4 * kHour;
  scenario.forgettings = 2 * kHour;
  scenario.rewritings = 20 * kMinute;
  scenario.ages = true;
  scenario.wrong_clocks = true;
  return scenario;
}

// A backup takes the place of a store that is sound, which has heard of more since.
constexpr Scenario Restores(Scenario scenario) {
  scenario.tag_moves = 20 * kMinute;
  scenario.imports = kHour;
  scenario.imports_of_tags = 6 * kHour;
  scenario.losses = 12 * kHour;
  scenario.operators = 30 * kMinute;
  scenario.backups = 4 * kHour;
  scenario.containerd = true;
  scenario.tells_imports = true;
  scenario.only_restores = true;
  scenario.closes_for_good = true;
  return scenario;
}

// Operators speak of images that are away.
constexpr Scenario Words(Scenario scenario) {
  scenario.imports = 2 * kHour;
  scenario.imports_of_tags = 6 * kHour;
  scenario.operators = 4 * kHour;
  scenario.words = kHour;
  scenario.closes_for_good = true;
  return scenario;
}

// More images are away than are remembered.
constexpr Scenario Many(Scenario scenario) {
  scenario.most_remembered = 12;
  return scenario;
}

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
    Troubles("troubles"),
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
    Forgetful(Troubles("forgetful")),
    // A kubelet without waybill runs for a while, with files of its own.
    Scenario{.name = "kubelet-alone",
             .tag_moves = 5 * kMinute,
             .removals = 6 * kHour,
             .imports = 6 * kHour,
             .kills = 6 * kHour,
             .reboots = 2 * kDay,
             .kubelets = 3 * kHour,
             .attacks = 20 * kMinute,
             .percent_cut = 50,
             .percent_late = 70,
             .percent_misreported = 10},
    // It ran before waybill, and what it cancelled may come an hour later.
    Scenario{.name = "take-over",
             .life = 12 * kHour,
             .questions = 5 * kSecond,
             .removals = 3 * kHour,
             .imports = 2 * kHour,
             .kills = 3 * kHour,
             .reboots = 12 * kHour,
             .attacks = 20 * kMinute,
             .percent_cut = 30,
             .percent_late = 70,
             .percent_misreported = 10,
             .kubelet_first = true},
    // Hashes are forgotten, and pods show what their Secrets were before.
    Scenario{.name = "hashes",
             .wrong_closings_at_most = 0.1,
             .tag_moves = 2 * kHour,
             .collections = 6 * kHour,
             .rotations = 2 * kHour,
             .kills = 6 * kHour,
             .handovers = 12 * kHour,
             .deletions = 12 * kHour,
             .forgettings = kHour,
             .earlier_hashes = true},
    // While a tenant's pull runs, another tenant's of the same string fails.
    Scenario{.name = "strangers",
             .wrong_closings_at_most = 0.1,
             .tag_moves = 5 * kMinute,
             .percent_strangers = 35,
             .nameless_pulls = true},
    // And what they prove is forgotten meanwhile.
    Scenario{.name = "strange-hours",
             .tag_moves = 5 * kMinute,
             .collections = 6 * kHour,
             .rotations = 2 * kHour,
             .kills = 6 * kHour,
             .handovers = 12 * kHour,
             .deletions = 2 * kHour,
             .forgettings = kHour,
             .percent_cut = 20,
             .percent_late = 70,
             .percent_misreported = 10,
             .percent_strangers = 35,
             .runtime_handlers = true,
             .earlier_hashes = true,
             .nameless_pulls = true},
    // The runtime reports a failure, has no image then, and has it within a minute. A limit.
    Scenario{.name = "lost",
             .kills = 0,
             .percent_cut = 0,
             .percent_misreported = 0,
             .percent_lost = 2,
             .kubelet_beside = true},
    // Registries are away for hours, and operators import what pods wait for.
    Scenario{.name = "by-hand",
             .wrong_closings_at_most = 25,
             .questions = kMinute,
             .removals = 3 * kHour,
             .imports = 2 * kHour,
             .imports_of_tags = 2 * kHour,
             .kills = 6 * kHour,
             .downtimes = 20 * kMinute,
             .handovers = 12 * kHour,
             .reboots = 2 * kDay,
             .losses = 4 * kDay,
             .gaps = 4 * kDay,
             .outages = 12 * kHour,
             .runtime_restarts = kDay,
             .wipes = 4 * kDay,
             .percent_cut = 20,
             .percent_late = 70,
             .percent_misreported = 10,
             .percent_answered = 30,
             .percent_foretold = 1,
             .pods_wait = true,
             .containerd = true,
             .lists_late = true,
             .tells_imports = true,
             .tells_quiet = true},
    // A mirror asks nobody for credentials, and tokens end.
    Scenario{.name = "mirrors",
             .tag_moves = 5 * kMinute,
             .removals = 6 * kHour,
             .imports = 6 * kHour,
             .kills = 6 * kHour,
             .handovers = 12 * kHour,
             .reboots = kDay,
             .losses = 2 * kDay,
             .operators = 6 * kHour,
             .attacks = 10 * kMinute,
             .deletions = 6 * kHour,
             .forgettings = 12 * kHour,
             .percent_cut = 20,
             .percent_late = 70,
             .percent_misreported = 10,
             .percent_mirrored = 30,
             .percent_ending = 30,
             .runtime_handlers = true,
             .older_adapters = true,
             .ages = true},
    // The node's own credential serves whom the registry refuses.
    Scenario{.name = "node-credentials",
             .tag_moves = 30 * kMinute,
             .removals = 6 * kHour,
             .kills = 6 * kHour,
             .reboots = kDay,
             .operators = 6 * kHour,
             .attacks = 10 * kMinute,
             .deletions = 6 * kHour,
             .forgettings = 12 * kHour,
             .percent_cut = 10,
             .percent_by_node = 30,
             .percent_ending = 20,
             .runtime_handlers = true,
             .older_adapters = true,
             .ages = true},
    WrongClocks(Away("wrong-clocks")),
    Restores(Away("restores")),
    Words(Away("words")),
    Many(Words(Away("many-away"))),
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
  static constexpr std::string_view kNames[] = {
      "nothing",
      "no intents",
      "every failure transferred nothing",
      "cancelled pulls are failures of the runtime",
      "cancelled pulls succeed",
      "a success names another pull",
      "tokens are drawn after the list",
      "partial lists are complete",
      "old lists get new tokens",
      "the window is a second",
      "CRI-O is taken for containerd",
      "a gap is not reported",
      "the witness is lost with the store",
      "distrust is cleared by adopting everything",
      "private images are recorded as public",
      "every start is a boot",
      "pulls of earlier processes never end",
      "the store does not hear what is deleted",
      "pulls are announced when they have succeeded",
      "the owner names no limits of ages",
      "waybill begins without the kubelet's directory",
      "the store forgets another hash of the Secret",
      "every image is called imported",
      "the runtime's leases are not seen",
      "what a mirror served passes for the registry's",
      "nobody says when a credential ends",
      "the node's own credentials are denied",
      "the store does not hear what an operator closes",
      "a success beside a failure of the same string proves nothing",
  };
  static_assert(std::size(kNames) ==
                static_cast<std::size_t>(Breakage::kMixedPullsProveNothing) + 1);
  return kNames[static_cast<std::size_t>(breakage)];
}

}  // namespace waybill::simulation
