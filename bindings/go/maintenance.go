package waybill

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"unsafe"
)

// MigrationStep is one step between two schema versions.
type MigrationStep struct {
	From, To      uint32
	Name          string
	ValuesWritten uint64
}

// MigrationReport says what a migration did, or what a dry run would do.
type MigrationReport struct {
	From   uint32 // equal to To: there was nothing to do
	To     uint32
	Steps  []MigrationStep
	Backup string // made before the first step; empty in a dry run
	// What going down loses, one line each, with the images that must be verified again.
	Losses []string
}

// MigrateOptions are those of [Migrate].
type MigrateOptions struct {
	Directory  string
	To         uint32 // 0: the newest
	DryRun     bool   // say what would be done, and change nothing
	AcceptLoss bool   // go down even if that loses something
	MapBytes   uint64 // 0: as the store remembers it
	Clock      *ManualClock
	BootClock  *ManualBootClock
}

// Migrate takes a store that is not open to another schema version, one transaction a step, after a
// verified backup. [Open] does the same up to the newest version, unless NoMigration is set. After a
// crash the same call continues. The end of ctx stops it before the next step is committed:
// ErrInterrupted, with the context's cause.
//
// ErrInvalidArgument: no such version. ErrConflict: going down would lose something, and AcceptLoss is
// false or does not help; the message says what. ErrDamaged: the store fails its check; Open recovers
// it. ErrDiskFull, ErrOwned, ErrNotFound, ErrNewerSchema, ErrUnsafePath, ErrIO, ErrStoreFull: the
// store is intact and has the version of the last completed step. ErrOutcomeUnknown: Open finds out.
func Migrate(ctx context.Context, o MigrateOptions) (MigrationReport, error) {
	stop, err := watch(ctx)
	if err != nil {
		return MigrationReport{}, err
	}
	defer stop.end()
	var a arena
	defer a.free()
	c := one[C.waybill_migrate_options](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.directory = a.string(o.Directory)
	c.to = C.uint32_t(o.To)
	c.dry_run = C.bool(o.DryRun)
	c.accept_loss = C.bool(o.AcceptLoss)
	c.map_bytes = C.uint64_t(o.MapBytes)
	var clock *cell
	c.clock, c.clock_context, clock = cClock(o.Clock)
	var boot *bootCell
	c.boot_clock, c.boot_clock_context, boot = cBootClock(o.BootClock)
	c.progress, c.progress_context = stop.progress()
	var report *C.waybill_migration_report
	var e *C.waybill_error
	code := C.waybill_migrate(c, &report, &e)
	runtime.KeepAlive(clock)
	runtime.KeepAlive(boot)
	return take(report, goMigrationReport), stop.because(takeError(code, e))
}

func goMigrationReport(r *C.waybill_migration_report) MigrationReport {
	return MigrationReport{
		From: uint32(r.from),
		To:   uint32(r.to),
		Steps: goList(r.steps, r.step_count, func(s *C.waybill_migration_step) MigrationStep {
			return MigrationStep{
				From:          uint32(s.from),
				To:            uint32(s.to),
				Name:          goString(s.name),
				ValuesWritten: uint64(s.values_written),
			}
		}),
		Backup: goString(r.backup),
		Losses: goStrings(r.losses),
	}
}

// Backup is a compact copy of a store: backup/<version>-<commit sequence>-<time>.mdb in its directory.
// The last three are kept; of several backups of one state, the last.
type Backup struct {
	Path           string
	SchemaVersion  uint32
	CommitSequence uint64
	Bytes          uint64
}

// ListBackups returns the backups in a store's directory, newest first. It reads their names, not
// their content. ErrUnsafePath, ErrIO, ErrNotFound: there is no such directory.
func ListBackups(directory string) ([]Backup, error) {
	var backups *C.waybill_backups
	var e *C.waybill_error
	code := C.waybill_list_backups(borrow(directory), &backups, &e)
	return take(backups, func(b *C.waybill_backups) []Backup {
		return goList(b.items, b.count, goBackup)
	}), takeError(code, e)
}

// RestoreOptions are those of [Restore].
type RestoreOptions struct {
	Directory string
	Backup    string // the file
	DryRun    bool   // say what would be done, and change nothing
	MapBytes  uint64 // 0: as the store remembers it
	Clock     *ManualClock
	BootClock *ManualBootClock
}

// RestoreReport says what a backup brought back.
type RestoreReport struct {
	SchemaVersion        uint32
	BackupCommitSequence uint64
	Records              uint64
	// Of those: their credentials may have been revoked since the backup. To be verified again.
	RecordsWithoutCredentials uint64
	IDMappings                uint64 // of pods in user namespaces
	IDMappingsKept            uint64 // the pod keeps the backup's mapping
	IDMappingsHeld            uint64 // the pod is held: another pod has or may have some of the range
	IDMappingsDropped         uint64 // released since the backup, or replaced by another mapping
	// Other ranges may have been lost, so no new ones are handed out (HeldPod without a UID).
	IDRangesLost   bool
	ReplacedPath   string   // where the replaced store is kept; empty: there was none, or a dry run
	RemovedPaths   []string // replaced or set aside earlier, now deleted
	DistrustReason string
	// It is a store of streaming requests: all its tokens are void, and opening it ends the distrust.
	Streaming bool
}

// Restore replaces a store that is not open with a backup, and keeps the replaced one under
// quarantine/. The restored store is distrustful: images that were pulled after the backup have no
// record in it. ErrDamaged: the backup fails its check. ErrConflict: it is of another store.
// ErrNewerSchema, ErrOwned, ErrNotFound, ErrUnsafePath, ErrDiskFull, ErrIO. After an error the store
// is as before. ctx is checked before it begins.
func Restore(ctx context.Context, o RestoreOptions) (RestoreReport, error) {
	if err := alive(ctx); err != nil {
		return RestoreReport{}, err
	}
	var a arena
	defer a.free()
	c := one[C.waybill_restore_options](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.directory = a.string(o.Directory)
	c.backup = a.string(o.Backup)
	c.dry_run = C.bool(o.DryRun)
	c.map_bytes = C.uint64_t(o.MapBytes)
	var clock *cell
	c.clock, c.clock_context, clock = cClock(o.Clock)
	var boot *bootCell
	c.boot_clock, c.boot_clock_context, boot = cBootClock(o.BootClock)
	var report *C.waybill_restore_report
	var e *C.waybill_error
	code := C.waybill_restore(c, &report, &e)
	runtime.KeepAlive(clock)
	runtime.KeepAlive(boot)
	return take(report, func(r *C.waybill_restore_report) RestoreReport {
		return RestoreReport{
			SchemaVersion:             uint32(r.schema_version),
			BackupCommitSequence:      uint64(r.backup_commit_sequence),
			Records:                   uint64(r.records),
			RecordsWithoutCredentials: uint64(r.records_without_credentials),
			IDMappings:                uint64(r.id_mappings),
			IDMappingsKept:            uint64(r.id_mappings_kept),
			IDMappingsHeld:            uint64(r.id_mappings_held),
			IDMappingsDropped:         uint64(r.id_mappings_dropped),
			IDRangesLost:              bool(r.id_ranges_lost),
			ReplacedPath:              goString(r.replaced_path),
			RemovedPaths:              goStrings(r.removed_paths),
			DistrustReason:            goString(r.distrust_reason),
			Streaming:                 bool(r.streaming),
		}
	}), takeError(code, e)
}

// ExportOptions are those of [Store.Export].
type ExportOptions struct {
	// The directory with, or for, image_manager/ in it. The kubelet must not be running.
	KubeletDirectory string
	APIVersion       KubeletAPIVersion
	// The runtime's complete list. RulesClosed needs it, and so does a distrustful store: since the
	// kubelet presumes an image without a record preloaded, each that has neither record nor ledger entry
	// gets a record without credentials. nil: unknown.
	ImagesOnNode []ImageOnNode
	AllowEmpty   bool // accept an empty ImagesOnNode
}

// ExportReport says what was written for the kubelet.
type ExportReport struct {
	Records            uint64
	Intents            uint64
	Preloaded          uint64
	Closed             uint64   // in quarantine: written so that the kubelet can't read them either
	Made               uint64   // records without credentials, for images that nothing is known of
	Spellings          uint64   // records under further spellings of their images
	WithoutCredentials uint64   // for refs recorded under other handlers only, and files not imported
	IDMappings         uint64   // pods/<uid>/userns
	ReplacedPath       string   // where the earlier files are kept; empty: there were none
	RemovedPaths       []string // kept by earlier exports, now deleted
}

// Export writes the kubelet's own files, with its names and forms, to go back to a kubelet without
// waybill. Each folder is replaced in one step, and the old one is kept. ErrConflict: a pod is held,
// or ranges overlap; nothing is written. ErrInvalidArgument: ImagesOnNode is needed and missing, or
// empty without AllowEmpty. ErrDamaged: a record is unreadable. ErrOwned:
// another export into that directory is running. ErrNotFound, ErrUnsafePath, ErrDiskFull, ErrIO: the
// directory. After an error each folder is complete, old or new; call it again. ctx is checked before
// it begins.
func (s *Store) Export(ctx context.Context, o ExportOptions) (ExportReport, error) {
	if err := alive(ctx); err != nil {
		return ExportReport{}, err
	}
	var a arena
	defer a.free()
	c := one[C.waybill_export_options](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.kubelet_directory = a.string(o.KubeletDirectory)
	c.api_version = C.int32_t(o.APIVersion)
	c.images_on_node = cImagesOnNode(&a, o.ImagesOnNode)
	c.allow_empty = C.bool(o.AllowEmpty)
	var report *C.waybill_export_report
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_export(h, c, &report, e) })
	return take(report, func(r *C.waybill_export_report) ExportReport {
		return ExportReport{
			Records:            uint64(r.records),
			Intents:            uint64(r.intents),
			Preloaded:          uint64(r.preloaded),
			Closed:             uint64(r.closed),
			Made:               uint64(r.made),
			Spellings:          uint64(r.spellings),
			WithoutCredentials: uint64(r.without_credentials),
			IDMappings:         uint64(r.id_mappings),
			ReplacedPath:       goString(r.replaced_path),
			RemovedPaths:       goStrings(r.removed_paths),
		}
	}), err
}
