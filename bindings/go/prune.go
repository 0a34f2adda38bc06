package waybill

// #include "shim.h"
import "C"

import (
	"unsafe"
)

// ChangeOption says how to make a change.
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
