package lock

import (
	"context"
	"errors"
	"sync"
)

// idle keeps sessions for reuse: each is used by one caller at a time.
type idle[T any] struct {
	open  func(ctx context.Context) (T, error)
	close func(T) error

	mu   sync.Mutex
	free []T // guarded by mu
}

// take returns a session that nobody uses, the one used last, or a new one.
func (i *idle[T]) take(ctx context.Context) (T, error) {
	i.mu.Lock()
	if n := len(i.free); n > 0 {
		session := i.free[n-1]
		i.free = i.free[:n-1]
		i.mu.Unlock()
		return session, nil
	}
	i.mu.Unlock()
	return i.open(ctx)
}

// give returns a session. After an error it is closed, since nobody knows what it holds.
func (i *idle[T]) give(session T, err error) error {
	if err != nil {
		_ = i.close(session) // the error is told already
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.free = append(i.free, session)
	return nil
}

// Close closes the sessions that nobody uses.
func (i *idle[T]) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var errs []error
	for _, session := range i.free {
		errs = append(errs, i.close(session))
	}
	i.free = nil
	return errors.Join(errs...)
}

// pairs makes a client of sessions and of the statements that take and free a name on one of them.
type pairs[T any] struct {
	*idle[T]
	lock, unlock func(ctx context.Context, session T, name string) error
}

// Acquire implements Client.
func (p pairs[T]) Acquire(ctx context.Context, name string) (Release, error) {
	session, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.lock(ctx, session, name); err != nil {
		return nil, p.give(session, err)
	}
	return func(ctx context.Context) error { return p.give(session, p.unlock(ctx, session, name)) }, nil
}
