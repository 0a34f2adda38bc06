package waybill

import "time"

// Error is what a call fails with. Match it with errors.Is and the Err variables.
type Error struct {
	Name         string `json:"-"`       // "NotFound"
	Message      string `json:"message"` // what failed, and what was left unchanged
	Hint         string `json:"hint,omitempty"`
	RetryAfterMS int64  `json:"retryAfterMs,omitempty"` // PrepareStream alone sets it

	cause error
}

// Error returns "message; hint", for a log line.
func (e *Error) Error() string {
	switch {
	case e.Message == "":
		return "waybill: " + e.Name
	case e.Hint == "":
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

// Is compares names.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t != nil && t.Name == e.Name
}

// Unwrap returns what lies behind it, such as why a context ended; nil: nothing more is known.
func (e *Error) Unwrap() error { return e.cause }

// RetryAfter is how long until the same call can succeed; 0: unknown.
func (e *Error) RetryAfter() time.Duration { return time.Duration(e.RetryAfterMS) * time.Millisecond }

// One for each name, for errors.Is.
var (
	ErrInvalidArgument error = &Error{Name: "InvalidArgument"} // the call is wrong; a smaller input does not help
	ErrLimitExceeded   error = &Error{Name: "LimitExceeded"}   // the argument is larger than a bound
	ErrNotFound        error = &Error{Name: "NotFound"}        // certain: nothing has that name
	ErrDamaged         error = &Error{Name: "Damaged"}         // stored bytes do not verify; never read it as NotFound
	ErrOwned           error = &Error{Name: "Owned"}           // another process owns the store, or its files were replaced
	ErrNewerSchema     error = &Error{Name: "NewerSchema"}     // written by a newer waybill
	ErrOlderSchema     error = &Error{Name: "OlderSchema"}     // written by an older one
	ErrUnsafePath      error = &Error{Name: "UnsafePath"}      // owner, mode or type of a path
	ErrStoreFull       error = &Error{Name: "StoreFull"}       // the map is full
	ErrDiskFull        error = &Error{Name: "DiskFull"}
	ErrIO              error = &Error{Name: "Io"}
	ErrConflict        error = &Error{Name: "Conflict"} // a newer state forbids the change
	ErrNotOwner        error = &Error{Name: "NotOwner"} // an observer was asked to change something
	ErrInterrupted     error = &Error{Name: "Interrupted"}
	ErrOutcomeUnknown  error = &Error{Name: "OutcomeUnknown"} // a change may or may not have happened
	ErrUnavailable     error = &Error{Name: "Unavailable"}    // try again
	ErrClosed          error = &Error{Name: "Closed"}
	ErrOutOfMemory     error = &Error{Name: "OutOfMemory"}
	ErrInternal        error = &Error{Name: "Internal"} // a bug
)
