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
    {Hint::kRecover, "open the store as its owner, which recovers it"},
    {Hint::kVerify,
     "call Verify; if it finds damage, open the store as its owner, which recovers it"},
    {Hint::kPullAgain, "pull the image again, or open the store as its owner, which recovers it"},
    {Hint::kCreate, "make one: open it as its owner, with create"},
    {Hint::kMigrate,
     "migrate it: call Migrate, or open it as its owner with migrate; both make a backup first"},
    {Hint::kAcceptLoss, "set acceptLoss if the loss is acceptable; a backup is made first"},
    {Hint::kRestore, "put that backup back with Restore"},
    {Hint::kListBackups, "choose another backup: ListBackups lists them"},
    {Hint::kAllowUntestedLmdb,
     "use a tested version, or go on at your own risk with allowUntestedLmdb"},
    {Hint::kPruneOrEnlarge, "prune records, or open the store with a larger mapBytes"},
    {Hint::kSkipUnreadable,
     "try again; if it fails again, look for disk errors in the kernel's log; "
     "skipUnreadable goes on without what can't be read"},
    {Hint::kAllowEmpty,
     "list again, since a runtime that starts up lists nothing; if the list is truly "
     "empty, set allowEmpty"},
    {Hint::kBeginList, "draw a token with BeginList before you list the images"},
    {Hint::kBeginUsernsCleanup, "draw a token with BeginList before you list the pods"},
    {Hint::kLoadHandlers, "load the handlers that the runtime serves: SetRuntimes"},
    {Hint::kFreeRanges,
     "release the ranges of pods that are gone (CleanUpUserNamespaces), or enlarge "
     "the pool"},
    {Hint::kSettleHeldPods,
     "ListUserNamespaces lists the pods; call AssignUserNamespace for each that lives and "
     "ReleaseUserNamespace for each that is gone, or open the store with the kubelet's "
     "pods directory; once no other pod lives, release the lost ranges (lost)"},
    {Hint::kReleasePod, "if the other pod is gone, release it first: ReleaseUserNamespace"},
    {Hint::kReplaceWitness,
     "name another path; if the file was the loss marker of a lost store, remove it and open "
     "with unrecorded and the runtime's images"},
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
