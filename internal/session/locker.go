package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/hold"
	"github.com/sqllock/sqllock/internal/observe"
	"github.com/sqllock/sqllock/internal/trouble"
	"github.com/sqllock/sqllock/internal/waitqueue"
	"github.com/sqllock/sqllock/internal/waiting"
)

// Config is what a database sets up a Locker with.
type Config[K comparable] struct {
	Open   func(context.Context) (Conn[K], error)
	Timing Timing
	Limits Limits
	Owner  string // what the holders call themselves
	Events observe.Sink
}

// Locker takes locks on sessions of its own.
type Locker[K comparable] struct {
	Config[K]
	queue waitqueue.Queue[K, handoff[K]]
	outage   trouble.Trouble // with the server

	closing context.Context //nolint:containedctx // ends, with ErrClosed, when Close is called
	close   context.CancelCauseFunc
	running sync.WaitGroup // sessions, the opening of one, and locks that are given back; added to under mu while open

	mu       sync.Mutex
	shares   map[K]*share[K]          // guarded by mu: those that are held, or the first to be asked for
	queued   map[K]*share[K]          // guarded by mu: those that are to come after a whole lock, which somebody waits for
	sessions map[*session[K]]struct{} // guarded by mu: all
	shared   map[*session[K]]struct{} // guarded by mu: those to try on, and to hold many locks
	front    *session[K]              // guarded by mu: the shared one to try on now; may have ended
	opening  *opening[K]              // guarded by mu: the shared session that is being opened
	dedicated    int                      // guarded by mu: sessions to wait on, the ones being opened among them
	parked   []*parked[K]             // guarded by mu: sessions apart that nobody uses
	full     time.Time                // guarded by mu: until when no session apart is opened
}

// New returns a Locker that has opened nothing yet.
func New[K comparable](config Config[K]) *Locker[K] {
	l := &Locker[K]{
		Config:   config,
		shares:   make(map[K]*share[K]),
		queued:   make(map[K]*share[K]),
		sessions: make(map[*session[K]]struct{}),
		shared:   make(map[*session[K]]struct{}),
	}
	l.closing, l.close = context.WithCancelCause(context.Background())
	return l
}

// TryAcquire takes w if it is free.
func (l *Locker[K]) TryAcquire(ctx context.Context, w Want[K]) (sqllock.Lock, error) {
	began := time.Now()
	h, err := l.tryHold(ctx, w)
	return l.tell(ctx, w, began, false, h, err)
}

// Acquire waits for w, also while the server cannot be used.
func (l *Locker[K]) Acquire(ctx context.Context, w Want[K]) (sqllock.Lock, error) {
	began := time.Now()
	waited := false
	h, err := waiting.AtMost(ctx, w.Wait,
		func(ctx context.Context) (*hold.Hold, error) { return l.tryHold(ctx, w) },
		func(ctx context.Context) (h *hold.Hold, err error) {
			h, waited, err = l.waitHold(ctx, w)
			return h, err
		})
	return l.tell(ctx, w, began, waited, h, err)
}

// tryHold takes w, or a share of it, if it is free.
func (l *Locker[K]) tryHold(ctx context.Context, w Want[K]) (*hold.Hold, error) {
	if w.Shared {
		h, _, err := l.share(ctx, w, false)
		return h, err
	}
	lock, err := l.acquireFree(ctx, w)
	if err != nil {
		return nil, err
	}
	return lock.Hold, nil
}

// waitHold waits for w, or a share of it, and reports whether it had to.
func (l *Locker[K]) waitHold(ctx context.Context, w Want[K]) (*hold.Hold, bool, error) {
	if w.Shared {
		return l.share(ctx, w, true)
	}
	lock, waited, err := l.acquireQueued(ctx, w)
	if err != nil {
		return nil, waited, err
	}
	return lock.Hold, waited, nil
}

// tell makes what was acquired, or not, an event and a result.
func (l *Locker[K]) tell(ctx context.Context, w Want[K], began time.Time, waited bool, h *hold.Hold, err error) (sqllock.Lock, error) {
	if err != nil {
		err = &sqllock.OpError{Op: "acquire", Name: w.Name, Err: err}
	}
	if !w.Probe || !errors.Is(err, sqllock.ErrHeld) {
		l.Events.Asked(ctx, w.Name, began, waited, h, err)
	}
	if err != nil {
		return nil, err
	}
	return h.Lock(), nil
}

