// What kinds of lives are simulated, and deliberate mistakes of whoever calls the library.

#ifndef WAYBILL_TESTS_SIMULATION_SCENARIO_H_
#define WAYBILL_TESTS_SIMULATION_SCENARIO_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "tests/simulation/timeline.h"

namespace waybill::simulation {

// Times are means between two events of a kind; 0: never.
struct Scenario {
  std::string_view name;
  // Bounds to keep; negative: none.
  double wrong_closings_at_most = -1;  // in 1,000 rightful decisions
  int open_pulls_after_storm_at_most = -1;
  int open_pulls_at_most = -1;
  Millis life = 20 * kDay;
  Millis questions = 10 * kSecond;
  Millis lists = 5 * kMinute;  // regular ones
  Millis tag_moves = 30 * kMinute;
  Millis collections = kHour;    // of garbage, followed by a list
  Millis removals = 12 * kHour;  // of an image, by hand: no list follows
  Millis imports = 0;            // by hand, of what no registry has
  Millis imports_of_tags = 0;    // by hand, of what a registry serves
  Millis rotations = 2 * kDay;   // of a tenant's Secret
  Millis kills = kDay;           // of the process
  Millis downtimes = kMinute;    // after those
  Millis handovers = 0;          // to a process that goes on with the pulls
  Millis reboots = 0;
  Millis losses = 0;     // of the store, or of its newer part
  Millis gaps = 0;       // a kubelet without waybill, or under kubelet rules
  Millis kubelets = 0;   // without waybill, which leave their files
  Millis operators = 0;  // who correct the ledger
  Millis upgrades = 0;   // of the runtime
  Millis clock_jumps = 0;
  Millis attacks = 0;
  Millis deletions = 0;                 // of Secrets, service accounts and namespaces
  Millis forgettings = 0;               // of images and hashes, by operators
  Millis backups = 0;                   // some of which are put back instead of a lost store
  Millis storms = 0;                    // many pods at once, all deleted while they pull
  Millis outages = 0;                   // of all registries, for hours
  Millis runtime_restarts = 0;          // it is killed, and its pulls with it
  Millis wipes = 0;                     // of the runtime's disk
  Millis disks = 0;                     // that go, with images on them, and come back
  Millis words = 0;                     // of operators on images that are away with their disk
  Millis rewritings = 0;                // by a kubelet, of what it remembers; its owner goes on
  std::size_t most_remembered = 0;      // images that are away; 0: the store's own bound
  std::size_t percent_cut = 5;          // of pulls: deleted, timed out, cut off
  std::size_t percent_late = 40;        // of those: the content arrives all the same
  std::size_t percent_misreported = 2;  // of pulls: failed, although the content arrives
  std::size_t percent_prefetched = 0;   // of tags that move
  std::size_t percent_lost = 0;         // of pulls: nothing is there, and then it is
  std::size_t percent_strangers = 0;    // of pulls: another tenant pulls the same string, in vain
  std::size_t percent_answered = 0;     // of pods that wait: an operator imports what they name
  std::size_t percent_foretold = 0;     // of questions: of what does not exist yet
  // Of pulls: an open mirror serves them, to whoever asks. Then only what the registry checked
  // counts.
  std::size_t percent_mirrored = 0;
  // Of pulls that a registry refuses: the node's own credential serves them.
  std::size_t percent_by_node = 0;
  std::size_t percent_ending = 0;  // of pulls: their credential ends by itself
  bool pods_wait = false;          // those that are not let in ask again and again
  bool reachable_half_the_time = false;
  bool runtime_down_at_start = true;  // sometimes: no list at opening
  bool runtime_handlers = false;      // some pods name one
  bool older_adapters = false;        // some name no pulls, or pass no entries of the runtime
  bool ages = false;                  // in most lives proofs grow old
  bool earlier_hashes = false;        // pods show what their Secret was before it was rotated
  bool kubelet_first = false;         // one without waybill ran before
  bool kubelet_beside = false;        // one without waybill sees the same, and is judged, too
  bool nameless_pulls = false;        // in half of the lives nobody says which pull ended
  bool remembers = true;              // what was known of images that are gone
  bool containerd = false;            // in all lives
  bool lists_late = false;  // CRI shows what nobody waits for later than containerd has it
  // What containerd is asked for beside CRI.
  bool tells_imports = false;  // ListedImage::imported
  bool tells_quiet = false;    // ImageList::quiet_until
  bool beyond_limits = false;  // now and then what EVIDENCE names as limits
  // Clocks jump far ahead, or have lost their time, and are put right: for one command, for hours,
  // at a start, at a boot. Ages and revocations go by real time.
  bool wrong_clocks = false;
  bool only_restores = false;    // of the losses: a backup takes the place of a store that is sound
  bool closes_for_good = false;  // what an operator closed stays so until he takes it back
  bool counts_openings = false;  // wrong ones; otherwise the first ends it
};

std::span<const Scenario> Scenarios();
// nullptr: there is none of that name.
const Scenario* FindScenario(std::string_view name);

// The judge must notice each of these.
enum class Breakage {
  kNone,
  kNoIntents,              // pulls without RecordPullIntent
  kAllNothingTransferred,  // every pull that did not succeed, however it ended
  kCutIsFailed,            // cancelled pulls pass for failures that the runtime reported
  kSuccessOfCutPulls,      // cancelled pulls pass for successes
  kSuccessOfAnotherPull,   // a success names the pull that began first
  kTokenAfterList,         // tokens are drawn when the list is there already
  kPartialListAsComplete,
  kOldListAsNew,  // a list is passed twice, the second time with a new token
  kWindowTooShort,
  kShortNamesHaveNoAliases,  // CRI-O, taken for containerd
  kGapUnreported,
  kLossUnwitnessed,
  kDistrustClearedByAdoption,
  kAnonymousSuccess,   // private images, recorded as pulled without credentials
  kEveryStartIsABoot,  // pulls of the process before pass for those of an earlier boot
  kPullsNeverEnd,      // a restart goes on with pulls that nobody ends any more
  // Of scenarios in which something is forgotten.
  kForgettingUntold,  // the store does not hear of it
  kBeginsAtItsEnd,    // a pull is announced when it has succeeded
  kAgesUntold,        // the owner names no limits
  // Of one scenario each.
  kKubeletUnseen,       // waybill begins without the kubelet's directory
  kOtherHashForgotten,  // the store hears of the hash that the Secret has now
  kImportedAlways,      // every image passes for imported
  kQuietTooEarly,       // the runtime's leases are not seen
  kMirrorsUntold,       // what a mirror served passes for the registry's
  kEndsUntold,          // nobody says when a credential ends
  kNodeHadNone,         // the caller says that the node had no credential
  kClosingsUntold,      // the store does not hear what an operator closes
  // Shuts out, and opens nothing.
  kMixedPullsProveNothing,  // a success beside a failure of the same string has no credentials
};
inline constexpr Breakage kLastBreakageOfEvidence = Breakage::kPullsNeverEnd;
inline constexpr Breakage kLastBreakageOfForgetting = Breakage::kAgesUntold;
std::string_view BreakageName(Breakage breakage);

}  // namespace waybill::simulation

#endif  // WAYBILL_TESTS_SIMULATION_SCENARIO_H_
