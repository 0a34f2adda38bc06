#include "waybill/result.h"

#include "store/base/names.h"

namespace waybill {

namespace {

constexpr auto kHints = internal::Names<Hint>({
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
});
static_assert(kHints.size() == static_cast<std::size_t>(kLastHint));

// The last ones begin at 64.
constexpr auto kCodes = internal::OwnNames<ErrorCode, internal::First::kSmall, 67>();
static_assert(kCodes.size() == 20);

}  // namespace

std::string_view ErrorCodeName(ErrorCode code) {
  return internal::WordOf(static_cast<std::uint8_t>(code), kCodes);
}

std::string_view HintText(Hint hint) {
  const auto* const words = internal::NameOf(static_cast<std::uint8_t>(hint), kHints);
  return words == nullptr ? std::string_view() : words->name;
}

std::string Error::ToString() const {
  const std::string_view words =
      hint_code == Hint::kNone ? std::string_view(hint) : HintText(hint_code);
  return words.empty() ? message : message + "; " + std::string(words);
}

}  // namespace waybill