// tryTurn takes w, and the turn of its key, if both are free.
func (l *Locker[K]) acquireFree(ctx context.Context, w Want[K]) (*lock[K], error) {
	if err := l.ended(ctx); err != nil {
		return nil, err
	}
	if !l.queue.Try(w.Key) {
		return nil, l.heldHere(w)
	}
	lock, err := l.try(ctx, w)
	switch {
	case err != nil:
		l.queue.Done(w.Key)
		return nil, err
	case lock == nil:
		l.queue.Done(w.Key)
		return nil, l.describe(ctx, w)
	}
	return lock, nil
}

// waitTurn waits for the turn of w's key, and then for w. It reports whether it had to.
func (l *Locker[K]) acquireQueued(ctx context.Context, w Want[K]) (got *lock[K], waited bool, err error) {
	if err := l.ended(ctx); err != nil {
		return nil, false, err
	}
	if l.queue.Try(w.Key) { // seldom is there a line
		return l.acquire(ctx, w, handoff[K]{})
	}
	inLine, cancel := bound.CancelWith(ctx, l.closing)
	defer cancel()
	b, err := l.queue.Wait(inLine, w.Key)
	if err != nil {
		return nil, true, l.leftQueue(ctx, w, l.heldHere(w), err)
	}
	if err := l.ended(ctx); err != nil {
		l.decline(w.Key, b)
		return nil, true, l.leftQueue(ctx, w, &sqllock.HeldError{Name: w.Name}, err)
	}
	got, _, err = l.acquire(ctx, w, b)
	return got, true, err
}

// leftInLine is the error of a caller who left the line: that the lock is held, unless the one who had the turn waited for the server.
func (l *Locker[K]) leftQueue(ctx context.Context, w Want[K], held *sqllock.HeldError, err error) error {
	if !l.holds(w.Key) && l.outage.Last() != nil && bound.Ended(ctx) {
		return l.outage.With(err)
	}
	return fmt.Errorf("%w: %w", held, err)
}

// acquire takes a key whose turn is the caller's. It reports whether it had to wait.
func (l *Locker[K]) acquire(ctx context.Context, w Want[K], b handoff[K]) (got *lock[K], waited bool, err error) {
	if b.s != nil && w.Shared { // what came is more than what is wanted
		give := &call[K]{op: Want[K]{Key: w.Key}.give()}
		if err := b.s.do(context.WithoutCancel(ctx), give); err == nil { // otherwise it ended with its session
			l.setFree(b.s)
		}
	} else if b.s != nil {
		lock := l.newLock(ctx, w, b.s, b.since)
		lock.passes = b.passes
		if b.s.isTrusted() && b.s.attach(lock) {
			return lock, false, nil
		}
		b.s.end(l.Timing.silence()) // has ended, or must: nobody here has its key any more
	}
	if got, waited, err = l.untilTaken(ctx, w, b.contended); err != nil {
		l.queue.Done(w.Key)
	}
	return got, waited, err
}

func (l *Locker[K]) newLock(ctx context.Context, w Want[K], s *session[K], since time.Time) *lock[K] {
	lock := &lock[K]{want: w, s: s, since: since, leaveQueue: l.queue.Done}
	lock.Hold = hold.New(ctx, w.Name, func(context.Context) error { return l.release(lock) })
	return lock
}

// Close ends every session. The context of every lock still held ends with ErrClosed, the
// server frees the locks, and calls under way fail with ErrClosed. It returns when all
// connections are closed.
func (l *Locker[K]) Close() {
	l.close(sqllock.ErrClosed)
	l.mu.Lock()
	for s := range l.sessions {
		s.stop()
	}
	for _, p := range l.parked {
		p.timer.Stop()
	}
	l.mu.Unlock()
	l.running.Wait()
}

// over returns why nothing more is to be done for a caller.
func (l *Locker[K]) ended(ctx context.Context) error {
	if l.closing.Err() != nil {
		return sqllock.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
