package waybill

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"
)

// canceller carries the end of a context to where C looks for it: an int in C memory.
type canceller struct {
	ctx  context.Context
	stop *int32
	off  func() bool
	done chan struct{}
}

// watch fails if ctx is nil or has ended. The canceller is to be ended after the call.
func watch(ctx context.Context) (*canceller, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	c := &canceller{ctx: ctx}
	if ctx.Done() == nil {
		return c, nil
	}
	c.stop = (*int32)(C.malloc(C.size_t(unsafe.Sizeof(int32(0)))))
	c.done = make(chan struct{})
	atomic.StoreInt32(c.stop, 0)
	c.off = context.AfterFunc(ctx, func() {
		atomic.StoreInt32(c.stop, 1)
		close(c.done)
	})
	return c, nil
}

func (c *canceller) progress() (C.waybill_progress, unsafe.Pointer) {
	return C.waybill_go_progress_of((*C.int32_t)(c.stop)), unsafe.Pointer(c.stop)
}

func (c *canceller) end() {
	if c.stop == nil {
		return
	}
	if !c.off() {
		<-c.done
	}
	C.free(unsafe.Pointer(c.stop))
}

// because names the context's cause in an error that its end brought about.
func (c *canceller) because(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Code == CodeInterrupted {
		e.cause = causeOf(c.ctx)
	}
	return err
}

// causeOf is what the context was ended with: for errors.Is also context.Canceled or
// context.DeadlineExceeded, where the caller gave a cause of its own.
func causeOf(ctx context.Context) error {
	cause, err := context.Cause(ctx), ctx.Err()
	if errors.Is(cause, err) {
		return cause
	}
	return errors.Join(cause, err)
}

func alive(ctx context.Context) error {
	if ctx == nil {
		return &Error{Code: CodeInvalidArgument, Message: "the context is nil"}
	}
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		return &Error{
			Code:    CodeInterrupted,
			Message: "nothing was begun: " + cause.Error(),
			cause:   causeOf(ctx),
		}
	}
	return nil
}
