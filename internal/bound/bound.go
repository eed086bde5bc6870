// Package bound combines contexts: one that ends for more than one reason, or has the values of another.
package bound

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// CancelWith returns a context like ctx that also ends when closing does, with closing's cause.
func CancelWith(ctx, closing context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if closing.Err() != nil {
		cancel(context.Cause(closing))
	}
	stop := context.AfterFunc(closing, func() { cancel(context.Cause(closing)) })
	return ctx, func() { stop(); cancel(nil) }
}

// WithValuesOf returns a context that ends with life and has the values of both.
func WithValuesOf(life, values context.Context) context.Context { return lifeAndValues{life, values} }

type lifeAndValues struct {
	context.Context                 //nolint:containedctx // for its end
	values          context.Context //nolint:containedctx // for its values
}

// Value implements context.Context. It asks life first: the context package finds the cancellation and its cause by a
// value.
func (c lifeAndValues) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

// Ended reports whether ctx has ended. A driver can notice a deadline before ctx itself does; Ended then waits a moment
// for ctx. No longer: after the clock was set ahead, or the machine was suspended, a time of day can have passed although
// the timer of its context has hours to go.
func Ended(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		for range 2 { // after a stall of the process both timers are over, and ctx ends a little later
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return ctx.Err() != nil
}

// WithCause puts the cause of a context's end before err, which resulted from it. If err says no more than that a
// context has ended, it returns only the cause. If err matches the cause already, it returns err.
func WithCause(cause, err error) error {
	switch {
	case errors.Is(err, cause):
		return err
	case err.Error() == context.Canceled.Error(), err.Error() == context.DeadlineExceeded.Error():
		return cause
	}
	return fmt.Errorf("%w: %w", cause, err)
}
