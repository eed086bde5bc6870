package leasetable

import (
	"context"
	"slices"
	"sync"
	"time"
)

// timeouts makes contexts with a timeout for statements, of which there are many. context.WithTimeout is more exact,
// but needs a timer for each context, and for a new timer the runtime wakes a thread. With few processors the server
// waits for that thread. Watching the context of the caller costs some of that, too, so timeouts polls it.
type timeouts struct {
	mu      sync.Mutex
	running map[*timeout]struct{} // guarded by mu
	due     bool                  // guarded by mu: a call of look is scheduled
}

// tick is the interval of polling: the end of a context is noticed at most that late.
const tick = 100 * time.Millisecond

// timeout is a context that ends with context.DeadlineExceeded after some time, or with the error of the context of its
// caller, up to two ticks after that has ended.
type timeout struct {
	context.Context //nolint:containedctx // the values of the caller, without its end
	*timeouts
	caller context.Context //nolint:containedctx // polled for its end

	// guarded by mu:
	end   time.Time
	err   error         // nil until it has ended
	ended chan struct{} // nil until Done is called
	funcs []*func()     // called at the end
}

// with makes a context that ends after d, or when the context of the caller ends. It also returns a function that ends
// the context now, which has to be called in the end. If the context of the caller has ended, so has the new one. The
// context of the caller must not be one of ts, because its Err is called under mu.
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

// look ends the contexts whose time is over. It makes a context whose caller has left end at the next tick.
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

// leaver is the context of a caller that may leave. A caller whose deadline has passed has left, too: that must not be
// mistaken for a timeout of the statement.
type leaver struct{ context.Context } //nolint:containedctx // for its end

// Err implements context.Context.
func (l leaver) Err() error {
	if l.Context.Err() != nil {
		return context.Canceled
	}
	return nil
}

// finish ends t, unless it has ended. The caller holds mu.
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

// AfterFunc does what context.AfterFunc does. context.AfterFunc calls it, and so do contexts that are derived from t.
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

// afterFunc is context.AfterFunc, but costs less if ctx is a timeout.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if t, ok := ctx.(*timeout); ok {
		return t.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}
