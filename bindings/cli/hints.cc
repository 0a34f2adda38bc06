#include "bindings/cli/hints.h"

namespace waybill::cli {

std::string_view CommandsFor(Hint hint) {
  switch (hint) {
    case Hint::kNone:
      return {};
    case Hint::kRecover:
      return "run `waybill start` to recover the store";
    case Hint::kVerify:
      return "run `waybill verify`; if it finds damage, `waybill start` recovers the store";
    case Hint::kPullAgain:
      return "pull the image again, or run `waybill start` to recover the store";
    case Hint::kCreate:
      return "make one with `waybill start`";
    case Hint::kMigrate:
      return "migrate it with `waybill migrate` or `waybill start`; both make a backup first";
    case Hint::kAcceptLoss:
      return "if the loss is acceptable, run `waybill migrate --accept-loss`; a backup is made "
             "first";
    case Hint::kRestore:
      return "put that backup back: `waybill restore BACKUP`";
    case Hint::kListBackups:
      return "choose another backup: `waybill restore` without a name lists them";
    case Hint::kAllowUntestedLmdb:
      return "use a tested version, or go on at your own risk with `--allow-untested-lmdb`";
    case Hint::kPruneOrEnlarge:
      return "prune records with `waybill prune`, or use a larger map (`--map-size`)";
    case Hint::kSkipUnreadable:
      return "try again; if it fails again, look for disk errors in the kernel's log; `waybill "
             "start --skip-unreadable` goes on without what can't be read";
    case Hint::kAllowEmpty:
      return "list again, since a runtime that starts up lists nothing; if the list is truly "
             "empty, add `--allow-empty`";
    case Hint::kBeginList:
      return "draw a token with `waybill observe --begin` before you list the images";
    case Hint::kBeginUsernsCleanup:
      return "draw a token with `waybill userns cleanup --begin` before you list the pods";
    case Hint::kLoadHandlers:
      return "`waybill runtimes` shows the known handlers; `waybill runtimes load` loads those "
             "that "
             "the runtime serves";
    case Hint::kFreeRanges:
      return "release the ranges of pods that are gone (`waybill userns cleanup`), see which are "
             "held (`waybill userns list`), or enlarge the pool";
    case Hint::kSettleHeldPods:
      return "`waybill userns list` shows the pods; run `waybill userns adopt POD FIRST LENGTH` "
             "for "
             "each that lives and `waybill userns release POD` for each that is gone, or `waybill "
             "start --kubelet-dir` for a kubelet's pods; once no other pod lives, `waybill userns "
             "release --lost`";
    case Hint::kReleasePod:
      return "if the other pod is gone, release it first: `waybill userns release POD`";
    case Hint::kReplaceWitness:
      return "name another path; if the file was the witness of a lost store, remove it and run "
             "`waybill start --after-gap --images`, since pulls may be unrecorded";
  }
  return {};
}

std::string_view HintOf(const Error& error) {
  return error.hint_code == Hint::kNone ? std::string_view(error.hint)
                                        : CommandsFor(error.hint_code);
}

}  // namespace waybill::cli
