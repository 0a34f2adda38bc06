package waybill

// #include "shim.h"
import "C"

import (
	"context"
	"time"
	"unsafe"
)

// Statistics says what a store holds.
type Statistics struct {
	StoreUUID                string
	SchemaVersion            uint32
	CommitSequence           uint64
	Records                  uint64
	NondefaultHandlerRecords uint64 // of those: under another runtime handler than the default
	RuntimeHandlers          uint64
	Intents                  uint64
	QuarantineEntries        uint64
	PreloadedRecords         uint64
	ImportedFiles            uint64
	LedgerEntries            uint64
	Spellings                uint64 // under which images are known
	IDMappings               uint64 // of pods in user namespaces
	HeldPods                 uint64 // with unverified ID ranges
	Distrustful              bool
	MapBytes                 uint64
	UsedBytes                uint64 // of the map, free pages inside included
	Readers                  uint32 // slots in use, over all processes
	MaxReaders               uint32
	Revocations              uint64 // that are kept
}

// Statistics says what the store holds. ErrDamaged as of [Store.GetRecord].
func (s *Store) Statistics() (Statistics, error) {
	var statistics *C.waybill_statistics
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_get_statistics(h, &statistics, e) })
	return take(statistics, func(c *C.waybill_statistics) Statistics {
		return Statistics{
			StoreUUID:                goString(c.store_uuid),
			SchemaVersion:            uint32(c.schema_version),
			CommitSequence:           uint64(c.commit_sequence),
			Records:                  uint64(c.records),
			NondefaultHandlerRecords: uint64(c.nondefault_handler_records),
			RuntimeHandlers:          uint64(c.runtime_handlers),
			Intents:                  uint64(c.intents),
			QuarantineEntries:        uint64(c.quarantine_entries),
			PreloadedRecords:         uint64(c.preloaded_records),
			ImportedFiles:            uint64(c.imported_files),
			LedgerEntries:            uint64(c.ledger_entries),
			Spellings:                uint64(c.spellings),
			IDMappings:               uint64(c.id_mappings),
			HeldPods:                 uint64(c.held_pods),
			Distrustful:              bool(c.distrustful),
			MapBytes:                 uint64(c.map_bytes),
			UsedBytes:                uint64(c.used_bytes),
			Readers:                  uint32(c.readers),
			MaxReaders:               uint32(c.max_readers),
			Revocations:              uint64(c.revocations),
		}
	}), err
}

// Metrics is what a store counts and holds. The kubelet's names are those of KEP-2535.
type Metrics struct {
	// Counted since the store was opened.

	MustPullChecks [5]uint64 // by CheckResult
	// By PullPolicy, then present_locally and pull_required: 0 false, 1 true, 2 unknown.
	EnsureImageRequests [3][3][3]uint64

	OnDiskPullIntents   uint64
	OnDiskPulledRecords uint64
	// The store has no cache. These are the images in flight and the used pages of the map, in percent of
	// their bounds.
	InMemoryPullIntentsUsagePercent   float64
	InMemoryPulledRecordsUsagePercent float64
	// KEP-4216: images under another runtime handler than the default.
	NondefaultRuntimeHandlerImages uint64
	PreloadedImages                uint64 // in the ledger
	PresumedImages                 uint64 // of these, presumed to be since a first start
	OpenPulls                      uint64 // RulesClosed

	LiveOwner        bool // false: an observer's
	Readable         bool // false: the gauges could not all be read
	SchemaVersion    uint32
	CommitSequence   uint64
	RecordsByHandler []HandlerRecords // the default handler first, then by name
	// Images on record that are closed since nobody knows where they came from.
	ClosedImages uint64
	// When the oldest credential was proven by a pull; zero: there is none for which that is known.
	OldestCredential   time.Time
	UndatedCredentials uint64 // when they were proven is not known
	Revocations        uint64
	QuarantineEntries  uint64
	Distrustful        bool
	DistrustReasons    [16]uint64 // in force, by TrustKind; [0]: of unknown kinds
	OpenPullsByState   [4]uint64  // by PullState; [0]: pulls of anything
	IDMappings         uint64
	HeldPods           uint64
	UserNamespaces     bool   // false: they are off, and there are no ranges
	IDRangesFree       uint64 // of the pool, in ranges
	IDRangesUsed       uint64
	IDRangesRefused    bool // none is handed out: the range of a held pod is not known
	MapBytes           uint64
	UsedBytes          uint64
	Readers            uint32
	MaxReaders         uint32

	// Of the store's whole life. nil: this is an observer, and no owner left any.

	Counters    *StoreCounters
	LastOpening *OpeningSummary
}

