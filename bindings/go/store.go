// Package waybill remembers, on one Kubernetes node: which image was pulled with whose credentials
// (KEP-2535), which pulls were in flight, which copy of an image belongs to which runtime handler
// (KEP-4216), and which host IDs belong to which pod (KEP-127). It is an embedded store: no daemon,
// no network. A call that returned success survives a power cut, and data that cannot be read,
// verified or understood never opens an image.
//
// Strings may hold any bytes, invalid UTF-8 included. Functions fail with an [*Error]; match its code
// with errors.Is and the Err variables.
package waybill

// #cgo pkg-config: waybill-c
// #include "shim.h"
import "C"

import "runtime"

type (
	handle   = *C.waybill_store
	errorOut = **C.waybill_error
)

// Store is an open store. All its methods may be called from any number of goroutines, Close included.
// A zero or nil Store behaves as a closed one. The garbage collector closes a store that is dropped
// without Close. A store must not be used in the child of a fork.
type Store struct {
	opened *opened // shared by copies
}

type opened struct {
	handle           handle
	rules            Rules
	kubeletDirectory string
}

// remains is what the cleanup of a dropped store frees, and what must live until then.
type remains struct {
	handle handle
	clock  *cell
	boot   *bootCell
}

func newStore(h handle, rules Rules, kubeletDirectory string, clock *cell, boot *bootCell) *Store {
	o := &opened{h, rules, kubeletDirectory}
	runtime.AddCleanup(o, func(r remains) {
		C.waybill_store_free(r.handle)
		runtime.KeepAlive(r.clock)
		runtime.KeepAlive(r.boot)
	}, remains{h, clock, boot})
	return &Store{opened: o}
}

// call runs f on the open handle, and converts its code to an error.
func (s *Store) call(f func(h handle, e errorOut) C.waybill_code) error {
	if s == nil || s.opened == nil {
		return errClosed()
	}
	o := s.opened
	var e *C.waybill_error
	code := f(o.handle, &e)
	runtime.KeepAlive(o)
	return takeError(code, e)
}

// Close waits for running calls, commits waiting write-backs, syncs the witness and releases the lock.
// Afterwards decisions answer "pull" and all other calls, closing again included, are ErrClosed. An
// error concerns the write-backs or the witness only (ErrDamaged: the witness was removed or replaced;
// ErrIO, ErrDiskFull, ErrStoreFull, ErrOutcomeUnknown); the store is closed in any case.
func (s *Store) Close() error {
	return s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_close(h, e) })
}

// Rules returns the rules that the store was opened with, also after Close.
func (s *Store) Rules() Rules {
	if s == nil || s.opened == nil {
		return RulesClosed
	}
	return s.opened.rules
}

// KubeletDirectory returns Options.KubeletDirectory of a store that [Open] opened, also after Close.
func (s *Store) KubeletDirectory() string {
	if s == nil || s.opened == nil {
		return ""
	}
	return s.opened.kubeletDirectory
}

// Version is the version of the library that runs: "0.1.0".
func Version() string { return goString(C.waybill_version()) }

// AllowUntestedLMDB says whether to use a version of LMDB that waybill was not tested with, in the
// whole process, from now on. Otherwise Open, Observe, Migrate and Restore return ErrInvalidArgument
// and change nothing.
func AllowUntestedLMDB(allow bool) { C.waybill_allow_untested_lmdb(C.bool(allow)) }

// NewestSchema is the schema version that the library writes.
func NewestSchema() uint32 { return uint32(C.waybill_newest_schema()) }

// OldestSchema is the oldest schema version that the library opens.
func OldestSchema() uint32 { return uint32(C.waybill_oldest_schema()) }
