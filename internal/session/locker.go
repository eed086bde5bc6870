package session

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
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
	pool[K]
	queue  waitqueue.Queue[K, handoff[K], bool] // a waiter says whether it is for a share
	outage trouble.Trouble                      // of the server

	contended contended[K]

	shares map[K]*share[K] // guarded by pool.mu: shares that are held, or the first to be requested
	queued map[K]*share[K] // guarded by pool.mu: shares that are queued behind a waiter for the exclusive lock
}

// New returns a Locker that has opened nothing yet.
func New[K comparable](config Config[K]) *Locker[K] {
	l := &Locker[K]{
		pool:   pool[K]{Config: config},
		shares: make(map[K]*share[K]),
		queued: make(map[K]*share[K]),
	}
	l.closing, l.close = context.WithCancelCause(context.Background())
	return l
}

// Invalid reports err, of a request that is invalid, as a failed acquisition, and returns it.
func (l *Locker[K]) Invalid(ctx context.Context, name string, err error) error {
	l.Events.Asked(ctx, observe.Request{Name: name, Began: time.Now()}, nil, err)
	return err
}

// TryAcquire acquires w if it is free.
func (l *Locker[K]) TryAcquire(ctx context.Context, w Want[K]) (sqllock.Lock, error) {
	asked := &request[K]{l: l, want: w, began: time.Now()}
	defer asked.interrupted(ctx)
	h, err := l.hold(ctx, w, nil)
	return asked.tell(ctx, h, err)
}

// Acquire waits for w, also while the server cannot be used.
func (l *Locker[K]) Acquire(ctx context.Context, w Want[K]) (sqllock.Lock, error) {
	asked := &request[K]{l: l, want: w, began: time.Now()}
	defer asked.interrupted(ctx)
	h, err := waiting.AtMost(ctx, w.Wait,
		func(ctx context.Context) (*hold.Hold, error) { return l.hold(ctx, w, nil) },
		func(ctx context.Context) (*hold.Hold, error) { return l.hold(ctx, w, asked) })
	return asked.tell(ctx, h, err)
}

// hold acquires w, or a share of it. It waits if there is a request to tell of the wait.
func (l *Locker[K]) hold(ctx context.Context, w Want[K], asked *request[K]) (*hold.Hold, error) {
	if w.Shared {
		return l.share(ctx, w, asked)
	}
	var lock *lock[K]
	var err error
	if asked == nil {
		lock, err = l.acquireFree(ctx, w)
	} else {
		lock, err = l.acquireQueued(ctx, w, asked)
	}
	if err != nil {
		return nil, err
	}
	return lock.Hold, nil
}

// Remaining implements event.Holds.
func (l *Locker[K]) Remaining() (left time.Duration, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sessions {
		if sure, holds := s.remaining(); holds && (!held || sure < left) {
			left, held = sure, true
		}
	}
	return left, held
}

// Close ends every session. The context of every lock still held ends with ErrClosed, the server frees the locks, and
// calls under way fail with ErrClosed. Close returns when all connections are closed.
func (l *Locker[K]) Close() {
	l.close(sqllock.ErrClosed)
	l.mu.Lock()
	for _, s := range l.sessions {
		s.stop()
	}
	for _, p := range l.parked {
		p.timer.Stop()
	}
	l.mu.Unlock()
	l.running.Wait()
}
