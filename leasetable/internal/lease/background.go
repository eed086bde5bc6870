package lease

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
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

// OrLeave has start run f, and returns what f returned (I19). If ctx ends first it reports that, with the cause, and what f
// returned goes to late, unless that is nil. If start fails, the Locker is closed and f runs inline: it fails at once, since the
// contexts of its statements have ended. If a driver ends the goroutine of f, the error of f is dberr.ErrUnreturned.
func OrLeave[T any](
	ctx context.Context, start func(func()) error, f func() (T, error), late func(T, error),
) (v T, left bool, err error) {
	var got T
	var failed error
	done, gone := make(chan struct{}), make(chan struct{})
	closed := start(func() {
		failed = dberr.ErrUnreturned
		defer func() {
			select {
			case done <- struct{}{}:
			case <-gone:
				if late != nil {
					late(got, failed)
				}
			}
		}()
		got, failed = f()
	})
	if closed != nil {
		v, err = f()
		return v, false, err
	}
	select {
	case <-done:
		return got, false, failed
	case <-ctx.Done():
		close(gone)
		return v, true, context.Cause(ctx)
	}
}

// survive runs f in another goroutine and returns its error, dberr.ErrUnreturned if a driver ends that goroutine. It is for
// goroutines that have to go on.
func (r *runner) survive(f func() error) error {
	_, _, err := OrLeave(context.Background(), r.Start, func() (none struct{}, err error) { return none, f() }, nil)
	return err
}
