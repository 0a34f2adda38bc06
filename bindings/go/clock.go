package waybill

// #include "shim.h"
import "C"

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// ManualClock is a wall clock that stands still until it is set: for tests, and for callers that have
// a clock of their own. It covers the years 1678 to 2261 and clamps other times. Any number of stores
// and goroutines may share one.
type ManualClock struct {
	cell *cell // shared by copies
}

type cell struct {
	nanoseconds *int64 // in C memory, since the library's own threads read it
}

// NewManualClock makes a clock that stands at t.
func NewManualClock(t time.Time) *ManualClock {
	nanoseconds := C.malloc(C.size_t(unsafe.Sizeof(int64(0))))
	c := &ManualClock{&cell{(*int64)(nanoseconds)}}
	runtime.AddCleanup(c.cell, func(nanoseconds unsafe.Pointer) { C.free(nanoseconds) }, nanoseconds)
	c.Set(t)
	return c
}

var (
	firstManualTime = time.Unix(0, math.MinInt64)
	lastManualTime  = time.Unix(0, math.MaxInt64)
)

// Set moves the clock to t, forwards or backwards.
func (c *ManualClock) Set(t time.Time) {
	if t.Before(firstManualTime) {
		t = firstManualTime
	}
	if t.After(lastManualTime) {
		t = lastManualTime
	}
	cell := c.sound()
	atomic.StoreInt64(cell.nanoseconds, t.UnixNano())
	runtime.KeepAlive(cell)
}

// Now is where the clock stands.
func (c *ManualClock) Now() time.Time {
	cell := c.sound()
	now := atomic.LoadInt64(cell.nanoseconds)
	runtime.KeepAlive(cell)
	return time.Unix(0, now).UTC()
}

func (c *ManualClock) sound() *cell {
	if c == nil || c.cell == nil {
		panic("waybill: a ManualClock that NewManualClock did not make")
	}
	return c.cell
}

// cClock returns what C gets for c (nothing for the system's clock), and the cell to keep alive until
// C has finished.
func cClock(c *ManualClock) (C.waybill_clock, unsafe.Pointer, *cell) {
	if c == nil {
		return nil, nil, nil
	}
	cell := c.sound()
	return C.waybill_go_clock_of((*C.int64_t)(cell.nanoseconds)), unsafe.Pointer(cell.nanoseconds), cell
}
