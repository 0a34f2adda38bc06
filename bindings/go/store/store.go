// Package store opens a node's waybill store in this process. A decision crosses into C once, and
// allocates nothing; all else is a call of waybill.Calls, whose context counts for nothing here: a call
// that began ends.
package store

// #cgo pkg-config: waybill-c
// #include "shim.h"
import "C"

import (
	"context"
	"encoding/json"
	"runtime"
	"time"
	"unsafe"

	"waybill.dev/go"
)

// For Options.LossMarker, beside an absolute path.
const (
	RememberedLossMarker = "remembered" // for tools that open a known store
	NoLossMarker         = "none"       // a wiped or older store goes unnoticed
)

// Options are those of Open. The zero value of each is its default.
type Options struct {
	Directory string `json:"-"` // the store's own; its parent must exist
	// A file outside the store that shows if the store is lost or an older copy. Must be chosen.
	LossMarker       string                   `json:"-"`
	Settings         waybill.Settings         `json:"settings,omitzero"`
	KubeletDirectory string                   `json:"kubeletDirectory,omitempty"` // whose records and ID mappings are taken over
	Images           []waybill.ListedImage    `json:"images,omitzero"`            // that the runtime has; nil: unknown
	Runtimes         []waybill.RuntimeHandler `json:"runtimes,omitzero"`          // nil: as the store has them
	Preloaded        []waybill.ListedImage    `json:"preloaded,omitempty"`        // an installer's list, for a first start
	// At a first start images that nobody knows are closed. Otherwise they count as preloaded, unconfirmed.
	FirstStartCloses  bool   `json:"firstStartCloses,omitempty"`
	Unrecorded        string `json:"unrecorded,omitempty"` // may a kubelet without waybill have pulled? "detect" (default), "yes", "no"
	Create            *bool  `json:"create,omitempty"`     // true, if nil
	Migrate           *bool  `json:"migrate,omitempty"`    // true, if nil
	SkipUnreadable    bool   `json:"skipUnreadable,omitempty"`
	ContinuesPulls    bool   `json:"continuesPulls,omitempty"` // pulls of the process before are this one's
	AllowUntestedLmdb bool   `json:"allowUntestedLmdb,omitempty"`
	AllowEmpty        bool   `json:"allowEmpty,omitempty"` // empty Images and Runtimes are meant
	TestOptions
}

// TestOptions are for tests: see Store.SetTime.
type TestOptions struct {
	ManualClock bool  `json:"manualClock,omitempty"`
	UnixNs      int64 `json:"unixNs,omitempty"` // at opening
	BootNs      int64 `json:"bootNs,omitempty"`
}

// StreamsOptions are those of OpenStreams.
type StreamsOptions struct {
	Directory    string `json:"-"`
	LossMarker   string `json:"-"`
	KeepsTokens  bool   `json:"keepsTokens,omitempty"` // tokens live over a restart of the process
	Continues    bool   `json:"continues,omitempty"`   // a command that shares a server's work, and voids nothing
	TimeToLiveMS int64  `json:"timeToLiveMs,omitempty"`
	MaxOpen      int64  `json:"maxOpen,omitempty"`
	ManualClock  bool   `json:"manualClock,omitempty"`
	UnixNs       int64  `json:"unixNs,omitempty"`
	BootNs       int64  `json:"bootNs,omitempty"`
}

// Store is an open store. Any goroutine may call anything at any time. A zero Store is a closed one.
// The garbage collector closes a store that is dropped.
type Store struct {
	waybill.Calls
	handle  *C.waybill_store
	options Options
}

// Open opens as the only owner: checks each page, recovers what a crash left, imports, classifies. A
// damaged, lost or older store is no error: GetStatus says what was done.
func Open(options Options) (*Store, error) {
	return opened(options, options, func(text C.waybill_text, handle **C.waybill_store, e **C.waybill_error) C.waybill_code {
		return C.waybill_open(borrow(options.Directory), borrow(options.LossMarker), text, handle, e)
	})
}

// Observe opens to decide and to read, beside an owner or without one, by the settings that the last
// owner chose.
func Observe(directory string) (*Store, error) {
	of := Options{Directory: directory}
	return opened(of, nil, func(_ C.waybill_text, handle **C.waybill_store, e **C.waybill_error) C.waybill_code {
		return C.waybill_observe(borrow(directory), handle, e)
	})
}

