// Package bound is about contexts that end for more than one reason.
package bound

import (
	"context"
	"time"
)

// By makes a context that also ends, with closing's cause, when closing does.
func By(ctx, closing context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if closing.Err() != nil {
		cancel(context.Cause(closing))
	}
	stop := context.AfterFunc(closing, func() { cancel(context.Cause(closing)) })
	return ctx, func() { stop(); cancel(nil) }
}

// Ended reports whether ctx has ended. A driver can notice a deadline before ctx itself does.
func Ended(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}
