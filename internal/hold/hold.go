// Package hold is the part of a held lock that is the same for every backend: its lifetime context, and a Release that
// happens once.
package hold

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
)

// Hold is a lock as its backend sees it. The user gets its Lock.
type Hold struct {
	name    string
	ctx     context.Context //nolint:containedctx // the lock's own lifetime
	cancel  context.CancelCauseFunc
	backend Backend
	watcher func(error)   // may be nil
	unwatch func() bool   // reports whether the watcher will not be called by the end of ctx
	watched chan struct{} // closed when the end of ctx has called the watcher, which has returned
	once    sync.Once
	err     error // the result of release; written inside once
}

// errPanicked is the result of a release that panicked: the lock may be free, or not.
var errPanicked = errors.New("the release was not confirmed: it panicked, or its goroutine ended")

// FreedError is the error of a handover that did not happen, and whose lock was released instead. The watcher is told of a
// release.
type FreedError struct{ Err error }

func (e *FreedError) Error() string { return "released instead: " + e.Err.Error() }

// Unwrap returns why the handover did not happen.
func (e *FreedError) Unwrap() error { return e.Err }

// watcherTimeout is for how long a release waits for the watcher of a lock that has ended before. A watcher may call
// Release, and would wait for itself.
const watcherTimeout = time.Second

// Backend frees a lock in its database.
type Backend interface {
	// Free is called at most once for each Hold, after its context was cancelled, with a context that does not end.
	Free(ctx context.Context) error
}

// Lock returns the lock as the user sees it.
func (h *Hold) Lock() sqllock.Lock { return lock{h} }

// lock has the methods of a sqllock.Lock, and no others.
type lock struct{ hold *Hold }

// Name implements sqllock.Lock.
func (l lock) Name() string { return l.hold.Name() }

// Context implements sqllock.Lock.
func (l lock) Context() context.Context { return l.hold.Context() }

// Release implements sqllock.Lock.
func (l lock) Release(ctx context.Context) error { return l.hold.Release(ctx) }

// New begins the life of a granted lock. ctx is the context of the acquisition: the lock's context has its values, not
// its cancellation.
func New(ctx context.Context, name string, b Backend) *Hold {
	h := &Hold{name: name, backend: b}
	h.ctx, h.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return h
}

// Under begins the life of a lock that ends, at the latest, with parent; see New.
func Under(ctx, parent context.Context, name string, b Backend) *Hold {
	h := &Hold{name: name, backend: b}
	h.ctx, h.cancel = context.WithCancelCause(bound.WithValuesOf(parent, ctx))
	return h
}

// Name implements sqllock.Lock.
func (h *Hold) Name() string { return h.name }

// Context implements sqllock.Lock.
func (h *Hold) Context() context.Context { return h.ctx }

// End ends the lock's context. The first cause stays.
func (h *Hold) End(cause error) { h.cancel(cause) }

// Watch has f called once when the lock has ended, after the lock's context: with nil if the lock was held until its
// release, otherwise with the reason. Watch is called before the holder has the lock.
func (h *Hold) Watch(f func(err error)) {
	h.watcher, h.watched = f, make(chan struct{})
	h.unwatch = context.AfterFunc(h.ctx, func() {
		defer close(h.watched)
		if cause := context.Cause(h.ctx); !errors.Is(cause, sqllock.ErrReleased) {
			f(cause)
		}
	})
}

// Release implements sqllock.Lock. It cancels the context before it tells the server, and so before anybody else can
// hold the lock.
func (h *Hold) Release(ctx context.Context) error {
	return h.finish(ctx, "release", sqllock.ErrReleased, h.backend.Free)
}

// HandOver ends the lock as Release does, but by f and with a cause of its own, which matches sqllock.ErrReleased
// (I28). From then on Release returns what f returned. If the lock was released before, HandOver does nothing and
// returns false.
func (h *Hold) HandOver(ctx context.Context, op string, cause error, f func(context.Context) error) (done bool, err error) {
	err = h.finish(ctx, op, cause, func(ctx context.Context) error {
		done = true
		return f(ctx)
	})
	return done, err
}

// finish ends the lock by f, once: it cancels the context first (I1).
func (h *Hold) finish(ctx context.Context, op string, cause error, f func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx) // panics with a nil ctx, before anything has ended
	h.once.Do(func() {
		unwatched := h.unwatch != nil && h.unwatch() // saves a goroutine: the release itself calls the watcher
		h.cancel(cause)
		err := errPanicked
		defer func() { h.finished(op, err, unwatched) }() // also if f panics
		err = f(ctx)
	})
	return h.err
}

// finished records the result of finish and tells the watcher, unless that was told before. It then waits for the watcher:
// the program may end when it has the result of the release, and nobody would learn of the loss.
func (h *Hold) finished(op string, err error, unwatched bool) {
	if err != nil {
		h.err = &sqllock.OpError{Op: op, Name: h.name, Err: err}
	}
	switch ended := context.Cause(h.ctx); {
	case h.watcher == nil:
	case err != nil && errors.Is(ended, sqllock.ErrReleased) && errors.As(err, new(*FreedError)): // As needs an allocation
		h.watcher(nil)
	case errors.Is(ended, sqllock.ErrReleased):
		h.watcher(h.err)
	case unwatched: // it ended since
		h.watcher(ended)
	default:
		timer := time.NewTimer(watcherTimeout)
		defer timer.Stop()
		select {
		case <-h.watched:
		case <-timer.C:
		}
	}
}
