package waybill

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"
)

// canceller tells C that a context has ended, by an int in C memory.
type canceller struct {
	ctx  context.Context
	stop *int32
	off  func() bool
	done chan struct{}
}

// watch fails if ctx is nil or has ended. Call end after the call that it watches.
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

// because adds the context's cause to an error that the end of the context caused.
func (c *canceller) because(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Code == CodeInterrupted {
		e.cause = causeOf(c.ctx)
	}
	return err
}

// causeOf returns why the context ended. If the caller gave a cause of its own, errors.Is also finds
// context.Canceled or context.DeadlineExceeded.
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
