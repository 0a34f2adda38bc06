package waybill

// #include "shim.h"
import "C"

import (
	"fmt"
	"math"
	"time"
	"unsafe"
)

// ServeOptions are those of [Store.Serve]. The zero value of each is its default.
type ServeOptions struct {
	// How long a client may take to send its request, and again to take its answer, in whole
	// milliseconds: 1 ms to 1 hour. 0: 10 seconds.
	Patience time.Duration
	// At the same time: 1 to 1,024. 0: 32.
	Connections int
}

// Serve answers other processes from now on, on threads of the library, until Close: through the socket
// owner.sock in the store's directory, the command waybill and others that run as root or as this user
// ask for what only the owner may do. None of them can delay a decision or Close, however it behaves.
//
// ErrConflict: this store serves already. ErrUnsafePath: owner.sock is not a socket of this user,
// and is left alone. ErrInvalidArgument (options), ErrLimitExceeded (the path is too long, and
// /proc is not mounted), ErrNotOwner, ErrOwned, ErrOutcomeUnknown, ErrDiskFull, ErrIO: nothing was
// changed.
func (s *Store) Serve(o ServeOptions) error {
	milliseconds := o.Patience / time.Millisecond
	if o.Patience < 0 || (o.Patience > 0 && milliseconds == 0) || milliseconds > math.MaxUint32 ||
		o.Connections < 0 || o.Connections > math.MaxUint32 {
		return &Error{
			Code:    CodeInvalidArgument,
			Message: fmt.Sprintf("a patience of %v with %d connections is out of range", o.Patience, o.Connections),
		}
	}
	var a arena
	defer a.free()
	c := one[C.waybill_serve_options](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.patience_ms = C.uint32_t(milliseconds)
	c.connections = C.uint32_t(o.Connections)
	return s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_serve(h, c, e) })
}
