package waybill

// #include "shim.h"
import "C"

// String returns what to do, in calls of this package; empty for HintNone and unknown hints.
func (h Hint) String() string {
	switch h {
	case HintRecover:
		return "open the store with Open, which recovers it"
	case HintVerify:
		return "call Store.Verify; if it finds damage, Open recovers the store"
	case HintPullAgain:
		return "pull the image again, or open the store with Open, which recovers it"
	case HintCreate:
		return "make one: Open without MustExist"
	case HintMigrate:
		return "migrate it with Migrate, or Open without NoMigration; both make a backup first"
	case HintAcceptLoss:
		return "set MigrateOptions.AcceptLoss if the loss is acceptable; a backup is made first"
	case HintRestore:
		return "put that backup back with Restore"
	case HintListBackups:
		return "choose another backup: ListBackups lists them"
	case HintAllowUntestedLMDB:
		return "use a tested version, or go on at your own risk with AllowUntestedLMDB"
	case HintPruneOrEnlarge:
		return "prune records with Store.Prune, or open the store with a larger MapBytes"
	case HintSkipUnreadable:
		return "try again; if it fails again, look for disk errors in the kernel's log; " +
			"Options.SkipUnreadable goes on without what can't be read"
	case HintAllowEmpty:
		return "list again, since a runtime that starts up lists nothing; if the list is truly " +
			"empty, pass AllowEmpty"
	case HintBeginList:
		return "draw a token with Store.BeginList before you list the images"
	case HintBeginUsernsCleanup:
		return "draw a token with Store.BeginList before you list the pods"
	case HintLoadHandlers:
		return "load the handlers that the runtime serves: Store.ReplaceRuntimeHandlers"
	case HintFreeRanges:
		return "release the ranges of pods that are gone (Store.CleanUpUserNamespaces), or enlarge " +
			"the pool"
	case HintSettleHeldPods:
		return "Store.ListHeldPods lists the pods; call Store.AdoptUserNamespace for each that lives " +
			"and Store.ReleaseUserNamespace for each that is gone, or open the store with the " +
			"kubelet's PodsDirectory; once no other pod lives, Store.ReleaseLostUserNamespaces"
	case HintReleasePod:
		return "if the other pod is gone, release it first: Store.ReleaseUserNamespace"
	case HintReplaceWitness:
		return "name another path; if the file was the witness of a lost store, remove it and call " +
			"Open with GapYes and the runtime's images, since pulls may be unrecorded"
	default:
		return ""
	}
}
