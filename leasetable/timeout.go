package leasetable

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// timeouts makes contexts that end after some time, for statements of which there are many. context.WithTimeout is more
// exact, but has a timer for each, and for a new one the runtime wakes a thread: where processors are few, the server waits
// for that one.
type timeouts struct {
	mu      sync.Mutex
	running map[*timeout]struct{} // guarded by mu
	due     bool                  // guarded by mu: look is to be called
}

// tick is how much too late a context ends at most.
const tick = 100 * time.Millisecond

// timeout is a context that ends with context.DeadlineExceeded, unless it is cancelled before. One that is made of it ends
// with that as its cause.
type timeout struct {
	context.Context //nolint:containedctx // can be cancelled
	cancel          context.CancelCauseFunc
	end             time.Time
	passed          atomic.Bool
}

// Err implements context.Context.
func (t *timeout) Err() error {
	err := t.Context.Err()
	if err != nil && t.passed.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// with makes a context that ends after d, and what ends it now, which is to be called at last.
func (ts *timeouts) with(ctx context.Context, d time.Duration) (context.Context, func()) {
	t := &timeout{end: time.Now().Add(d)}
	t.Context, t.cancel = context.WithCancelCause(ctx)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.running == nil {
		ts.running = make(map[*timeout]struct{})
	}
	ts.running[t] = struct{}{}
	if !ts.due {
		ts.due = true
		time.AfterFunc(tick, ts.look)
	}
	return t, func() {
		t.cancel(nil)
		ts.mu.Lock()
		defer ts.mu.Unlock()
		delete(ts.running, t)
	}
}

// look ends the contexts whose time is over.
func (ts *timeouts) look() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := time.Now()
	for t := range ts.running {
		if now.After(t.end) {
			t.passed.Store(true)
			t.cancel(context.DeadlineExceeded)
		}
	}
	if ts.due = len(ts.running) > 0; ts.due {
		time.AfterFunc(tick, ts.look)
	}
}
