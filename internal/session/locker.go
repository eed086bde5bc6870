package session

import (
	"context"
	"fmt"
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
	shares   map[K]*share[K]          // guarded by mu: those that may be joined
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
		shares:   make(map[K]*share[K]),
		sessions: make(map[*session[K]]struct{}),
		shared:   make(map[*session[K]]struct{}),
	}
	l.closing, l.close = context.WithCancelCause(context.Background())
	return l
}

// TryAcquire takes w if it is free.
func (l *Locker[K]) TryAcquire(ctx context.Context, w Want[K]) (sqllock.Lock, error) {
	if w.Shared {
		return l.share(ctx, w, false)
	}
	return l.tryTurn(ctx, w)
}

// Acquire waits for w.
func (l *Locker[K]) Acquire(ctx context.Context, w Want[K]) (sqllock.Lock, error) {
	if w.Shared {
		return l.share(ctx, w, true)
	}
	return l.waitTurn(ctx, w)
}

// tryTurn takes w, and the turn of its key, if both are free.
func (l *Locker[K]) tryTurn(ctx context.Context, w Want[K]) (sqllock.Lock, error) {
	if err := l.over(ctx); err != nil {
		return nil, failed(w.Name, err)
	}
	if !l.turns.Try(w.Key) {
		return nil, failed(w.Name, l.heldHere(w))
	}
	lock, err := l.try(ctx, w)
	if err != nil || lock == nil {
		l.turns.Done(w.Key)
	}
	if err != nil {
		return nil, failed(w.Name, err)
	}
	if lock == nil {
		return nil, failed(w.Name, l.describe(ctx, w))
	}
	return lock, nil
}

// waitTurn waits for the turn of w's key, and then for w.
func (l *Locker[K]) waitTurn(ctx context.Context, w Want[K]) (sqllock.Lock, error) {
	if err := l.over(ctx); err != nil {
		return nil, failed(w.Name, err)
	}
	if l.turns.Try(w.Key) { // seldom is there a line
		return l.acquire(ctx, w, baton[K]{})
	}
	inLine, cancel := l.untilClosed(ctx)
	defer cancel()
	b, err := l.turns.Wait(inLine, w.Key)
	if err != nil {
		return nil, failed(w.Name, fmt.Errorf("%w: %w", l.heldHere(w), err))
	}
	if err := l.over(ctx); err != nil {
		l.decline(w.Key, b)
		return nil, failed(w.Name, fmt.Errorf("%w: %w", &sqllock.HeldError{Name: w.Name}, err))
	}
	return l.acquire(ctx, w, b)
}

// acquire takes a key whose turn is the caller's.
func (l *Locker[K]) acquire(ctx context.Context, w Want[K], b baton[K]) (sqllock.Lock, error) {
	if b.s != nil && w.Shared { // what came is more than what is wanted
		give := &call[K]{op: Want[K]{Key: w.Key}.give()}
		if err := b.s.do(context.Background(), give); err == nil { // otherwise it ended with its session
			l.setFree(b.s)
		}
	} else if b.s != nil {
		lock := l.newLock(ctx, w, b.s, b.since)
		lock.passes = b.passes
		if b.s.isTrusted() && b.s.attach(lock) {
			return lock, nil
		}
		b.s.tell(l.timing.silence()) // has ended, or must: nobody here has its key any more
	}
	var got *lock[K]
	var err error
	if !b.contended {
		got, err = l.try(ctx, w)
	}
	if err == nil && got == nil {
		got, err = l.wait(ctx, w)
	}
	if err != nil {
		l.turns.Done(w.Key)
		return nil, failed(w.Name, err)
	}
	return got, nil
}

func (l *Locker[K]) newLock(ctx context.Context, w Want[K], s *session[K], since time.Time) *lock[K] {
	lock := &lock[K]{want: w, s: s, since: since, over: l.turns.Done}
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

func failed(name string, err error) error {
	return &sqllock.OpError{Op: "acquire", Name: name, Err: err}
}
