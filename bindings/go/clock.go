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
	nanoseconds *int64 // in C memory, since the library's own threads read it
}

// NewFakeClock makes a clock that stands at t.
func NewFakeClock(t time.Time) *FakeClock {
	cell := C.malloc(C.size_t(unsafe.Sizeof(int64(0))))
	c := &FakeClock{nanoseconds: (*int64)(cell)}
	runtime.AddCleanup(c, func(cell unsafe.Pointer) { C.free(cell) }, cell)
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
	atomic.StoreInt64(c.cell(), t.UnixNano())
	runtime.KeepAlive(c)
}

// Now is where the clock stands.
func (c *FakeClock) Now() time.Time {
	now := atomic.LoadInt64(c.cell())
	runtime.KeepAlive(c)
	return time.Unix(0, now).UTC()
}

func (c *FakeClock) cell() *int64 {
	if c == nil || c.nanoseconds == nil {
		panic("waybill: a FakeClock that NewFakeClock did not make")
	}
	return c.nanoseconds
}

// cClock is what C is given for c: nothing, for the system's clock.
func cClock(c *FakeClock) (C.waybill_clock, unsafe.Pointer) {
	if c == nil {
		return nil, nil
	}
	cell := c.cell()
	return C.waybill_go_clock_of((*C.int64_t)(cell)), unsafe.Pointer(cell)
}
