package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
	"github.com/sqllock/sqllock/internal/turn"
)

// Locker takes locks on sessions that open gives it.
type Locker[K comparable] struct {
	open   func(context.Context) (Conn[K], error)
	timing Timing
	limits Limits
	owner  string
	turns  turn.Queue[K, baton[K]]

	closing context.Context //nolint:containedctx // ends, with ErrClosed, when Close is called
	close   context.CancelCauseFunc
	running sync.WaitGroup // sessions, the opening of one, and locks that are given back; added to under mu while open

	mu       sync.Mutex
	sessions map[*session[K]]struct{} // guarded by mu: all
	shared   map[*session[K]]struct{} // guarded by mu: those to try on, and to hold many locks
	front    *session[K]              // guarded by mu: the shared one to try on now; may have ended
	opening  *opening[K]              // guarded by mu: the shared session that is being opened
	apart    int                      // guarded by mu: sessions to wait on, the ones being opened among them
	parked   []*parked[K]             // guarded by mu: sessions apart that nobody uses
}

// New returns a Locker that has opened nothing yet. owner is what the holders call themselves.
func New[K comparable](
	open func(context.Context) (Conn[K], error), timing Timing, limits Limits, owner string,
) *Locker[K] {
	l := &Locker[K]{
		open: open, timing: timing, limits: limits, owner: owner,
		sessions: make(map[*session[K]]struct{}),
		shared:   make(map[*session[K]]struct{}),
	}
	l.closing, l.close = context.WithCancelCause(context.Background())
	return l
}

// TryAcquire takes name, whose key is given, if it is free.
func (l *Locker[K]) TryAcquire(ctx context.Context, name string, key K) (sqllock.Lock, error) {
	if err := l.over(ctx); err != nil {
		return nil, failed(name, err)
	}
	if !l.turns.Try(key) {
		return nil, failed(name, l.heldHere(name, key))
	}
	lock, err := l.try(ctx, name, key)
	if err != nil || lock == nil {
		l.turns.Done(key)
	}
	if err != nil {
		return nil, failed(name, err)
	}
	if lock == nil {
		return nil, failed(name, l.describe(ctx, name, key))
	}
	return lock, nil
}

// Acquire waits for name, whose key is given.
func (l *Locker[K]) Acquire(ctx context.Context, name string, key K) (sqllock.Lock, error) {
	if err := l.over(ctx); err != nil {
		return nil, failed(name, err)
	}
	if l.turns.Try(key) { // seldom is there a line
		return l.acquire(ctx, name, key, baton[K]{})
	}
	inLine, cancel := l.untilClosed(ctx)
	defer cancel()
	b, err := l.turns.Wait(inLine, key)
	if err != nil {
		return nil, failed(name, fmt.Errorf("%w: %w", l.heldHere(name, key), err))
	}
	if err := l.over(ctx); err != nil {
		l.decline(key, b)
		return nil, failed(name, fmt.Errorf("%w: %w", &sqllock.HeldError{Name: name}, err))
	}
	return l.acquire(ctx, name, key, b)
}

// acquire takes a key whose turn is the caller's.
func (l *Locker[K]) acquire(ctx context.Context, name string, key K, b baton[K]) (sqllock.Lock, error) {
	if b.s != nil {
		lock := l.newLock(ctx, name, key, b.s, b.since)
		lock.passes = b.passes
		if b.s.isTrusted() && b.s.attach(lock) {
			return lock, nil
		}
		b.s.tell(l.timing.silence()) // has ended, or must: nobody here has its key any more
	}
	var got *lock[K]
	var err error
	if !b.contended {
		got, err = l.try(ctx, name, key)
	}
	if err == nil && got == nil {
		got, err = l.wait(ctx, name, key)
	}
	if err != nil {
		l.turns.Done(key)
		return nil, failed(name, err)
	}
	return got, nil
}

func (l *Locker[K]) newLock(ctx context.Context, name string, key K, s *session[K], since time.Time) *lock[K] {
	lock := &lock[K]{key: key, s: s, since: since, over: l.turns.Done}
	lock.Hold = hold.New(ctx, name, func(context.Context) error { return l.release(lock) })
	return lock
}

// Use runs f with a connection of the Locker, for what is asked of the server about locks. An
// error of f that did not break the connection costs no lock. f may go on after ctx has ended.
func (l *Locker[K]) Use(ctx context.Context, op, name string, f func(context.Context, Conn[K]) error) error {
	err := l.over(ctx)
	if err == nil {
		err = l.onShared(ctx, func(s *session[K]) error {
			c := &call[K]{}
			c.work = func(ctx context.Context) error {
				if c.refused = f(ctx, s.conn); c.refused != nil && s.conn.Broken(c.refused) {
					return c.refused
				}
				return nil
			}
			if err := s.do(ctx, c); err != nil {
				return err
			}
			return c.refused
		})
	}
	if err != nil {
		return &sqllock.OpError{Op: op, Name: name, Err: err}
	}
	return nil
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
func (l *Locker[K]) over(ctx context.Context) error {
	if l.closing.Err() != nil {
		return sqllock.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// untilClosed makes a context that also ends, with ErrClosed, when the Locker is closed.
func (l *Locker[K]) untilClosed(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.closing, func() { cancel(sqllock.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// describe is the error for a key that somebody else was seen to hold. Who, is worth asking
// for, but nothing to fail for.
func (l *Locker[K]) describe(ctx context.Context, name string, key K) error {
	var holder sqllock.Holder
	err := l.Use(ctx, "inspect", name, func(ctx context.Context, c Conn[K]) (err error) {
		holder, _, err = c.Holder(ctx, key)
		return err
	})
	held := &sqllock.HeldError{Name: name}
	if errors.Is(err, sqllock.ErrClosed) {
		return sqllock.ErrClosed
	}
	if err == nil { // otherwise holder may still be written to
		held.Holder = holder
	}
	return held
}

// heldHere is the error for a key whose turn is taken in this process: one of its goroutines
// holds the lock, or is waiting for it.
func (l *Locker[K]) heldHere(name string, key K) *sqllock.HeldError {
	held := &sqllock.HeldError{Name: name}
	if l.Holds(key) {
		held.Holder = sqllock.Holder{Owner: l.owner, PID: os.Getpid()}
	}
	return held
}

// Holds reports whether a session of this Locker holds key.
func (l *Locker[K]) Holds(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.sessions {
		if s.holds(key) {
			return true
		}
	}
	return false
}

func failed(name string, err error) error {
	return &sqllock.OpError{Op: "acquire", Name: name, Err: err}
}
