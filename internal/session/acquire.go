package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/hold"
)

// lock is a lock on a session, or one that may still be granted.
type lock[K comparable] struct {
	*hold.Hold
	l    *Locker[K]
	want Want[K]
	s    *session[K]

	since  time.Time // when the server granted the key to this process
	passes int       // the number of handoffs since
}

func newLock[K comparable](ctx context.Context, l *Locker[K], w Want[K], s *session[K], since time.Time) *lock[K] {
	lock := &lock[K]{l: l, want: w, s: s, since: since}
	lock.Hold = hold.New(ctx, w.Name, lock)
	return lock
}

// acquireFree acquires w if it is free and the wait queue of its key is empty (I2). Otherwise the error names the
// holder, if the server tells.
func (l *Locker[K]) acquireFree(ctx context.Context, w Want[K]) (*lock[K], error) {
	if err := l.ended(ctx); err != nil {
		return nil, err
	}
	if !l.queue.Try(w.Key) {
		return nil, l.heldHere(w)
	}
	lock, err := l.tryAtHead(ctx, w)
	if lock != nil || err != nil {
		return lock, err
	}
	if w.Probe { // nobody sees who it is, and the server would read all its locks
		return nil, &sqllock.HeldError{Name: w.Name}
	}
	holder, err := l.holder(ctx, w.Key) // after an error, the lock is held all the same
	if errors.Is(err, sqllock.ErrClosed) {
		return nil, sqllock.ErrClosed
	}
	return nil, &sqllock.HeldError{Name: w.Name, Holder: holder}
}

// tryAtHead is try for the head of the wait queue of w's key. It leaves the queue unless it returns a lock.
func (l *Locker[K]) tryAtHead(ctx context.Context, w Want[K]) (got *lock[K], err error) {
	defer func() {
		if got == nil { // also when user code panics
			l.queue.Done(w.Key)
		}
	}()
	return l.try(ctx, w)
}

// try tries for w on a shared session, and on another one if that ends or is full by then. It returns neither lock nor
// error when somebody else holds w.
func (l *Locker[K]) try(ctx context.Context, w Want[K]) (*lock[K], error) {
	var r retry
	for {
		s, err := l.sharedSession(ctx)
		if err != nil {
			return nil, err
		}
		c := &call[K]{op: w.take(), lock: newLock(ctx, l, w, s, time.Now())}
		if err = s.do(ctx, c); errors.Is(err, errFull) {
			continue
		}
		if err == nil && c.refused == nil {
			l.outage.Over()
		}
		switch {
		case err == nil && c.op.Done:
			return c.lock, nil
		case err == nil:
			return nil, c.refused
		}
		if err := r.after(ctx, err); err != nil {
			return nil, err
		}
	}
}

// acquireQueued waits in the queue of w's key and then, at its head, for w (I2). It tells asked, which may be nil, if it
// has to wait.
func (l *Locker[K]) acquireQueued(ctx context.Context, w Want[K], asked *request[K]) (*lock[K], error) {
	if err := l.ended(ctx); err != nil {
		return nil, err
	}
	if l.queue.Try(w.Key) { // the queue is mostly empty
		return l.acquire(ctx, w, handoff[K]{}, asked)
	}
	asked.waits(ctx)
	inLine, cancel := bound.CancelWith(ctx, l.closing)
	defer cancel()
	b, err := l.queue.WaitWith(inLine, w.Key, w.Shared)
	if err != nil {
		return nil, l.leftQueue(ctx, w, l.heldHere(w), err)
	}
	goesOn := false
	defer func() {
		if !goesOn { // also when ctx panics
			l.decline(w.Key, b)
		}
	}()
	if err := l.ended(ctx); err != nil {
		return nil, l.leftQueue(ctx, w, &sqllock.HeldError{Name: w.Name}, err)
	}
	goesOn = true
	return l.acquire(ctx, w, b, asked)
}

// leftQueue returns the error of a caller that left the wait queue: that the lock is held, unless the head of the queue
// waited for the server.
func (l *Locker[K]) leftQueue(ctx context.Context, w Want[K], held *sqllock.HeldError, err error) error {
	if !l.holds(w.Key) && l.outage.Last() != nil && bound.Ended(ctx) {
		return l.outage.With(err)
	}
	return fmt.Errorf("%w: %w", held, err)
}

// acquire acquires w for a caller at the head of its key's wait queue (I45).
func (l *Locker[K]) acquire(ctx context.Context, w Want[K], b handoff[K], asked *request[K]) (got *lock[K], err error) {
	defer func() {
		if got == nil { // also when user code panics
			l.queue.Done(w.Key)
		}
	}()
	if b.s != nil && w.Shared { // the exclusive lock was handed off, and a share is wanted
		give := &call[K]{op: Want[K]{Key: w.Key}.give()}
		if err := b.s.do(context.WithoutCancel(ctx), give); err == nil { // otherwise the key ended with its session
			l.park(b.s)
		}
	} else if b.s != nil {
		lock := newLock(ctx, l, w, b.s, b.since)
		lock.passes = b.passes
		if b.s.isTrusted() && b.s.attach(lock) {
			return lock, nil
		}
		b.s.end(b.s.silence()) // it has ended, or must: nobody here holds its key any more
	}
	wait := &waiter[K]{l: l, want: w, asked: asked, began: time.Now(), held: b.contended}
	return wait.untilTaken(ctx)
}

// waitError returns the error of a wait whose ctx has ended: that the lock is held, if somebody was seen to hold it,
// and otherwise the outage. The driver's error would say only that some context ended.
func (l *Locker[K]) waitError(ctx context.Context, name string, held bool, err error) error {
	switch {
	case held:
		return fmt.Errorf("%w: %w", &sqllock.HeldError{Name: name}, context.Cause(ctx))
	case l.outage.Last() != nil:
		return l.outage.With(context.Cause(ctx))
	}
	return err
}
