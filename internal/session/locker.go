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
	"github.com/sqllock/sqllock/internal/waiting"
	"github.com/sqllock/sqllock/internal/waitqueue"
)

// Config sets up a Locker for a database.
type Config[K comparable] struct {
	Open   func(context.Context) (Conn[K], error)
	Timing Timing
	Limits Limits
	Owner  string // the name that the holders give themselves
	Events observe.Sink
}

// Locker takes locks on sessions of its own.
type Locker[K comparable] struct {
	Config[K]
	queue  waitqueue.Queue[K, handoff[K]]
	outage trouble.Trouble // of the server

	closing context.Context //nolint:containedctx // ends, with ErrClosed, when Close is called
	close   context.CancelCauseFunc
	running sync.WaitGroup // counts sessions, the opening of one, and locks being given back; added to under mu until Close

	mu        sync.Mutex
	shares    map[K]*share[K]          // guarded by mu: shares that are held, or the first to be requested
	queued    map[K]*share[K]          // guarded by mu: shares that are queued behind a waiter for the exclusive lock
	sessions  map[*session[K]]struct{} // guarded by mu: all sessions
	shared    map[*session[K]]struct{} // guarded by mu: sessions for tries, each of which can hold many locks
	front     *session[K]              // guarded by mu: the shared session for the next try; may have ended
	opening   *opening[K]              // guarded by mu: the shared session that is being opened
	dedicated int                      // guarded by mu: the number of dedicated sessions, including those being opened
	parked    []*parked[K]             // guarded by mu: dedicated sessions that are not in use
	full      time.Time                // guarded by mu: until when no dedicated session is opened
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

// TryAcquire acquires w if it is free.
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

// tryHold acquires w, or a share of it, if it is free.
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

// waitHold waits for w, or a share of it, and reports whether it had to wait.
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

// tell reports the outcome of an acquisition as an event, and returns it as the caller's result.
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

// acquireFree acquires w if it is free and the wait queue of its key is empty.
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

// acquireQueued waits in the queue of w's key and then, at its head, for w. It reports whether it had to wait.
func (l *Locker[K]) acquireQueued(ctx context.Context, w Want[K]) (got *lock[K], waited bool, err error) {
	if err := l.ended(ctx); err != nil {
		return nil, false, err
	}
	if l.queue.Try(w.Key) { // the queue is mostly empty
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

// leftQueue returns the error of a caller that left the wait queue: that the lock is held, unless the head of the queue
// waited for the server.
func (l *Locker[K]) leftQueue(ctx context.Context, w Want[K], held *sqllock.HeldError, err error) error {
	if !l.holds(w.Key) && l.outage.Last() != nil && bound.Ended(ctx) {
		return l.outage.With(err)
	}
	return fmt.Errorf("%w: %w", held, err)
}

// acquire acquires w for a caller at the head of its key's wait queue. It reports whether the caller had to wait.
func (l *Locker[K]) acquire(ctx context.Context, w Want[K], b handoff[K]) (got *lock[K], waited bool, err error) {
	if b.s != nil && w.Shared { // the exclusive lock was handed off, and a share is wanted
		give := &call[K]{op: Want[K]{Key: w.Key}.give()}
		if err := b.s.do(context.WithoutCancel(ctx), give); err == nil { // otherwise the key ended with its session
			l.setFree(b.s)
		}
	} else if b.s != nil {
		lock := l.newLock(ctx, w, b.s, b.since)
		lock.passes = b.passes
		if b.s.isTrusted() && b.s.attach(lock) {
			return lock, false, nil
		}
		b.s.end(l.Timing.silence()) // it has ended, or must: nobody here holds its key any more
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

// Close ends every session. The context of every lock still held ends with ErrClosed, the server frees the locks, and
// calls under way fail with ErrClosed. Close returns when all connections are closed.
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

// ended returns ErrClosed or the cause of ctx if a caller's work must end, and nil otherwise.
func (l *Locker[K]) ended(ctx context.Context) error {
	if l.closing.Err() != nil {
		return sqllock.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