// HandlerRecords counts the records of a runtime handler.
type HandlerRecords struct {
	RuntimeHandler string // "": the default handler
	Records        uint64
}

// StoreCounters is what the owners of a store count, over its whole life.
type StoreCounters struct {
	Decisions           [32]uint64 // by Reason, those that are counted
	MustPullChecks      [5]uint64  // by CheckResult
	EnsureImageRequests [3][3][3]uint64
	CommitFailures      uint64 // changes that were refused, or may not be on disk
	WriteBackFailures   uint64 // rotated credentials that could not be written back
	WriteBacksDropped   uint64 // likewise, since too many waited
	IDRangeFailures     uint64 // requests for a pod in a user namespace that got no mapping
	// KEP-2535's service level indicator, 0 to 1. -1: there was no request.
	ReverificationRatio float64
}

// OpeningSummary is what the last opening as the owner found. RecoveryReport has the words.
type OpeningSummary struct {
	At              time.Time
	Damage          uint64
	Warnings        uint64
	ModesMended     uint64
	ImportProblems  uint64
	IDRangeProblems uint64
	GapClosed       uint64
	Created         bool
	Rebuilt         bool
	CommitUndone    bool
	WitnessMade     bool
	ClockWasAhead   bool
	AfterGap        bool
}

// Metrics returns what the store counts and holds. If the store can't be read, gauges are 0; if it is
// closed, everything is.
func (s *Store) Metrics() Metrics {
	var metrics *C.waybill_metrics
	_ = s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_get_metrics(h, &metrics, e) })
	return take(metrics, func(c *C.waybill_metrics) Metrics {
		m := Metrics{
			OnDiskPullIntents:                 uint64(c.ondisk_pullintents),
			OnDiskPulledRecords:               uint64(c.ondisk_pulledrecords),
			InMemoryPullIntentsUsagePercent:   float64(c.inmemory_pullintents_usage_percent),
			InMemoryPulledRecordsUsagePercent: float64(c.inmemory_pulledrecords_usage_percent),
			NondefaultRuntimeHandlerImages:    uint64(c.nondefault_runtime_handler_images),
			PreloadedImages:                   uint64(c.preloaded_images),
			PresumedImages:                    uint64(c.presumed_images),
			OpenPulls:                         uint64(c.open_pulls),
			LiveOwner:                         bool(c.live_owner),
			Readable:                          bool(c.readable),
			SchemaVersion:                     uint32(c.schema_version),
			CommitSequence:                    uint64(c.commit_sequence),
			RecordsByHandler: goList(c.records_by_handler, c.records_by_handler_count, func(h *C.waybill_handler_records) HandlerRecords {
				return HandlerRecords{goString(h.runtime_handler), uint64(h.records)}
			}),
			ClosedImages:       uint64(c.closed_images),
			OldestCredential:   goTimeOrZero(c.oldest_credential),
			UndatedCredentials: uint64(c.undated_credentials),
			Revocations:        uint64(c.revocations),
			QuarantineEntries:  uint64(c.quarantine_entries),
			Distrustful:        bool(c.distrustful),
			IDMappings:         uint64(c.id_mappings),
			HeldPods:           uint64(c.held_pods),
			UserNamespaces:     bool(c.user_namespaces),
			IDRangesFree:       uint64(c.id_ranges_free),
			IDRangesUsed:       uint64(c.id_ranges_used),
			IDRangesRefused:    bool(c.id_ranges_refused),
			MapBytes:           uint64(c.map_bytes),
			UsedBytes:          uint64(c.used_bytes),
			Readers:            uint32(c.readers),
			MaxReaders:         uint32(c.max_readers),
		}
		m.MustPullChecks = *(*[5]uint64)(unsafe.Pointer(&c.mustpull_checks))
		m.EnsureImageRequests = *(*[3][3][3]uint64)(unsafe.Pointer(&c.ensure_image_requests))
		m.DistrustReasons = *(*[16]uint64)(unsafe.Pointer(&c.distrust_reasons))
		m.OpenPullsByState = *(*[4]uint64)(unsafe.Pointer(&c.open_pulls_by_state))
		if k := c.counters; k != nil {
			m.Counters = &StoreCounters{
				Decisions:           *(*[32]uint64)(unsafe.Pointer(&k.decisions)),
				MustPullChecks:      *(*[5]uint64)(unsafe.Pointer(&k.mustpull_checks)),
				EnsureImageRequests: *(*[3][3][3]uint64)(unsafe.Pointer(&k.ensure_image_requests)),
				CommitFailures:      uint64(k.commit_failures),
				WriteBackFailures:   uint64(k.write_back_failures),
				WriteBacksDropped:   uint64(k.write_backs_dropped),
				IDRangeFailures:     uint64(k.id_range_failures),
				ReverificationRatio: float64(k.reverification_ratio),
			}
		}
		if o := c.last_opening; o != nil {
			m.LastOpening = &OpeningSummary{
				At:              goTime(o.at),
				Damage:          uint64(o.damage),
				Warnings:        uint64(o.warnings),
				ModesMended:     uint64(o.modes_mended),
				ImportProblems:  uint64(o.import_problems),
				IDRangeProblems: uint64(o.id_range_problems),
				GapClosed:       uint64(o.gap_closed),
				Created:         bool(o.created),
				Rebuilt:         bool(o.rebuilt),
				CommitUndone:    bool(o.commit_undone),
				WitnessMade:     bool(o.witness_made),
				ClockWasAhead:   bool(o.clock_was_ahead),
				AfterGap:        bool(o.after_gap),
			}
		}
		return m
	})
}

