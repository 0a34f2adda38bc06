#include "waybill/result.h"

namespace waybill {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalidArgument";
    case ErrorCode::kLimitExceeded:
      return "limitExceeded";
    case ErrorCode::kNotFound:
      return "notFound";
    case ErrorCode::kDamaged:
      return "damaged";
    case ErrorCode::kOwned:
      return "owned";
    case ErrorCode::kNewerSchema:
      return "newerSchema";
    case ErrorCode::kOlderSchema:
      return "olderSchema";
    case ErrorCode::kUnsafePath:
      return "unsafePath";
    case ErrorCode::kStoreFull:
      return "storeFull";
    case ErrorCode::kDiskFull:
      return "diskFull";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kNotOwner:
      return "notOwner";
    case ErrorCode::kInterrupted:
      return "interrupted";
    case ErrorCode::kOutcomeUnknown:
      return "outcomeUnknown";
    case ErrorCode::kCredentialsUnavailable:
      return "credentialsUnavailable";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kClosed:
      return "closed";
    case ErrorCode::kOutOfMemory:
      return "outOfMemory";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

std::string_view HintText(Hint hint) {
  switch (hint) {
    case Hint::kNone:
      return {};
    case Hint::kRecover:
      return "open the store as an owner (NodeStore::Open), which recovers it";
    case Hint::kVerify:
      return "call Verify; if it finds damage, open the store as an owner (NodeStore::Open), which "
             "recovers it";
    case Hint::kPullAgain:
      return "pull the image again, or open the store as an owner (NodeStore::Open), which "
             "recovers it";
    case Hint::kCreate:
      return "make one: NodeStore::Open with create_if_missing";
    case Hint::kMigrate:
      return "migrate it with Migrate, or NodeStore::Open with migrate; both make a backup first";
    case Hint::kAcceptLoss:
      return "set MigrateOptions::accept_loss if the loss is acceptable; a backup is made first";
    case Hint::kRestore:
      return "put that backup back with Restore";
    case Hint::kListBackups:
      return "choose another backup: ListBackups lists them";
    case Hint::kAllowUntestedLmdb:
      return "use a tested version, or go on at your own risk with AllowUntestedLmdb";
    case Hint::kPruneOrEnlarge:
      return "prune records, or open the store with a larger map_bytes";
    case Hint::kSkipUnreadable:
      return "try again; if it fails again, look for disk errors in the kernel's log; "
             "OpenOptions::skip_unreadable goes on without what can't be read";
    case Hint::kAllowEmpty:
      return "list again, since a runtime that starts up lists nothing; if the list is truly "
             "empty, set allow_empty";
    case Hint::kBeginList:
      return "draw a token with BeginList before you list the images";
    case Hint::kBeginUsernsCleanup:
      return "draw a token with BeginList before you list the pods";
    case Hint::kLoadHandlers:
      return "load the handlers that the runtime serves: ReplaceRuntimeHandlers";
    case Hint::kFreeRanges:
      return "release the ranges of pods that are gone (CleanUpUserNamespaces), or enlarge "
             "the pool";
    case Hint::kSettleHeldPods:
      return "ListHeldPods lists the pods; call AdoptUserNamespace for each that lives and "
             "ReleaseUserNamespace for each that is gone, or open the store with the kubelet's "
             "pods directory; once no other pod lives, ReleaseLostUserNamespaces";
    case Hint::kReleasePod:
      return "if the other pod is gone, release it first: ReleaseUserNamespace";
    case Hint::kReplaceWitness:
      return "name another path; if the file was the witness of a lost store, remove it and open "
             "with Gap::kYes and the runtime's images, since pulls may be unrecorded";
  }
  return {};
}

std::string Error::ToString() const {
  const std::string_view words =
      hint_code == Hint::kNone ? std::string_view(hint) : HintText(hint_code);
  return words.empty() ? message : message + "; " + std::string(words);
}

}  // namespace waybill
