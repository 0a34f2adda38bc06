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

// FakeClock is a wall clock for tests that stands still until it is set. It covers the years 1678 to
// 2261; times outside are cut to those. Any number of stores and goroutines may share one.
type FakeClock struct {
	cell *cell // shared by copies
}

type cell struct {
	nanoseconds *int64 // in C memory, since the library's own threads read it
}

// NewFakeClock makes a clock that stands at t.
func NewFakeClock(t time.Time) *FakeClock {
	nanoseconds := C.malloc(C.size_t(unsafe.Sizeof(int64(0))))
	c := &FakeClock{&cell{(*int64)(nanoseconds)}}
	runtime.AddCleanup(c.cell, func(nanoseconds unsafe.Pointer) { C.free(nanoseconds) }, nanoseconds)
	c.Set(t)
	return c
}

var (
	firstFakeTime = time.Unix(0, math.MinInt64)
	lastFakeTime  = time.Unix(0, math.MaxInt64)
)

// Set moves the clock to t, forwards or backwards.
func (c *FakeClock) Set(t time.Time) {
	if t.Before(firstFakeTime) {
		t = firstFakeTime
	}
	if t.After(lastFakeTime) {
		t = lastFakeTime
	}
	cell := c.sound()
	atomic.StoreInt64(cell.nanoseconds, t.UnixNano())
	runtime.KeepAlive(cell)
}

// Now is where the clock stands.
func (c *FakeClock) Now() time.Time {
	cell := c.sound()
	now := atomic.LoadInt64(cell.nanoseconds)
	runtime.KeepAlive(cell)
	return time.Unix(0, now).UTC()
}

func (c *FakeClock) sound() *cell {
	if c == nil || c.cell == nil {
		panic("waybill: a FakeClock that NewFakeClock did not make")
	}
	return c.cell
}

// cClock is what C is given for c, nothing for the system's clock, and what is to be kept alive
// meanwhile.
func cClock(c *FakeClock) (C.waybill_clock, unsafe.Pointer, *cell) {
	if c == nil {
		return nil, nil, nil
	}
	cell := c.sound()
	return C.waybill_go_clock_of((*C.int64_t)(cell.nanoseconds)), unsafe.Pointer(cell.nanoseconds), cell
}