// OpenStreams opens a store of streaming requests (KEP-1558), in a directory of its own. It takes
// PrepareStream, ConsumeStream, ListStreams, GetStatus, GetMetrics and Verify, and nothing else.
func OpenStreams(options StreamsOptions) (*Store, error) {
	of := Options{Directory: options.Directory, LossMarker: options.LossMarker}
	return opened(of, options, func(text C.waybill_text, handle **C.waybill_store, e **C.waybill_error) C.waybill_code {
		return C.waybill_open_streams(borrow(options.Directory), borrow(options.LossMarker), text, handle, e)
	})
}

// opened opens by a call of C, which takes `settings` as JSON.
func opened(of Options, settings any, open func(C.waybill_text, **C.waybill_store, **C.waybill_error) C.waybill_code) (*Store, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	var handle *C.waybill_store
	var e *C.waybill_error
	code := open(borrowBytes(text), &handle, &e)
	if err := takeError(code, e); err != nil {
		return nil, err
	}
	s := &Store{handle: handle, options: of}
	s.Calls = waybill.Calls{Door: func(_ context.Context, name string, parameters []byte) ([]byte, error) {
		defer runtime.KeepAlive(s)
		return door(s.handle, name, parameters)
	}}
	runtime.AddCleanup(s, func(h *C.waybill_store) { C.waybill_store_free(h) }, handle)
	return s, nil
}

// Options are those that it was opened with; of an observer Directory alone.
func (s *Store) Options() Options { return s.options }

// Close waits for running calls, writes back, and releases the lock. Later decisions are "pull", and
// calls fail with ErrClosed; a second Close changes nothing.
func (s *Store) Close() error {
	var e *C.waybill_error
	defer runtime.KeepAlive(s)
	if s.number() == 0 {
		return errClosed
	}
	code := C.waybill_close(s.handle, &e)
	return takeError(code, e)
}

// Serve answers other processes of root and this user through owner.sock in the store's directory,
// until Close. None of them can delay a decision.
func (s *Store) Serve() error {
	var e *C.waybill_error
	defer runtime.KeepAlive(s)
	if s.number() == 0 {
		return errClosed
	}
	code := C.waybill_serve(s.handle, &e)
	return takeError(code, e)
}

// SetTime sets the clocks of a store with a manual clock, for tests: the wall's, and the time since the
// machine booted.
func (s *Store) SetTime(now time.Time, sinceBoot time.Duration) error {
	defer runtime.KeepAlive(s)
	return takeError(C.waybill_set_time(s.handle, C.int64_t(now.UnixNano()), C.int64_t(sinceBoot)), nil)
}

// Library has the calls that need no store.
var Library = waybill.Calls{Door: func(_ context.Context, name string, parameters []byte) ([]byte, error) {
	return door(nil, name, parameters)
}}

func door(handle *C.waybill_store, name string, parameters []byte) ([]byte, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var answer *C.char
	var e *C.waybill_error
	if err := takeError(C.waybill_call(handle, cname, borrowBytes(parameters), &answer, &e), e); err != nil {
		return nil, err
	}
	defer C.waybill_free(unsafe.Pointer(answer))
	return []byte(C.GoString(answer)), nil
}

// Interface is the text of dev.waybill.varlink: all calls with their members, units and errors.
func Interface() string { return C.GoString(C.waybill_interface()) }

// Version is that of the library that runs.
func Version() string { return C.GoString(C.waybill_version()) }

// HashCredentials is the hash under which a Secret's credentials are known: what the kubelet computes.
func HashCredentials(username, password, email string) (string, error) {
	var hash *C.char
	var e *C.waybill_error
	code := C.waybill_hash_credentials(borrow(username), borrow(password), borrow(email), &hash, &e)
	defer C.waybill_free(unsafe.Pointer(hash))
	return C.GoString(hash), takeError(code, e)
}

var errClosed = &waybill.Error{Name: "Closed", Message: "the store was never opened"}

func borrow(s string) C.waybill_text {
	return C.waybill_text{data: (*C.char)(unsafe.Pointer(unsafe.StringData(s))), size: C.size_t(len(s))}
}

func borrowBytes(b []byte) C.waybill_text {
	return C.waybill_text{data: (*C.char)(unsafe.Pointer(unsafe.SliceData(b))), size: C.size_t(len(b))}
}

func takeError(code C.waybill_code, e *C.waybill_error) error {
	if code == C.WAYBILL_OK {
		return nil
	}
	name := []byte(C.GoString(C.waybill_code_name(code)))
	if len(name) > 0 {
		name[0] -= 'a' - 'A'
	}
	failed := &waybill.Error{Name: string(name)}
	if e != nil {
		failed.Message, failed.Hint, failed.RetryAfterMS = C.GoString(e.message), C.GoString(e.hint), int64(e.retry_after_ms)
		C.waybill_free(unsafe.Pointer(e))
	}
	return failed
}
