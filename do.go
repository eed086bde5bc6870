package sqllock

import (
	"context"
	"errors"
)

// Do acquires name, calls fn and releases the lock, also when fn panics.
//
// The context given to fn ends when ctx ends or when the lock does, and context.Cause then
// tells which. fn must return soon after that: once its lock is lost, somebody else may be
// at work.
//
// Do returns the error of the acquisition, or the errors of fn and of the release joined. So
// a nil error means that fn ran, succeeded, and held the lock throughout.
func Do(ctx context.Context, l Locker, name string, fn func(ctx context.Context) error, opts ...Option) (err error) { //nolint:contextcheck // also watches the lock's own context
	lock, err := l.Acquire(ctx, name, opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release(ctx)) }()

	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	held := lock.Context()
	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) }) //nolint:contextcheck // ends with the lock
	defer stop()
	return fn(work)
}
