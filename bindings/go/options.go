package waybill

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"unsafe"
)

// Witness is a small file outside the store that reveals when the whole store was wiped, swapped or
// replaced by an older copy. The choice must be explicit, even for no witness: the zero Witness is
// ErrInvalidArgument.
type Witness struct {
	kind C.int32_t
	path string
}

// WitnessAt is a file at an absolute path outside the store's directory, by convention
// image_manager/waybill in the kubelet directory, which the kubelet ignores. An existing file that
// is not a witness is left alone (ErrInvalidArgument). If the store remembers another path, the
// witness there is read as well: if it is missing, the store may be stale.
func WitnessAt(path string) Witness { return Witness{C.WAYBILL_WITNESS_AT, path} }

// WitnessAnew is WitnessAt, but an operator confirms that the store is the newest although the
// witness that it remembers under another path is missing: that one is not read.
func WitnessAnew(path string) Witness { return Witness{C.WAYBILL_WITNESS_ANEW, path} }

// WitnessRemembered is the witness that the store was last opened with, if any: for tools that open
// an existing store.
func WitnessRemembered() Witness { return Witness{kind: C.WAYBILL_WITNESS_REMEMBERED} }

// WitnessNone is no witness: such a loss then goes unnoticed. The store forgets the witness that it
// remembers.
func WitnessNone() Witness { return Witness{kind: C.WAYBILL_WITNESS_NONE} }

// Trace is a file that the owner writes what it does to, for whoever plans capacity: `waybill advise`
// reads it. No call fails for it: what can't be written is dropped, and [Store.Metrics] counts it.
type Trace struct {
	// A file of the caller's, outside the store's directory; beside it come Path.1, … and Path.salt.
	Path         string
	MaxFileBytes uint64 // 262,144 or more; 0: 16 MiB
	Files        uint32 // 1 to 100; 0: 4
}