// MetricsText returns the metrics in Prometheus' text exposition format, version 0.0.4: those of
// waybill (waybill_…), and from an owner those under the kubelet's names. Every series, zeros included.
func (s *Store) MetricsText() (string, error) {
	var text *C.waybill_string
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_metrics_text(h, &text, e) })
	return takeString(text), err
}

// VerifyReport says what Verify found. Sound is the verdict.
type VerifyReport struct {
	Sound    bool
	Pages    uint64
	Values   uint64
	Findings []string
}

// Verify walks the raw pages, reads every value and recomputes the digests. Damage is not an
// error; the report lists it. Verify blocks the commits of this process meanwhile. Beside a busy
// owner it may have to start over, and is ErrIO after several tries. ErrNotFound, ErrIO: the file
// can't be read. ctx is checked before it begins.
func (s *Store) Verify(ctx context.Context) (VerifyReport, error) {
	if err := alive(ctx); err != nil {
		return VerifyReport{}, err
	}
	var report *C.waybill_verify_report
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_verify(h, &report, e) })
	return take(report, goVerifyReport), err
}

func goVerifyReport(r *C.waybill_verify_report) VerifyReport {
	return VerifyReport{
		Sound:    bool(r.sound),
		Pages:    uint64(r.pages),
		Values:   uint64(r.values),
		Findings: goStrings(r.findings),
	}
}

// TrustKind says why a store's trust changed. Treat an unknown number like any other reason.
type TrustKind int32

