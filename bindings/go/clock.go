package waybill

// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"math"
	"runtime"
	"sync"
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

// BootTime is a time since the machine booted. Changes of the wall clock do not affect it.
type BootTime struct {
	BootID [16]byte      // which boot; zeros: unknown
	Since  time.Duration // CLOCK_BOOTTIME
}

func goBootTime(t *C.waybill_boot_time) BootTime {
	return BootTime{
		BootID: *(*[16]byte)(unsafe.Pointer(&t.boot_id)),
		Since:  time.Duration(t.nanoseconds),
	}
}

func cBootTime(t BootTime) C.waybill_boot_time {
	return C.waybill_boot_time{
		boot_id:     *(*[16]C.uint8_t)(unsafe.Pointer(&t.BootID)),
		nanoseconds: C.int64_t(t.Since),
	}
}

// ManualBootClock is a clock of the time since boot that stands still until it is set, for tests.
// Any number of stores and goroutines may share one.
type ManualBootClock struct {
	cell *bootCell // shared by copies
}

type bootCell struct {
	mutex sync.Mutex // of those who set it
	// In C memory, since the library's own threads read it.
	shared *C.waybill_go_boot_cell
}

// NewManualBootClock makes a clock that stands at t.
func NewManualBootClock(t BootTime) *ManualBootClock {
	shared := C.calloc(1, C.size_t(unsafe.Sizeof(C.waybill_go_boot_cell{})))
	c := &ManualBootClock{&bootCell{shared: (*C.waybill_go_boot_cell)(shared)}}
	runtime.AddCleanup(c.cell, func(shared unsafe.Pointer) { C.free(shared) }, shared)
	c.Set(t)
	return c
}

// Set moves the clock to t.
func (c *ManualBootClock) Set(t BootTime) {
	cell := c.sound()
	cell.mutex.Lock()
	defer cell.mutex.Unlock()
	s := cell.shared
	atomic.AddUint64((*uint64)(&s.sequence), 1)
	for i := range s.boot_id {
		atomic.StoreUint64((*uint64)(&s.boot_id[i]), binary.NativeEndian.Uint64(t.BootID[8*i:]))
	}
	atomic.StoreInt64((*int64)(&s.nanoseconds), int64(t.Since))
	atomic.AddUint64((*uint64)(&s.sequence), 1)
}

// Now is where the clock stands.
func (c *ManualBootClock) Now() BootTime {
	cell := c.sound()
	cell.mutex.Lock()
	defer cell.mutex.Unlock()
	t := BootTime{Since: time.Duration(cell.shared.nanoseconds)}
	for i, half := range cell.shared.boot_id {
		binary.NativeEndian.PutUint64(t.BootID[8*i:], uint64(half))
	}
	return t
}

func (c *ManualBootClock) sound() *bootCell {
	if c == nil || c.cell == nil {
		panic("waybill: a ManualBootClock that NewManualBootClock did not make")
	}
	return c.cell
}

// cBootClock returns what C gets for c (nothing for the system's clock), and the cell to keep alive
// until C has finished.
func cBootClock(c *ManualBootClock) (C.waybill_boot_clock, unsafe.Pointer, *bootCell) {
	if c == nil {
		return nil, nil, nil
	}
	cell := c.sound()
	return C.waybill_go_boot_clock_of(cell.shared), unsafe.Pointer(cell.shared), cell
}
