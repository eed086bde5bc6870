// Package bound is about contexts that end for more than one reason.
package bound

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// By makes a context that also ends, with closing's cause, when closing does.
func CancelWith(ctx, closing context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if closing.Err() != nil {
		cancel(context.Cause(closing))
	}
	stop := context.AfterFunc(closing, func() { cancel(context.Cause(closing)) })
	return ctx, func() { stop(); cancel(nil) }
}

// To makes a context that ends with life, and has the values of both.
func WithValuesOf(life, values context.Context) context.Context { return lifeAndValues{life, values} }

type lifeAndValues struct {
	context.Context                 //nolint:containedctx // for its end
	values          context.Context //nolint:containedctx // for its values
}

// Value implements context.Context. The first is asked first: it is the one that tells its end.
func (c lifeAndValues) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

// Ended reports whether ctx has ended. A driver can notice a deadline before ctx itself does.
func Ended(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// WithCause puts the cause of a context's end before an error that came of it, unless that says no more than that a context has ended.
func WithCause(cause, err error) error {
	switch {
	case errors.Is(err, cause):
		return err
	case err.Error() == context.Canceled.Error(), err.Error() == context.DeadlineExceeded.Error():
		return cause
	}
	return fmt.Errorf("%w: %w", cause, err)
}