// The kinds of [TrustEvent].
const (
	TrustOther            TrustKind = C.WAYBILL_TRUST_OTHER             // only in words, by an older version
	TrustOperator         TrustKind = C.WAYBILL_TRUST_OPERATOR          // an operator's statement
	TrustStoreLost        TrustKind = C.WAYBILL_TRUST_STORE_LOST        // the database was gone
	TrustStoreStale       TrustKind = C.WAYBILL_TRUST_STORE_STALE       // it may be an older copy
	TrustStoreRebuilt     TrustKind = C.WAYBILL_TRUST_STORE_REBUILT     // it failed its check
	TrustStoreRestored    TrustKind = C.WAYBILL_TRUST_STORE_RESTORED    // a backup was put back
	TrustImportUnfinished TrustKind = C.WAYBILL_TRUST_IMPORT_UNFINISHED // a kubelet directory is not taken over yet
	TrustGap              TrustKind = C.WAYBILL_TRUST_GAP               // images may have been pulled unrecorded
	TrustJournalFull      TrustKind = C.WAYBILL_TRUST_JOURNAL_FULL      // more reasons than the journal holds
)

// TrustAction says what an entry of the journal did.
type TrustAction int32

// The actions of [TrustEvent].
const (
	Distrusted TrustAction = C.WAYBILL_TRUST_DISTRUST   // a reason for distrust
	Trusted    TrustAction = C.WAYBILL_TRUST_TRUST      // ends every reason before it
	TakenBack  TrustAction = C.WAYBILL_TRUST_TAKEN_BACK // ends the reason of the same kind and words
	Noted      TrustAction = C.WAYBILL_TRUST_NOTE       // an operator's word on a single image or pull
)

// TrustEvent is an entry of the journal of distrust.
type TrustEvent struct {
	At          time.Time
	Kind        TrustKind
	Action      TrustAction
	Distrustful bool   // the state from then on
	Reason      string // in the store's words, or the operator's, who cleared distrust
}

// TrustState says whether unknown records may have been lost: if so, no image is judged (RulesClosed) or
// presumed preloaded (RulesKubelet).
type TrustState struct {
	Distrustful bool
	Journal     []TrustEvent // oldest first
}

// Trust returns whether the store is distrustful, and since when and why. ErrDamaged as of
// [Store.GetRecord].
func (s *Store) Trust() (TrustState, error) {
	var trust *C.waybill_trust_state
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_get_trust(h, &trust, e) })
	return take(trust, func(t *C.waybill_trust_state) TrustState {
		return TrustState{
			Distrustful: bool(t.distrustful),
			Journal: goList(t.journal, t.journal_count, func(e *C.waybill_trust_event) TrustEvent {
				return TrustEvent{
					At:          goTime(e.at),
					Kind:        TrustKind(e.kind),
					Action:      TrustAction(e.action),
					Distrustful: bool(e.distrustful),
					Reason:      goString(e.reason),
				}
			}),
		}
	}), err
}

// ClearOptions are those of [Store.ClearDistrust].
type ClearOptions struct {
	// The runtime's complete list. Its images that have neither record nor ledger entry get a record
	// without credentials, or with Adopt a ledger entry. nil: the next list does that.
	ImagesOnNode []ImageOnNode
	Adopt        bool // an operator's word that no pod's credentials brought those images
	AllowEmpty   bool // accept an empty ImagesOnNode
	DryRun       bool
}

// ClearDistrust records an operator's word that the store is whole again. reason is kept: 1 to 1,024
// bytes (ErrInvalidArgument otherwise). RulesClosed: images on the node that have neither record nor
// ledger entry are closed or adopted, and one open pull of anything stands for those that may still
// arrive. RulesKubelet: images without a record are presumed preloaded again; o is ignored. Further
// errors as of [Store.ObserveImages].
func (s *Store) ClearDistrust(reason string, o ClearOptions) (ObserveReport, error) {
	var a arena
	defer a.free()
	c := one[C.waybill_clear_options](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.images_on_node = cImagesOnNode(&a, o.ImagesOnNode)
	c.adopt = C.bool(o.Adopt)
	c.allow_empty = C.bool(o.AllowEmpty)
	c.dry_run = C.bool(o.DryRun)
	var report *C.waybill_observe_report
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_clear_distrust(h, borrow(reason), c, &report, e)
	})
	return take(report, goObserveReport), err
}
