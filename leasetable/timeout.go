package leasetable

import (
	"context"
	"slices"
	"sync"
	"time"
)

// timeouts makes contexts that end after some time, for statements of which there are many. context.WithTimeout is more
// exact, but has a timer for each, and for a new one the runtime wakes a thread: where processors are few, the server waits
// for that one. To be told of the end of another context costs some of that, too, so it is looked at now and then.
type timeouts struct {
	mu      sync.Mutex
	running map[*timeout]struct{} // guarded by mu
	due     bool                  // guarded by mu: look is to be called
}

// tick is how much too late at most it is seen that a context is to end.
const tick = 100 * time.Millisecond

// timeout is a context that ends with context.DeadlineExceeded after some time, or as its caller's, up to two ticks after that.
type timeout struct {
	context.Context //nolint:containedctx // that of its caller without an end
	*timeouts
	caller context.Context //nolint:containedctx // for its end

	// guarded by mu:
	end   time.Time
	err   error         // it has ended
	ended chan struct{} // nil until it is asked for
	funcs []*func()     // to be called at the end
}

// with makes a context that ends after d or its caller's, and what ends it now, which is to be called at last. It has ended if its caller's has.
// The caller's is none of ts, whose end is looked at under mu.
func (ts *timeouts) with(caller context.Context, d time.Duration) (context.Context, func()) {
	t := &timeout{Context: context.WithoutCancel(caller), timeouts: ts, caller: caller, end: time.Now().Add(d)}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t.err = caller.Err(); t.err != nil {
		return t, func() {}
	}
	if ts.running == nil {
		ts.running = make(map[*timeout]struct{})
	}
	ts.running[t] = struct{}{}
	if !ts.due {
		ts.due = true
		time.AfterFunc(tick, ts.look)
	}
	return t, func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		t.finish(context.Canceled)
	}
}

// look ends the contexts whose time is over, and has those end the next time whose callers have left.
func (ts *timeouts) look() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := time.Now()
	for t := range ts.running {
		left := t.caller.Err()
		switch {
		case now.After(t.end) && left != nil:
			t.finish(left)
		case now.After(t.end):
			t.finish(context.DeadlineExceeded)
		case left != nil:
			t.end = now
		}
	}
	if ts.due = len(ts.running) > 0; ts.due {
		time.AfterFunc(tick, ts.look)
	}
}

// leaver is a caller who may leave. One whose deadline has passed has left, too: that is not to be taken for a statement's timeout.
type leaver struct{ context.Context } //nolint:containedctx // for its end

// Err implements context.Context.
func (l leaver) Err() error {
	if l.Context.Err() != nil {
		return context.Canceled
	}
	return nil
}

// finish ends t, if it has not ended. The caller has mu.
func (t *timeout) finish(err error) {
	if t.err != nil {
		return
	}
	t.err = err
	delete(t.running, t)
	if t.ended != nil {
		close(t.ended)
	}
	for _, f := range t.funcs {
		go (*f)()
	}
}

// Err implements context.Context.
func (t *timeout) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Done implements context.Context.
func (t *timeout) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		t.ended = make(chan struct{})
		if t.err != nil {
			close(t.ended)
		}
	}
	return t.ended
}

// AfterFunc does what context.AfterFunc does, which calls it, as do contexts that are made of t.
func (t *timeout) AfterFunc(f func()) (stop func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		go f()
		return func() bool { return false }
	}
	t.funcs = append(t.funcs, &f)
	return func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		i := slices.Index(t.funcs, &f)
		if i < 0 || t.err != nil {
			return false
		}
		t.funcs = slices.Delete(t.funcs, i, i+1)
		return true
	}
}

// afterFunc is context.AfterFunc, and costs less if ctx is a timeout.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if t, ok := ctx.(*timeout); ok {
		return t.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}
