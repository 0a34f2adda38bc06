package waybill

// #include "shim.h"
import "C"

// Hint says what to do next, if that is a call of this package. [Error] has its text.
type Hint int32

const (
	// HintNone: the error has no hint, or one that is only text.
	HintNone Hint = C.WAYBILL_HINT_NONE
	// HintRecover: the store is damaged or stale. An owner that opens it recovers it.
	HintRecover Hint = C.WAYBILL_HINT_RECOVER
	// HintVerify: part of the store can't be read. Verifying it says what is damaged; an owner
	// recovers it.
	HintVerify Hint = C.WAYBILL_HINT_VERIFY
	// HintPullAgain: one record can't be read. Pulling its image again replaces it; an owner recovers
	// the store.
	HintPullAgain Hint = C.WAYBILL_HINT_PULL_AGAIN
	// HintCreate: there is no store yet. An owner makes one.
	HintCreate Hint = C.WAYBILL_HINT_CREATE
	// HintMigrate: the store has an older schema. An owner takes it to the newest, after a backup.
	HintMigrate Hint = C.WAYBILL_HINT_MIGRATE
	// HintAcceptLoss: the migration would lose something. It goes on only if the caller accepts the
	// loss.
	HintAcceptLoss Hint = C.WAYBILL_HINT_ACCEPT_LOSS
	// HintRestore: the migration failed. Put back the backup that the message names.
	HintRestore Hint = C.WAYBILL_HINT_RESTORE
	// HintListBackups: the backup is damaged. Take another one.
	HintListBackups Hint = C.WAYBILL_HINT_LIST_BACKUPS
	// HintAllowUntestedLMDB: this version of LMDB was not tested. Use a tested one, or allow this one.
	HintAllowUntestedLMDB Hint = C.WAYBILL_HINT_ALLOW_UNTESTED_LMDB
	// HintPruneOrEnlarge: the map is full. Prune records, or open with a larger map.
	HintPruneOrEnlarge Hint = C.WAYBILL_HINT_PRUNE_OR_ENLARGE
	// HintSkipUnreadable: the disk refuses to read a part. Skipping what it refuses treats that as
	// damaged.
	HintSkipUnreadable Hint = C.WAYBILL_HINT_SKIP_UNREADABLE
	// HintAllowEmpty: the list was empty, but the store is not. List again; confirm an empty list if
	// it is right.
	HintAllowEmpty Hint = C.WAYBILL_HINT_ALLOW_EMPTY
	// HintBeginList: the token is not of this store. Draw one before listing the images.
	HintBeginList Hint = C.WAYBILL_HINT_BEGIN_LIST
	// HintBeginUsernsCleanup: the token is not of this store. Draw one before listing the pods.
	HintBeginUsernsCleanup Hint = C.WAYBILL_HINT_BEGIN_USERNS_CLEANUP
	// HintLoadHandlers: the registry of runtime handlers does not allow it. Load what the runtime
	// serves.
	HintLoadHandlers Hint = C.WAYBILL_HINT_LOAD_HANDLERS
	// HintFreeRanges: all ID ranges are taken. Release those of pods that are gone, or enlarge the
	// pool.
	HintFreeRanges Hint = C.WAYBILL_HINT_FREE_RANGES
	// HintSettleHeldPods: held pods have unverified ID ranges. Adopt the ranges of pods that live,
	// release the others.
	HintSettleHeldPods Hint = C.WAYBILL_HINT_SETTLE_HELD_PODS
	// HintReleasePod: another pod has the ID range. Release it once that pod is gone.
	HintReleasePod Hint = C.WAYBILL_HINT_RELEASE_POD
	// HintReplaceWitness: another file is in the witness's place. Name another path; if a store was
	// lost, close the gap.
	HintReplaceWitness Hint = C.WAYBILL_HINT_REPLACE_WITNESS
)

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
