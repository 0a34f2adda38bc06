package waybill

// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"
)

// PruneReport says what a garbage collection of records did.
type PruneReport struct {
	Examined   uint64
	Removed    uint64
	KeptInList uint64
	KeptNewer  uint64 // written or confirmed after the token, or not before the time
	// Listed under another handler only, but the last record of the ref: it lost its credentials.
	KeptWithoutCredentials uint64
	PreloadedRemoved       uint64 // ledger entries (RulesClosed)
}

// ChangeOption says how to make a change.
type ChangeOption uint8

const (
	// AllowEmpty accepts an empty list. A runtime that starts up lists nothing, so an empty list is
	// otherwise ErrInvalidArgument if it would delete something.
	AllowEmpty ChangeOption = 1 << iota
	// DryRun makes the change, reports it, and undoes it: nothing reaches the disk.
	DryRun
)

// String returns "AllowEmpty", "DryRun", or both with a '|'.
func (o ChangeOption) String() string {
	return word(int64(o), "ChangeOption", "none", "AllowEmpty", "DryRun", "AllowEmpty|DryRun")
}

func cChangeOptions(a *arena, options []ChangeOption) *C.waybill_change_options {
	var all ChangeOption
	for _, o := range options {
		all |= o
	}
	c := one[C.waybill_change_options](a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.allow_empty = C.bool(all&AllowEmpty != 0)
	c.dry_run = C.bool(all&DryRun != 0)
	return c
}

// Prune deletes the record of each image that is not in images, the complete list of images on the
// node, and was not written or confirmed after token was drawn ([Store.BeginList]); RulesClosed deletes
// ledger entries likewise. It needs the ID of each image, or another spelling. It judges nothing:
// [Store.ObserveImages] does both. An image that the list leaves out by mistake loses its record, and
// may then be presumed preloaded (RulesKubelet), or is judged anew (RulesClosed). ErrInvalidArgument:
// the token is from the future or of another store, or the list is empty but there are records ([AllowEmpty]). Further
// errors as of [Store.RecordPullIntent].
func (s *Store) Prune(images []ImageOnNode, token ListToken, options ...ChangeOption) (PruneReport, error) {
	var a arena
	defer a.free()
	listed := cImages(&a, images)
	how := cChangeOptions(&a, options)
	var report *C.waybill_prune_report
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_prune(h, listed, cToken(token), how, &report, e)
	})
	return take(report, goPruneReport), err
}

// PruneBefore is the kubelet's form: it deletes records that are not listed and were last updated
// before until. It compares clocks, so prefer a token. RulesKubelet cuts times to the second, as the
// kubelet does. ErrInvalidArgument for an empty list, as of [Store.Prune]; further errors as of
// [Store.RecordPullIntent].
func (s *Store) PruneBefore(images []ImageOnNode, until time.Time, options ...ChangeOption) (PruneReport, error) {
	var a arena
	defer a.free()
	listed := cImages(&a, images)
	how := cChangeOptions(&a, options)
	var report *C.waybill_prune_report
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_prune_before(h, listed, cTime(until), how, &report, e)
	})
	return take(report, goPruneReport), err
}

func goPruneReport(r *C.waybill_prune_report) PruneReport {
	return PruneReport{
		Examined:               uint64(r.examined),
		Removed:                uint64(r.removed),
		KeptInList:             uint64(r.kept_in_list),
		KeptNewer:              uint64(r.kept_newer),
		KeptWithoutCredentials: uint64(r.kept_without_credentials),
		PreloadedRemoved:       uint64(r.preloaded_removed),
	}
}
