package waybill

// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"
)

// PruneToken is the commit of the store that a garbage collection, of images or of pods, starts from.
type PruneToken uint64

// PruneReport says what a garbage collection of records did.
type PruneReport struct {
	Examined   uint64
	Removed    uint64
	KeptInList uint64
	KeptNewer  uint64 // written or confirmed after the token, or not before the time
	KeptIntent uint64 // an intent names the same repository (RulesClosed)
	// Listed under another handler only, but the last record of the ref: it lost its credentials.
	KeptWithoutCredentials uint64
}

// ChangeOption says how to make a change that deletes.
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

// BeginPrune draws a token. Call it before you ask the runtime for the list of images ([Store.Prune])
// or the lists of pods ([Store.CleanUpUserNamespaces]). Errors as of [Store.RecordPullIntent].
func (s *Store) BeginPrune() (PruneToken, error) {
	var token C.uint64_t
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_begin_prune(h, &token, e) })
	return PruneToken(token), err
}

// Prune deletes the record of each image that is not in images, the complete list of images on the
// node, and was not written or confirmed after token was drawn. RulesClosed keeps refs that share a
// name with a pull in flight or a dangling intent. A ref that the list leaves out by mistake loses its
// record, and its image may then be presumed preloaded. ErrInvalidArgument: the token is from the
// future, or the list is empty but there are records ([AllowEmpty]). Further errors as of
// [Store.RecordPullIntent].
func (s *Store) Prune(images []ListedImage, token PruneToken, options ...ChangeOption) (PruneReport, error) {
	var a arena
	defer a.free()
	items, count := cList(&a, images, cListedImage)
	how := cChangeOptions(&a, options)
	var report *C.waybill_prune_report
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_prune(h, items, count, C.uint64_t(token), how, &report, e)
	})
	return take(report, goPruneReport), err
}

// PruneBefore is the kubelet's form: it deletes records that are not listed and were last updated
// before until. It compares clocks, so prefer a token. RulesKubelet cuts times to the second, as the
// kubelet does. ErrInvalidArgument for an empty list, as of [Store.Prune]; further errors as of
// [Store.RecordPullIntent].
func (s *Store) PruneBefore(images []ListedImage, until time.Time, options ...ChangeOption) (PruneReport, error) {
	var a arena
	defer a.free()
	items, count := cList(&a, images, cListedImage)
	how := cChangeOptions(&a, options)
	var report *C.waybill_prune_report
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_prune_before(h, items, count, cTime(until), how, &report, e)
	})
	return take(report, goPruneReport), err
}

func cListedImage(a *arena, i *ListedImage) C.waybill_listed_image {
	return C.waybill_listed_image{
		image_ref:       a.string(i.ImageRef),
		runtime_handler: a.string(i.RuntimeHandler),
	}
}

func goPruneReport(r *C.waybill_prune_report) PruneReport {
	return PruneReport{
		Examined:               uint64(r.examined),
		Removed:                uint64(r.removed),
		KeptInList:             uint64(r.kept_in_list),
		KeptNewer:              uint64(r.kept_newer),
		KeptIntent:             uint64(r.kept_intent),
		KeptWithoutCredentials: uint64(r.kept_without_credentials),
	}
}
