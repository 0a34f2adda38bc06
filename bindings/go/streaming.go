package waybill

// #include "shim.h"
import "C"

import (
	"math"
	"runtime"
	"time"
	"unsafe"
)

// Check says whether [StreamingStore.Prepare] takes the request. ErrInvalidArgument, by the rules of
// CRI's streaming server: no container ID or pod sandbox ID; TTY and Stderr; none of Stdin, Stdout
// and Stderr. By waybill's own rules: exec without a command; port 0; a field that the kind does
// not have; a zero byte. ErrLimitExceeded: it is too large.
func (r StreamingRequest) Check() error {
	var a arena
	defer a.free()
	var e *C.waybill_error
	code := C.waybill_check_streaming_request(put(&a, cStreamingRequest(&a, &r)), &e)
	return takeError(code, e)
}

// StreamTokenID returns a name for a token in logs, which opens nothing: the first 16 hex digits of
// its SHA-256.
func StreamTokenID(token string) string {
	var id *C.waybill_string
	C.waybill_stream_token_id(borrow(token), &id, nil)
	return takeString(id)
}

// StreamingOptions are those of [OpenStreaming]. The zero value of each but Directory and Witness is
// its default.
type StreamingOptions struct {
	// The store's own directory, as Options.Directory. On tmpfs (/run) commits cost least.
	Directory string
	MustExist bool
	Witness   Witness
	// By default a restart makes all tokens void, since their URLs died with the streaming server.
	// This keeps those that are still open, for a server that comes back under the same address. After
	// another boot, or if the store is a copy, an older copy or distrustful, all are void in any case.
	KeepsTokens bool
	// Not a restart of the server: a command that shares its work keeps the tokens that a server with
	// KeepsTokens would keep.
	Continues bool
	// How long a token is good, by CLOCK_BOOTTIME: 1 second to 1 hour; 0: 60 seconds.
	TimeToLive     time.Duration
	MaxOpen        uint64 // tokens that are open at the same time, 1 to 65,536; 0: 1,000
	NoMigration    bool
	SkipUnreadable bool
	FlushesTwice   bool
	MapBytes       uint64           // 0: as the store remembers it
	Clock          *ManualClock     // nil: the system's
	BootClock      *ManualBootClock // nil: the system's
}

// StreamingStore keeps the requests (exec, attach, port-forward) that a runtime's streaming server
// prepared (KEP-1558), each under a token that opens one stream, once. It has a directory of its own: a
// node's store is refused, and [Open] refuses this one. It stores the SHA-256 of a token, and the
// request, sealed with a key that only the token gives.
//
// All methods may be called from any number of goroutines. A zero or nil StreamingStore behaves as a
// closed one.
type StreamingStore struct {
	opened *openedStreams
}

type openedStreams struct {
	handle *C.waybill_streaming_store
}

type streamingRemains struct {
	handle *C.waybill_streaming_store
	clock  *cell
	boot   *bootCell
}

func newStreamingStore(h *C.waybill_streaming_store, clock *cell, boot *bootCell) *StreamingStore {
	o := &openedStreams{handle: h}
	runtime.AddCleanup(o, func(r streamingRemains) {
		C.waybill_streaming_store_free(r.handle)
		runtime.KeepAlive(r.clock)
		runtime.KeepAlive(r.boot)
	}, streamingRemains{h, clock, boot})
	return &StreamingStore{opened: o}
}

func (s *StreamingStore) call(f func(h *C.waybill_streaming_store, e errorOut) C.waybill_code) error {
	if s == nil || s.opened == nil {
		return errClosed()
	}
	o := s.opened
	var e *C.waybill_error
	code := f(o.handle, &e)
	runtime.KeepAlive(o)
	return takeError(code, e)
}

