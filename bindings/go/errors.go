package waybill

// #include "shim.h"
import "C"

import (
	"strconv"
	"time"
	"unsafe"
)

// String returns the name that the command line and JSON print: "invalidArgument".
func (c Code) String() string {
	return nameOr(C.waybill_code_name(C.waybill_code(c)), "Code", int64(c))
}

// One for each code, for errors.Is.
var (
	ErrInvalidArgument        error = &Error{Code: CodeInvalidArgument}
	ErrLimitExceeded          error = &Error{Code: CodeLimitExceeded}
	ErrNotFound               error = &Error{Code: CodeNotFound}
	ErrDamaged                error = &Error{Code: CodeDamaged}
	ErrOwned                  error = &Error{Code: CodeOwned}
	ErrNewerSchema            error = &Error{Code: CodeNewerSchema}
	ErrOlderSchema            error = &Error{Code: CodeOlderSchema}
	ErrUnsafePath             error = &Error{Code: CodeUnsafePath}
	ErrStoreFull              error = &Error{Code: CodeStoreFull}
	ErrDiskFull               error = &Error{Code: CodeDiskFull}
	ErrIO                     error = &Error{Code: CodeIO}
	ErrConflict               error = &Error{Code: CodeConflict}
	ErrNotOwner               error = &Error{Code: CodeNotOwner}
	ErrInterrupted            error = &Error{Code: CodeInterrupted}
	ErrOutcomeUnknown         error = &Error{Code: CodeOutcomeUnknown}
	ErrCredentialsUnavailable error = &Error{Code: CodeCredentialsUnavailable}
	ErrUnavailable            error = &Error{Code: CodeUnavailable}
	ErrClosed                 error = &Error{Code: CodeClosed}
	ErrOutOfMemory            error = &Error{Code: CodeOutOfMemory}
	ErrInternal               error = &Error{Code: CodeInternal}
)

// Error is the error of every function of this package.
type Error struct {
	Code    Code
	Message string // what failed, on which path or key, what was left unchanged
	Hint    string // what to do next; may be empty
	// HintCode is what to do next, if that is a call of this package. Hint then has its text.
	HintCode Hint
	// How long until the same call can succeed; 0: unknown. Only [StreamingStore.Prepare] sets it.
	RetryAfter time.Duration

	cause error
}

// Error returns "message; hint", for a log line.
func (e *Error) Error() string {
	switch {
	case e.Message == "" && e.Hint == "":
		return "waybill: " + e.Code.String()
	case e.Hint == "":
		return e.Message
	default:
		return e.Message + "; " + e.Hint
	}
}

// Is says whether target is an *Error of the same code, such as [ErrNotFound].
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t != nil && t.Code == e.Code && (t.Message == "" || t.Message == e.Message)
}

// Unwrap returns why the context ended, if that caused CodeInterrupted: errors.Is finds context.Cause
// and context.Canceled or context.DeadlineExceeded.
func (e *Error) Unwrap() error { return e.cause }

// takeError converts the error that a call returned, and frees it.
func takeError(code C.waybill_code, e *C.waybill_error) error {
	if code == C.WAYBILL_OK {
		return nil
	}
	err := &Error{Code: Code(code)}
	if e != nil {
		err.Message = goString(e.message)
		err.HintCode = Hint(e.hint_code)
		err.RetryAfter = time.Duration(e.retry_after_ns)
		if err.Hint = err.HintCode.String(); err.Hint == "" {
			err.Hint = goString(e.hint)
		}
		C.waybill_free(unsafe.Pointer(e))
	}
	return err
}

func errClosed() error {
	return &Error{Code: CodeClosed, Message: "the store was never opened"}
}

// nameOr returns a name, which lives for ever in the library, or kind(number) if it is empty.
func nameOr(name C.waybill_string, kind string, number int64) string {
	if name.length == 0 {
		return kind + "(" + strconv.FormatInt(number, 10) + ")"
	}
	return unsafe.String((*byte)(unsafe.Pointer(name.data)), int(name.length))
}
