package waybill

// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"unsafe"
)

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

// RestoreOptions are those of [Restore].
type RestoreOptions struct {
	Directory string
	Backup    string // the file
	DryRun    bool   // say what would be done, and change nothing
	MapBytes  uint64 // 0: as the store remembers it
	Clock     *ManualClock
	BootClock *ManualBootClock
}

// Restore replaces a store that is not open with a backup, and keeps the replaced one under
// quarantine/. The restored store is distrustful: images that were pulled after the backup have no
// record in it. ErrDamaged: the backup fails its check. ErrConflict: it belongs to another store,
// or one of the two is a streaming store. ErrNewerSchema, ErrOwned, ErrNotFound, ErrUnsafePath,
// ErrDiskFull, ErrIO. After an error the store is as before. ctx is checked before it begins.
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

// WriteBackup writes a compact copy of the store into a new file outside it, for [Restore]; also of
// an observed store, whether or not its owner serves. No other backup is removed.
// ErrInvalidArgument: the file exists already (it is left as it is), is not in an existing
// directory, or lies in the store. The end of ctx stops it: ErrInterrupted, with the context's
// cause. Further errors as of [Store.MakeBackup]. After an error the file was not made, except if
// the final sync of its directory failed: the error says so.
func (s *Store) WriteBackup(ctx context.Context, file string) (Backup, error) {
	stop, err := watch(ctx)
	if err != nil {
		return Backup{}, err
	}
	defer stop.end()
	progress, context := stop.progress()
	var backup *C.waybill_backup
	err = s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_write_backup(h, borrow(file), progress, context, &backup, e)
	})
	return take(backup, goBackup), stop.because(err)
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
	c.images_on_node = listOrNil(&a, o.ImagesOnNode, cImagesOnNode)
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