// OpenStreaming opens as the only owner. Errors and what they leave: [Open]. ErrInvalidArgument also:
// the directory has a node's store. A damaged database is set aside, and all its tokens are void.
func OpenStreaming(o StreamingOptions) (*StreamingStore, error) {
	var a arena
	defer a.free()
	c := one[C.waybill_streaming_options](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.directory = a.string(o.Directory)
	c.must_exist = C.bool(o.MustExist)
	c.witness_kind = o.Witness.kind
	c.witness_path = a.string(o.Witness.path)
	c.keeps_tokens = C.bool(o.KeepsTokens)
	c.continues = C.bool(o.Continues)
	c.time_to_live_ns = C.uint64_t(o.TimeToLive)
	if o.TimeToLive < 0 {
		c.time_to_live_ns = math.MaxUint64 // refused
	}
	c.max_open = C.uint64_t(o.MaxOpen)
	c.no_migration = C.bool(o.NoMigration)
	c.skip_unreadable = C.bool(o.SkipUnreadable)
	c.flushes_twice = C.bool(o.FlushesTwice)
	c.map_bytes = C.uint64_t(o.MapBytes)
	var clock *cell
	c.clock, c.clock_context, clock = cClock(o.Clock)
	var boot *bootCell
	c.boot_clock, c.boot_clock_context, boot = cBootClock(o.BootClock)
	var h *C.waybill_streaming_store
	var e *C.waybill_error
	code := C.waybill_streaming_open(c, &h, &e)
	runtime.KeepAlive(clock)
	runtime.KeepAlive(boot)
	if err := takeError(code, e); err != nil {
		return nil, err
	}
	return newStreamingStore(h, clock, boot), nil
}

// ObserveStreaming opens to read, beside a live owner or without one; Prepare and Consume are
// ErrNotOwner. Errors: [Observe]. ErrInvalidArgument also: the directory has a node's store.
func ObserveStreaming(directory string) (*StreamingStore, error) {
	var h *C.waybill_streaming_store
	var e *C.waybill_error
	code := C.waybill_streaming_observe(borrow(directory), &h, &e)
	if err := takeError(code, e); err != nil {
		return nil, err
	}
	return newStreamingStore(h, nil, nil), nil
}

// Close waits for running calls, syncs the witness and releases the lock. Later calls are ErrClosed.
// Open tokens stay on the disk; StreamingOptions says what the next opening does with them.
func (s *StreamingStore) Close() error {
	return s.call(func(h *C.waybill_streaming_store, e errorOut) C.waybill_code {
		return C.waybill_streaming_close(h, e)
	})
}

// Report returns what opening found and did; empty for an observer. It works on a closed store, too.
func (s *StreamingStore) Report() StreamingReport {
	var report *C.waybill_streaming_report
	s.call(func(h *C.waybill_streaming_store, e errorOut) C.waybill_code {
		return C.waybill_get_streaming_report(h, &report, e)
	})
	return take(report, func(c *C.waybill_streaming_report) StreamingReport {
		return StreamingReport{
			Recovery:   goRecoveryReport(c.recovery),
			Voided:     uint64(c.voided),
			VoidReason: goString(c.void_reason),
			Open:       uint64(c.open),
		}
	})
}

// StreamingCounters count since the store was opened; each Prepare and Consume once.
type StreamingCounters struct {
	Prepared       uint64
	PrepareInvalid uint64 // ErrInvalidArgument, and above a bound
	PrepareFull    uint64
	PrepareFailed  uint64 // any other error
	Consumed       uint64
	RefusedUnknown uint64 // ErrNotFound, as the next two: never prepared, used before, or void
	RefusedExpired uint64
	RefusedKind    uint64
	ConsumeFailed  uint64 // any other error
	Voided         uint64 // StreamingReport.Voided
	Open           uint64 // now; those that expired since the last Prepare among them
	PrometheusText string // all of it, in the text exposition format
}

// Counters returns the counts. It never fails: for a closed store all are 0.
func (s *StreamingStore) Counters() StreamingCounters {
	var counters *C.waybill_streaming_counters
	s.call(func(h *C.waybill_streaming_store, e errorOut) C.waybill_code {
		return C.waybill_get_streaming_counters(h, &counters, e)
	})
	return take(counters, func(c *C.waybill_streaming_counters) StreamingCounters {
		return StreamingCounters{
			Prepared:       uint64(c.prepared),
			PrepareInvalid: uint64(c.prepare_invalid),
			PrepareFull:    uint64(c.prepare_full),
			PrepareFailed:  uint64(c.prepare_failed),
			Consumed:       uint64(c.consumed),
			RefusedUnknown: uint64(c.refused_unknown),
			RefusedExpired: uint64(c.refused_expired),
			RefusedKind:    uint64(c.refused_kind),
			ConsumeFailed:  uint64(c.consume_failed),
			Voided:         uint64(c.voided),
			Open:           uint64(c.open),
			PrometheusText: goString(c.prometheus_text),
		}
	})
}
