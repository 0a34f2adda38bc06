// The library's hints, in calls of waybill.h.

#include "bindings/c/call.h"
#include "bindings/c/convert.h"

namespace waybill::c {

std::string_view HintInC(Hint hint) {
  switch (hint) {
    case Hint::kNone:
      return "";
    case Hint::kRecover:
      return "open the store with waybill_open, which recovers it";
    case Hint::kVerify:
      return "call waybill_verify; if it finds damage, waybill_open recovers the store";
    case Hint::kPullAgain:
      return "pull the image again, or open the store with waybill_open, which recovers it";
    case Hint::kCreate:
      return "make one: waybill_open without must_exist";
    case Hint::kMigrate:
      return "migrate it with waybill_migrate, or waybill_open without no_migration; both make a "
             "backup first";
    case Hint::kAcceptLoss:
      return "set accept_loss in waybill_migrate_options if the loss is acceptable; a backup is "
             "made first";
    case Hint::kRestore:
      return "put that backup back with waybill_restore";
    case Hint::kListBackups:
      return "choose another backup: waybill_list_backups lists them";
    case Hint::kAllowUntestedLmdb:
      return "use a tested version, or go on at your own risk with waybill_allow_untested_lmdb";
    case Hint::kPruneOrEnlarge:
      return "prune records with waybill_prune, or open the store with a larger map_bytes";
    case Hint::kSkipUnreadable:
      return "try again; if it fails again, look for disk errors in the kernel's log; "
             "skip_unreadable in waybill_open_options goes on without what can't be read";
    case Hint::kAllowEmpty:
      return "list again, since a runtime that starts up lists nothing; if the list is truly "
             "empty, set allow_empty";
    case Hint::kBeginList:
      return "draw a token with waybill_begin_list before you list the images";
    case Hint::kBeginUsernsCleanup:
      return "draw a token with waybill_begin_list before you list the pods";
    case Hint::kLoadHandlers:
      return "load the handlers that the runtime serves: waybill_replace_runtime_handlers";
    case Hint::kFreeRanges:
      return "release the ranges of pods that are gone (waybill_clean_up_user_namespaces), or "
             "enlarge the pool";
    case Hint::kSettleHeldPods:
      return "waybill_list_held_pods lists the pods; call waybill_adopt_user_namespace for each "
             "that lives and waybill_release_user_namespace for each that is gone, or open the "
             "store with the kubelet's pods_directory; once no other pod lives, "
             "waybill_release_lost_user_namespaces";
    case Hint::kReleasePod:
      return "if the other pod is gone, release it first: waybill_release_user_namespace";
    case Hint::kReplaceWitness:
      return "name another path; if the file was the witness of a lost store, remove it and call "
             "waybill_open with WAYBILL_GAP_YES and the runtime's images, since pulls may be "
             "unrecorded";
  }
  return "";
}

}  // namespace waybill::c

static_assert(static_cast<waybill_hint>(waybill::kLastHint) == WAYBILL_HINT_REPLACE_WITNESS);

waybill_string waybill_hint_text(waybill_hint hint) {
  if (hint < 0 || hint > static_cast<waybill_hint>(waybill::kLastHint)) hint = WAYBILL_HINT_NONE;
  return waybill::c::Borrow(waybill::c::HintInC(static_cast<waybill::Hint>(hint)));
}
