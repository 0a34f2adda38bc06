#include "waybill/result.h"

#include <algorithm>
#include <iterator>

#include "store/base/names.h"

namespace waybill {

namespace {

struct HintWords {
  Hint hint;
  std::string_view words;
};
constexpr HintWords kHints[] = {
    {Hint::kRecover, "open the store as an owner (NodeStore::Open), which recovers it"},
    {Hint::kVerify,
     "call Verify; if it finds damage, open the store as an owner (NodeStore::Open), which "
     "recovers it"},
    {Hint::kPullAgain,
     "pull the image again, or open the store as an owner (NodeStore::Open), which "
     "recovers it"},
    {Hint::kCreate, "make one: NodeStore::Open with create_if_missing"},
    {Hint::kMigrate,
     "migrate it with Migrate, or NodeStore::Open with migrate; both make a backup first"},
    {Hint::kAcceptLoss,
     "set MigrateOptions::accept_loss if the loss is acceptable; a backup is made first"},
    {Hint::kRestore, "put that backup back with Restore"},
    {Hint::kListBackups, "choose another backup: ListBackups lists them"},
    {Hint::kAllowUntestedLmdb,
     "use a tested version, or go on at your own risk with AllowUntestedLmdb"},
    {Hint::kPruneOrEnlarge, "prune records, or open the store with a larger map_bytes"},
    {Hint::kSkipUnreadable,
     "try again; if it fails again, look for disk errors in the kernel's log; "
     "NodeStoreOptions::skip_unreadable goes on without what can't be read"},
    {Hint::kAllowEmpty,
     "list again, since a runtime that starts up lists nothing; if the list is truly "
     "empty, set allow_empty"},
    {Hint::kBeginList, "draw a token with BeginList before you list the images"},
    {Hint::kBeginUsernsCleanup, "draw a token with BeginList before you list the pods"},
    {Hint::kLoadHandlers, "load the handlers that the runtime serves: ReplaceRuntimeHandlers"},
    {Hint::kFreeRanges,
     "release the ranges of pods that are gone (CleanUpUserNamespaces), or enlarge "
     "the pool"},
    {Hint::kSettleHeldPods,
     "ListHeldPods lists the pods; call AdoptUserNamespace for each that lives and "
     "ReleaseUserNamespace for each that is gone, or open the store with the kubelet's "
     "pods directory; once no other pod lives, ReleaseLostUserNamespaces"},
    {Hint::kReleasePod, "if the other pod is gone, release it first: ReleaseUserNamespace"},
    {Hint::kReplaceWitness,
     "name another path; if the file was the witness of a lost store, remove it and open "
     "with Gap::kYes and the runtime's images, since pulls may be unrecorded"},
};
static_assert(std::size(kHints) == static_cast<std::size_t>(kLastHint));

}  // namespace

std::string_view ErrorCodeName(ErrorCode code) {
  constexpr std::string_view kNames[] = {"unknown",
                                         "invalidArgument",
                                         "limitExceeded",
                                         "notFound",
                                         "damaged",
                                         "owned",
                                         "newerSchema",
                                         "olderSchema",
                                         "unsafePath",
                                         "storeFull",
                                         "diskFull",
                                         "io",
                                         "conflict",
                                         "notOwner",
                                         "interrupted",
                                         "outcomeUnknown",
                                         "credentialsUnavailable",
                                         "unavailable"};
  switch (code) {
    case ErrorCode::kClosed:
      return "closed";
    case ErrorCode::kOutOfMemory:
      return "outOfMemory";
    case ErrorCode::kInternal:
      return "internal";
    default:
      return internal::NameIn(kNames, code, "unknown");
  }
}

std::string_view HintText(Hint hint) {
  const auto* const at = std::find_if(std::begin(kHints), std::end(kHints),
                                      [&](const HintWords& one) { return one.hint == hint; });
  return at == std::end(kHints) ? std::string_view() : at->words;
}

std::string Error::ToString() const {
  const std::string_view words =
      hint_code == Hint::kNone ? std::string_view(hint) : HintText(hint_code);
  return words.empty() ? message : message + "; " + std::string(words);
}

}  // namespace waybill
