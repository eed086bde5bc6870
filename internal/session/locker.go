package session

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/turn"
)

// openTimeout bounds the opening of the shared session, which no single caller's context does.
const openTimeout = 15 * time.Second

// Locker takes locks on sessions that open gives it.
type Locker[K comparable] struct {
	open   func(context.Context) (Conn[K], error)
	timing Timing
	owner  string
	turns  turn.Queue[K]

	closing context.Context //nolint:containedctx // ends, with ErrClosed, when Close is called
	close   context.CancelCauseFunc
	running sync.WaitGroup // sessions, and the opening of one; added to under mu while open

	mu       sync.Mutex
	sessions map[*session[K]]struct{} // guarded by mu
	shared   *session[K]              // guarded by mu: the session to try on; may have ended
	opening  *opening[K]              // guarded by mu: the shared session that is being opened
}

type opening[K comparable] struct {
	done chan struct{}
	s    *session[K] // written before done is closed, as is err
	err  error
}

// New returns a Locker that has opened nothing yet. owner is what the holders call themselves.
func New[K comparable](open func(context.Context) (Conn[K], error), timing Timing, owner string) *Locker[K] {
	l := &Locker[K]{open: open, timing: timing, owner: owner, sessions: make(map[*session[K]]struct{})}
	l.closing, l.close = context.WithCancelCause(context.Background())
	return l
}

// TryAcquire takes name, whose key is given, if it is free.
func (l *Locker[K]) TryAcquire(ctx context.Context, name string, key K) (sqllock.Lock, error) {
	ctx, cancel := l.bound(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return nil, failed(name, context.Cause(ctx))
	}
	if !l.turns.Try(key) {
		return nil, failed(name, l.heldHere(name, key))
	}
	over := sync.OnceFunc(func() { l.turns.Done(key) })
	held := &sqllock.HeldError{Name: name}
	lock, err := l.try(ctx, name, key, over, held)
	if err == nil && lock == nil {
		err = held
	}
	if err != nil {
		over()
		return nil, failed(name, err)
	}
	return lock, nil
}

// Acquire waits for name, whose key is given.
func (l *Locker[K]) Acquire(ctx context.Context, name string, key K) (sqllock.Lock, error) {
	ctx, cancel := l.bound(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return nil, failed(name, context.Cause(ctx))
	}
	if err := l.turns.Wait(ctx, key); err != nil {
		return nil, failed(name, fmt.Errorf("%w: %w", l.heldHere(name, key), err))
	}
	over := sync.OnceFunc(func() { l.turns.Done(key) })
	lock, err := l.try(ctx, name, key, over, nil)
	if err == nil && lock == nil {
		lock, err = l.wait(ctx, name, key, over)
	}
	if err != nil {
		over()
		return nil, failed(name, err)
	}
	return lock, nil
}

// Inspect reports who holds the lock called name, whose key is given, and whether anybody does.
func (l *Locker[K]) Inspect(ctx context.Context, name string, key K) (sqllock.Holder, bool, error) {
	ctx, cancel := l.bound(ctx)
	defer cancel()
	var found struct {
		holder sqllock.Holder
		held   bool
		err    error
	}
	err := l.onShared(ctx, func(s *session[K]) error {
		return s.do(ctx, &call{work: func(ctx context.Context) error {
			found.holder, found.held, found.err = s.conn.Holder(ctx, key)
			return s.onlyBroken(found.err)
		}})
	})
	if err == nil { // otherwise found may still be written to
		err = found.err
	}
	if err != nil {
		return sqllock.Holder{}, false, &sqllock.OpError{Op: "inspect", Name: name, Err: err}
	}
	return found.holder, found.held, nil
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
	l.mu.Unlock()
	l.running.Wait()
}

// bound makes a context that also ends, with ErrClosed, when the Locker is closed.
func (l *Locker[K]) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if l.closing.Err() != nil {
		cancel(sqllock.ErrClosed)
	}
	stop := context.AfterFunc(l.closing, func() { cancel(sqllock.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// heldHere is the error for a key whose turn is taken in this process: one of its goroutines
// holds the lock, or is waiting for it.
func (l *Locker[K]) heldHere(name string, key K) *sqllock.HeldError {
	held := &sqllock.HeldError{Name: name}
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.sessions {
		if s.holds(key) {
			held.Holder = sqllock.Holder{Owner: l.owner, PID: os.Getpid()}
		}
	}
	return held
}

func failed(name string, err error) error {
	return &sqllock.OpError{Op: "acquire", Name: name, Err: err}
}
