package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/leasetable/internal/conn"
)

// runner runs the goroutines of a Locker.
type runner struct {
	Closing context.Context //nolint:containedctx // ends, with ErrClosed, when the Locker is closed
	end     context.CancelCauseFunc

	idle    chan func()  // idle goroutines receive from it
	resting atomic.Int32 // how many goroutines are idle

	starting sync.Mutex
	running  sync.WaitGroup // added to under starting, while Closing has not ended
}

func newRunner() *runner {
	r := &runner{idle: make(chan func())}
	r.Closing, r.end = context.WithCancelCause(context.Background())
	return r
}

// stop has no other goroutine start.
func (r *runner) stop() {
	r.starting.Lock()
	defer r.starting.Unlock()
	r.end(sqllock.ErrClosed)
}

// Bound returns a context that also ends, with ErrClosed, when the Locker is closed.
func (r *runner) Bound(ctx context.Context) (context.Context, func()) {
	return bound.CancelWith(ctx, r.Closing)
}

// untilClosed returns a context that ends conn.CloseTimeout after Close has begun.
func (r *runner) untilClosed() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(r.Closing, func() { time.AfterFunc(conn.CloseTimeout, cancel) })
	return ctx, func() { stop(); cancel() }
}

// Hand runs f, which ends soon, in an idle goroutine, and if there is none in a new one. A new goroutine begins with a
// small stack. To grow it in a driver costs more than the rest of a claim.
func (r *runner) Hand(f func()) error {
	select {
	case r.idle <- f:
		return nil
	default:
	}
	return r.Start(func() {
		f()
		defer r.resting.Add(-1)
		for int(r.resting.Add(1)) <= int(conn.DefaultLimit) {
			select {
			case f = <-r.idle:
			case <-r.Closing.Done():
				return
			}
			r.resting.Add(-1)
			f()
		}
	})
}

// Start runs f in a goroutine, and Close waits for it. If the Locker is closed it returns ErrClosed.
func (r *runner) Start(f func()) error {
	r.starting.Lock()
	defer r.starting.Unlock()
	if r.Closing.Err() != nil {
		return sqllock.ErrClosed
	}
	r.running.Go(f)
	return nil
}