func (t *Trace) c(a *arena) *C.waybill_trace_options {
	if t == nil {
		return nil
	}
	c := one[C.waybill_trace_options](a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.path = a.string(t.Path)
	c.max_file_bytes = C.uint64_t(t.MaxFileBytes)
	c.files = C.uint32_t(t.Files)
	return c
}

// Options are those of [Open]. The zero value of each but Directory and Witness is its default.
type Options struct {
	// The store's own directory. If it is missing, Open makes it (0700) unless MustExist; its parent
	// must exist. An existing one must be a directory, not a symlink, owned by the caller, and neither
	// group- nor world-writable. A store is made only in a directory that holds nothing except remains
	// of a store; otherwise [ErrUnsafePath].
	Directory string
	MustExist bool
	Witness   Witness
	Rules     Rules
	Policy    *VerificationPolicy // nil: NeverVerifyPreloadedImages
	// The runtime's complete list of images. nil: unknown. RulesKubelet replays dangling intents against
	// it. RulesClosed judges its images ([Store.ObserveImages]). Since it has no token, it removes
	// nothing, settles nothing and enters nothing in the ledger, except at a first start.
	ImagesOnNode []ImageOnNode
	// An operator's or installer's list of preloaded images; an entry without an ID names its image.
	// At a first start, the images of the first complete list that it names enter the ledger before
	// anything is judged. nil: none.
	Preloaded []ImageOnNode
	// What becomes of the other images without a record on that list.
	FirstStart FirstStart
	Evidence   Evidence
	// This process continues the pulls of the one before it. Otherwise pulls that were left running
	// count as ended with an unknown outcome.
	ContinuesPulls bool
	// Opening reads the witness, but neither makes nor writes it: for trying an opening on a copy of a
	// store.
	LeavesWitness bool
	// Accepts ImagesOnNode and RuntimeHandlers that are empty, but not nil. A runtime that starts up
	// lists nothing, so they are otherwise ErrInvalidArgument if the store holds records or intents or
	// must close a gap, or if it holds runtime handlers.
	AllowEmpty bool
	// A kubelet directory (the one with image_manager/ in it) to take over. Empty: none.
	KubeletDirectory string
	// After a gap each image in ImagesOnNode without a record gets one without credentials; without
	// that list the store turns distrustful.
	Gap Gap
	// The node's runtime handlers, which replace those in the store. nil: unchanged.
	RuntimeHandlers []RuntimeHandler
	// nil: on, with the default pool.
	UserNamespaces *UserNamespaceOptions
	// The directory with the pods' directories, to take over ID mappings from. Empty: pods/ of
	// KubeletDirectory.
	PodsDirectory string
	// Opening a store of an older schema fails with ErrOlderSchema; otherwise the store is migrated
	// after a backup.
	NoMigration bool
	// A read error of the disk is ErrIO, and nothing is changed: trying again may help. If the error
	// persists, this option opens the store anyway. Unreadable parts count as damaged, so the store is
	// rebuilt from the rest and turns distrustful. An unreadable file of the kubelet closes its image,
	// and a pod with an unreadable userns file is held.
	SkipUnreadable bool
	// Each commit flushes the disk twice, as LMDB does by itself. Otherwise once, where that is safe:
	// on ext2 to ext4, xfs and tmpfs, without DAX, if the boot is known.
	FlushesTwice bool
	// How long proofs count and revocations are kept. The store remembers both. nil: as remembered.
	// Out of range: ErrInvalidArgument.
	Ages *AgeLimits
	// Bytes of the memory map, and so the bound of the store's size: 1 MiB to 16 TiB. The store
	// remembers it. 0: as remembered, 16 GiB for a new store.
	MapBytes  uint64
	Trace     *Trace           // nil: none
	Clock     *ManualClock     // nil: the system's
	BootClock *ManualBootClock // nil: the system's
}

// Open opens the store as its only owner. It takes the lock, walks the pages, checks header and
// witness, migrates, imports, and judges the images on the node (RulesClosed) or replays the intents
// that an earlier process left (RulesKubelet); [Store.RecoveryReport] says what it did. A damaged
// database is not an error: it is set aside, and the report says so. The end of ctx stops an import or
// a migration, with ErrInterrupted and the context's cause.
//
// ErrOwned (by another process, or open in this one already), ErrUnsafePath, ErrNewerSchema,
// ErrOlderSchema, ErrInvalidArgument, ErrNotFound (MustExist; no PodsDirectory) leave the store
// unchanged. After ErrDiskFull, ErrIO, ErrStoreFull, ErrConflict, ErrOutcomeUnknown, ErrInterrupted
// and ErrInvalidArgument for an empty list (Options.AllowEmpty), what was recovered and imported so
// far is kept; open again.
func Open(ctx context.Context, o Options) (*Store, error) {
	stop, err := watch(ctx)
	if err != nil {
		return nil, err
	}
	defer stop.end()
	var a arena
	defer a.free()
	c := one[C.waybill_open_options](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.directory = a.string(o.Directory)
	c.must_exist = C.bool(o.MustExist)
	c.no_migration = C.bool(o.NoMigration)
	c.allow_empty = C.bool(o.AllowEmpty)
	c.skip_unreadable = C.bool(o.SkipUnreadable)
	c.flushes_twice = C.bool(o.FlushesTwice)
	c.witness_kind = o.Witness.kind
	c.witness_path = a.string(o.Witness.path)
	c.rules = C.int32_t(o.Rules)
	c.gap = C.int32_t(o.Gap)
	c.first_start = C.int32_t(o.FirstStart)
	var policy *madePolicy
	c.policy, policy = o.Policy.c()
	c.images_on_node = listOrNil(&a, o.ImagesOnNode, cImagesOnNode)
	c.preloaded = listOrNil(&a, o.Preloaded, cImagesOnNode)
	c.evidence = cEvidence(&a, &o.Evidence)
	c.continues_pulls = C.bool(o.ContinuesPulls)
	c.leaves_witness = C.bool(o.LeavesWitness)
	c.ages = cAges(&a, o.Ages)
	c.kubelet_directory = a.string(o.KubeletDirectory)
	c.pods_directory = a.string(o.PodsDirectory)
	c.runtime_handlers = listOrNil(&a, o.RuntimeHandlers, cRuntimeHandlers)
	c.user_namespaces = cUserNamespaceOptions(&a, o.UserNamespaces)
	c.map_bytes = C.uint64_t(o.MapBytes)
	c.trace = o.Trace.c(&a)
	var clock *cell
	c.clock, c.clock_context, clock = cClock(o.Clock)
	var boot *bootCell
	c.boot_clock, c.boot_clock_context, boot = cBootClock(o.BootClock)
	c.import_progress, c.import_context = stop.progress()
	c.migration_progress, c.migration_context = stop.progress()

	var h handle
	var e *C.waybill_error
	code := C.waybill_open(c, &h, &e)
	runtime.KeepAlive(policy)
	runtime.KeepAlive(clock)
	runtime.KeepAlive(boot)
	if err := takeError(code, e); err != nil {
		return nil, stop.because(err)
	}
	return newStore(h, o.Rules, o.KubeletDirectory, clock, boot), nil
}

// ObserveOptions are those of [Observe].
type ObserveOptions struct {
	Directory      string
	Rules          Rules
	Policy         *VerificationPolicy   // nil: NeverVerifyPreloadedImages
	UserNamespaces *UserNamespaceOptions // nil: on, with the default pool
	ShortNames     ShortNames            // for Explain
	Ages           *AgeLimits            // nil: those of the owner
	Clock          *ManualClock          // nil: the system's
	// A store that no process owns is read whatever its witness says, so it may be an older copy. This
	// is for showing its content: every decision is "pull".
	IgnoresWitness bool
}

// Observe opens the store to decide and to read, with or without a live owner. It changes nothing;
// methods that write return ErrNotOwner. It needs write permission for the table of readers
// (ErrUnsafePath otherwise). ErrNotFound: there is no store. ErrDamaged: the store fails its check, and
// no owner has recovered it. ErrOwned: this process has the store open already. ErrOlderSchema: no
// owner has migrated it. ErrNewerSchema, ErrIO as of [Open].
func Observe(o ObserveOptions) (*Store, error) {
	var a arena
	defer a.free()
	c := one[C.waybill_observe_options](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.directory = a.string(o.Directory)
	c.rules = C.int32_t(o.Rules)
	var policy *madePolicy
	c.policy, policy = o.Policy.c()
	c.user_namespaces = cUserNamespaceOptions(&a, o.UserNamespaces)
	c.short_names = C.int32_t(o.ShortNames)
	c.ages = cAges(&a, o.Ages)
	c.ignores_witness = C.bool(o.IgnoresWitness)
	var clock *cell
	c.clock, c.clock_context, clock = cClock(o.Clock)

	var h handle
	var e *C.waybill_error
	code := C.waybill_observe(c, &h, &e)
	runtime.KeepAlive(policy)
	runtime.KeepAlive(clock)
	if err := takeError(code, e); err != nil {
		return nil, err
	}
	return newStore(h, o.Rules, "", clock, nil), nil
}
