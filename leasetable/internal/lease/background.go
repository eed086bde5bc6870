package lease

import (
	"context"
	"time"
)

// LingerTime is for how long the answer to a statement may still come after its caller has left.
const LingerTime = 100 * time.Millisecond

// Linger returns a context with the values of ctx that ends some time after ctx has ended, or after d. It does not end
// with the error of ctx. The returned function ends it now.
func Linger(ctx context.Context, d time.Duration) (context.Context, func()) {
	lingering, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(LingerTime, cancel) })
	return lingering, func() {
		stop()
		cancel()
	}
}

// OrLeave has start run f, and returns what f returned (I19). If ctx ends first it reports that, and late gets the
// result of f. On an error f was not run.
func OrLeave[T any](ctx context.Context, start func(func()) error, f func() T, late func(T)) (v T, left bool, err error) {
	done, gone := make(chan T), make(chan struct{})
	err = start(func() {
		v := f()
		select {
		case done <- v:
		case <-gone:
			late(v)
		}
	})
	if err != nil {
		return v, false, err
	}
	select {
	case v = <-done:
		return v, false, nil
	case <-ctx.Done():
		close(gone)
		return v, true, nil
	}
}
