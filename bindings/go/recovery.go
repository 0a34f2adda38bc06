package waybill

// #include "shim.h"
import "C"

// RecoveryReport says what opening found, did and left. An observer's is empty.
type RecoveryReport struct {
	Created                   bool     // there was no store
	SetAside                  bool     // the database failed its check; see SetAsidePath
	SetAsidePath              string   // where the failed database is kept
	RemovedPaths              []string // set aside earlier, now deleted
	RecordsCarried            uint64   // into the store that took its place
	RecordsWithoutCredentials uint64   // known, but must be verified again
	IntentsCarried            uint64
	WitnessMade               bool     // the witness was missing, and a new one was made
	WitnessInStore            bool     // it lies in the store's directory and would be lost with it
	CommitUndone              bool     // a crash had cut the last commit short, of which nobody was told
	Findings                  []string // what was wrong, one line each
	Mended                    []string // modes that were too loose and are now strict
	Warnings                  []string // what changes no answer, but should be known

	Distrustful    bool
	DistrustReason string

	Migration      *MigrationReport // nil: the store was of the newest schema
	Runtimes       *RuntimesReport  // nil: no list of handlers was given
	Import         ImportReport
	UserNamespaces UserNamespaceReport

	AfterGap  bool     // see Options.Gap
	GapReason string   // why there is a gap
	GapClosed uint64   // images that had neither record nor ledger entry
	GapImages []string // their names or refs, the first 1000

	Observed   *ObserveReport // RulesClosed: what judging ImagesOnNode did; nil: there was no list
	FirstStart bool           // the list was judged as that of a first start

	IntentsFound    uint64   // left by an earlier process; RulesClosed: open pulls
	IntentsReplayed uint64   // closed an image on the node by a record
	IntentsLeft     uint64   // still stored when opening ended
	Replayed        []string // their image strings, the first 100
	ReplaySkipped   bool     // no list of images was given, so nothing could be replayed

	ReadersCleared    uint64 // slots of readers that died
	Records           uint64 // after opening
	QuarantineEntries uint64
	CommitSequence    uint64

	// RulesClosed: the store had a time more than a day ahead of the clock, and went on from the
	// clock's. Empty: it had none.
	ClockWasAhead string
	TimesMended   uint64 // records that had a later time, and now have that of this opening
}

// ImportReport says what taking over a kubelet directory did.
type ImportReport struct {
	FilesSeen   uint64
	Unchanged   uint64 // imported earlier, and counted nowhere else
	Records     uint64 // taken from pulled/
	Intents     uint64 // taken from pulling/
	Preloaded   uint64 // taken from observed-preloaded/
	KnownRefs   uint64 // changed files of refs that the store knew: nothing was added
	Quarantined uint64 // quarantine entries made
	Skipped     uint64 // names that are not the kubelet's, and unfinished .tmp files
	Interrupted bool
	// The first file that a kubelet wrote since the last import; may be empty.
	NewlyWritten string
	Problems     []string // one line for each unreadable file; the first 100
}

// UserNamespaceReport says what opening found and did about ranges of host IDs.
type UserNamespaceReport struct {
	FilesSeen      uint64
	Unchanged      uint64 // files with mappings that the store has
	Imported       uint64 // mappings taken over
	Held           uint64 // pods held by this import, or still held for the same reason
	RepairedBlocks uint64
	Problems       []string // one line for each pod; the first 100
	Allocations    uint64   // after opening
	HeldPods       uint64
	OutsidePool    uint64
	OtherLength    uint64
	OffPool        []string // the UIDs of both, the first 100
	RefusedBecause string   // as in UserNamespaceStatistics
}

// RecoveryReport says what opening found, did and left, of a closed store, too.
func (s *Store) RecoveryReport() RecoveryReport {
	var report *C.waybill_recovery_report
	// It can fail only for lack of memory.
	_ = s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_get_recovery_report(h, &report, e)
	})
	return take(report, goRecoveryReport)
}

func goRecoveryReport(r *C.waybill_recovery_report) RecoveryReport {
	report := RecoveryReport{
		Created:                   bool(r.created),
		SetAside:                  bool(r.set_aside),
		SetAsidePath:              goString(r.set_aside_path),
		RemovedPaths:              goStrings(r.removed_paths),
		RecordsCarried:            uint64(r.records_carried),
		RecordsWithoutCredentials: uint64(r.records_without_credentials),
		IntentsCarried:            uint64(r.intents_carried),
		WitnessMade:               bool(r.witness_made),
		WitnessInStore:            bool(r.witness_in_store),
		Findings:                  goStrings(r.findings),
		Mended:                    goStrings(r.mended),
		Warnings:                  goStrings(r.warnings),
		Distrustful:               bool(r.distrustful),
		DistrustReason:            goString(r.distrust_reason),
		AfterGap:                  bool(r.after_gap),
		GapReason:                 goString(r.gap_reason),
		GapClosed:                 uint64(r.gap_closed),
		GapImages:                 goStrings(r.gap_images),
		IntentsFound:              uint64(r.intents_found),
		IntentsReplayed:           uint64(r.intents_replayed),
		IntentsLeft:               uint64(r.intents_left),
		Replayed:                  goStrings(r.replayed),
		ReplaySkipped:             bool(r.replay_skipped),
		ReadersCleared:            uint64(r.readers_cleared),
		Records:                   uint64(r.records),
		QuarantineEntries:         uint64(r.quarantine_entries),
		CommitSequence:            uint64(r.commit_sequence),
		ClockWasAhead:             goString(r.clock_was_ahead),
		TimesMended:               uint64(r.times_mended),
		FirstStart:                bool(r.first_start),
		CommitUndone:              bool(r.commit_undone),
	}
	if r.observed != nil {
		report.Observed = new(goObserveReport(r.observed))
	}
	if r.migration != nil {
		report.Migration = new(goMigrationReport(r.migration))
	}
	if r.runtimes != nil {
		report.Runtimes = new(goRuntimesReport(r.runtimes))
	}
	if i := r._import; i != nil {
		report.Import = ImportReport{
			FilesSeen:    uint64(i.files_seen),
			Unchanged:    uint64(i.unchanged),
			Records:      uint64(i.records),
			Intents:      uint64(i.intents),
			Preloaded:    uint64(i.preloaded),
			KnownRefs:    uint64(i.known_refs),
			Quarantined:  uint64(i.quarantined),
			Skipped:      uint64(i.skipped),
			Interrupted:  bool(i.interrupted),
			NewlyWritten: goString(i.newly_written),
			Problems:     goStrings(i.problems),
		}
	}
	if u := r.user_namespaces; u != nil {
		report.UserNamespaces = UserNamespaceReport{
			FilesSeen:      uint64(u.files_seen),
			Unchanged:      uint64(u.unchanged),
			Imported:       uint64(u.imported),
			Held:           uint64(u.held),
			RepairedBlocks: uint64(u.repaired_blocks),
			Problems:       goStrings(u.problems),
			Allocations:    uint64(u.allocations),
			HeldPods:       uint64(u.held_pods),
			OutsidePool:    uint64(u.outside_pool),
			OtherLength:    uint64(u.other_length),
			OffPool:        goStrings(u.off_pool),
			RefusedBecause: goString(u.refused_because),
		}
	}
	return report
}
