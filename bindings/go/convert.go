package waybill

// #include "shim.h"
import "C"

import (
	"bytes"
	"time"
	"unsafe"
)

// Strings are passed in place: C borrows them until the call returns.

func borrow(s string) C.waybill_string {
	return C.waybill_string{
		data:   (*C.char)(unsafe.Pointer(unsafe.StringData(s))),
		length: C.size_t(len(s)),
	}
}

func borrowBytes(b []byte) C.waybill_string {
	return C.waybill_string{
		data:   (*C.char)(unsafe.Pointer(unsafe.SliceData(b))),
		length: C.size_t(len(b)),
	}
}

// Results are copied.

func goString(s C.waybill_string) string {
	return string(unsafe.Slice((*byte)(unsafe.Pointer(s.data)), int(s.length)))
}

// takeString copies and frees a string that C returned.
func takeString(s *C.waybill_string) string {
	return take(s, func(s *C.waybill_string) string { return goString(*s) })
}

func takeBytes(s *C.waybill_string) []byte {
	return take(s, func(s *C.waybill_string) []byte {
		return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(s.data)), int(s.length)))
	})
}

// take converts and frees a result. If the call failed, it returns the zero value.
func take[R, G any](result *R, convert func(*R) G) G {
	if result == nil {
		var none G
		return none
	}
	defer C.waybill_free(unsafe.Pointer(result))
	return convert(result)
}

// goList copies an array; nil for an empty one.
func goList[E, G any](items *E, count C.size_t, convert func(*E) G) []G {
	if count == 0 {
		return nil
	}
	list := make([]G, int(count))
	from := unsafe.Slice(items, int(count))
	for i := range list {
		list[i] = convert(&from[i])
	}
	return list
}

func goStrings(s C.waybill_strings) []string {
	return goList(s.items, s.count, func(s *C.waybill_string) string { return goString(*s) })
}

func goStringsOf(s *C.waybill_strings) []string { return goStrings(*s) }

func goTime(t C.waybill_timestamp) time.Time {
	return time.Unix(int64(t.seconds), int64(t.nanoseconds)).UTC()
}

func cTime(t time.Time) C.waybill_timestamp {
	return C.waybill_timestamp{
		seconds:     C.int64_t(t.Unix()),
		nanoseconds: C.int32_t(t.Nanosecond()),
	}
}

// arena is C memory for the arguments of one call: Go memory that holds Go pointers may not be
// passed.
type arena struct {
	blocks []unsafe.Pointer
	rest   []byte
}

const arenaBlockBytes = 4096

// bytes returns zeroed C memory, aligned for any type.
func (a *arena) bytes(size int) []byte {
	size = (max(size, 1) + 15) &^ 15
	if size > len(a.rest) {
		block := max(size, arenaBlockBytes)
		p := C.malloc(C.size_t(block)) // never nil: cgo's malloc ends the process instead
		a.blocks = append(a.blocks, p)
		a.rest = unsafe.Slice((*byte)(p), block)
		clear(a.rest)
	}
	b := a.rest[:size:size]
	a.rest = a.rest[size:]
	return b
}

func (a *arena) free() {
	for _, block := range a.blocks {
		C.free(block)
	}
	*a = arena{}
}

func (a *arena) string(s string) C.waybill_string {
	if s == "" {
		return C.waybill_string{}
	}
	b := a.bytes(len(s))
	copy(b, s)
	return C.waybill_string{data: (*C.char)(unsafe.Pointer(&b[0])), length: C.size_t(len(s))}
}

// one allocates a zeroed T, a type of C, in the arena.
func one[T any](a *arena) *T {
	return (*T)(unsafe.Pointer(&a.bytes(int(unsafe.Sizeof(*new(T))))[0]))
}

// cList puts an array into the arena; nil for an empty one.
func cList[G, E any](a *arena, from []G, convert func(*arena, *G) E) (*E, C.size_t) {
	if len(from) == 0 {
		return nil, 0
	}
	items := (*E)(unsafe.Pointer(&a.bytes(len(from) * int(unsafe.Sizeof(*new(E))))[0]))
	for i, to := 0, unsafe.Slice(items, len(from)); i < len(from); i++ {
		to[i] = convert(a, &from[i])
	}
	return items, C.size_t(len(from))
}

func (a *arena) strings(from []string) C.waybill_strings {
	items, count := cList(a, from, func(a *arena, s *string) C.waybill_string { return a.string(*s) })
	return C.waybill_strings{items: items, count: count}
}

// time puts t into the arena; nil for the zero time.
func (a *arena) time(t time.Time) *C.waybill_timestamp {
	if t.IsZero() {
		return nil
	}
	c := one[C.waybill_timestamp](a)
	*c = cTime(t)
	return c
}

func goTimeOrZero(t *C.waybill_timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return goTime(*t)
}

// put puts a value of C into the arena.
func put[T any](a *arena, value T) *T {
	c := one[T](a)
	*c = value
	return c
}

// cIfAny keeps nil.
func cIfAny[G, E any](a *arena, from *G, convert func(*arena, *G) E) *E {
	if from == nil {
		return nil
	}
	return put(a, convert(a, from))
}

// listOrNil keeps nil (unknown) and empty apart.
func listOrNil[G, L any](a *arena, from []G, convert func(*arena, []G) L) *L {
	if from == nil {
		return nil
	}
	return put(a, convert(a, from))
}

func goIfAny[E, G any](from *E, convert func(*E) G) *G {
	if from == nil {
		return nil
	}
	return new(convert(from))
}
