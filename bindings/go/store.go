// Package waybill remembers, on one Kubernetes node: which image was pulled with whose credentials
// (KEP-2535), which pulls were in flight, which copy of an image belongs to which runtime handler
// (KEP-4216), and which host IDs belong to which pod (KEP-127). It is an embedded store: no daemon,
// no network. A call that returned success survives a power cut, and what cannot be read, verified
// or understood never opens an image.
//
// Strings may hold any bytes, invalid UTF-8 included. Functions fail with an [*Error]; its code is
// matched with errors.Is and the Err variables.
package waybill

// #cgo pkg-config: waybill-c
// #include "shim.h"
import "C"

import (
	"runtime"
)

type (
	handle   = *C.waybill_store
	errorOut = **C.waybill_error
)

// Store is an open store. All its methods may be called from any number of goroutines, Close
// included. The zero Store, and a nil one, behave as closed ones. A store that is dropped without
// Close is closed when the garbage collector finds it. It may not be used in the child of a fork.
type Store struct {
	opened *opened // shared by copies
}

type opened struct {
	handle handle
	rules  Rules
}

// held is what a store's cleanup needs, and keeps alive until then.
type held struct {
	handle handle
	clock  *cell
}

func newStore(h handle, rules Rules, clock *cell) *Store {
	o := &opened{handle: h, rules: rules}
	runtime.AddCleanup(o, func(h held) {
		C.waybill_store_free(h.handle)
		runtime.KeepAlive(h.clock)
	}, held{h, clock})
	return &Store{opened: o}
}

// call runs f on the open handle, and makes an error of what it returned.
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

// Close waits for the calls that run, commits the write-backs that wait, syncs the witness and
// releases the lock. Afterwards decisions answer "pull" and everything else is ErrClosed, as is
// closing again. An error of the write-backs or of the witness (ErrDamaged: that was removed or
// replaced meanwhile; ErrIO, ErrDiskFull, ErrStoreFull, ErrOutcomeUnknown) leaves the store closed all the same.
func (s *Store) Close() error {
	return s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_close(h, e) })
}

// Rules returns those that the store was opened with, also once it is closed.
func (s *Store) Rules() Rules {
	if s == nil || s.opened == nil {
		return RulesClosed
	}
	return s.opened.rules
}

// Flush waits until every write-back that decisions queued so far is on disk. ErrIO, ErrDiskFull,
// ErrStoreFull, ErrOutcomeUnknown; a write-back that failed is dropped, and the next decision that
// needs it queues it again.
func (s *Store) Flush() error {
	return s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_flush(h, e) })
}

// Version is that of the library that runs: "0.1.0".
func Version() string { return goString(C.waybill_version()) }

// AllowUntestedLMDB says whether to go on with a version of LMDB that waybill was not tested with, in
// this whole process, from now on. Otherwise Open, Observe, Migrate and Restore return
// ErrInvalidArgument then, and touch nothing.
func AllowUntestedLMDB(allow bool) { C.waybill_allow_untested_lmdb(C.bool(allow)) }

// NewestSchema is the schema version that the library writes.
func NewestSchema() uint32 { return uint32(C.waybill_newest_schema()) }

// OldestSchema is the oldest schema version that the library opens.
func OldestSchema() uint32 { return uint32(C.waybill_oldest_schema()) }
