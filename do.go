package sqllock

import (
	"context"
	"errors"
)

// Do acquires name, calls fn and releases the lock, also when fn panics. It waits for the lock while ctx lives, or for as long as
// [WithWait] says.
//
// The context given to fn ends when ctx ends or when the lock does, and context.Cause then
// tells which. fn must return soon after that: once its lock is lost, somebody else may be
// at work.
//
// Do returns the error of the acquisition, or the errors of fn and of the release joined. So
// a nil error means that fn ran, succeeded, and held the lock throughout, as far as this process was told.
func Do[L Lock](ctx context.Context, l Acquirer[L], name string, fn func(ctx context.Context) error, opts ...Option) error {
	if fn == nil {
		return noFunction(name)
	}
	return DoWith(ctx, l, name, func(ctx context.Context, _ L) error { return fn(ctx) }, opts...)
}

// noFunction is the error of a call that was given none, before the lock is asked for.
func noFunction(name string) error {
	return &OpError{Op: "do", Name: name, Err: errors.New("the function is nil")}
}

// DoWith is [Do] for an fn that uses the lock: the token of a lease, say, or its Guard. fn does not release it.
func DoWith[L Lock](ctx context.Context, l Acquirer[L], name string, fn func(ctx context.Context, lock L) error, opts ...Option) error {
	if fn == nil {
		return noFunction(name)
	}
	lock, err := l.Acquire(ctx, name, opts...)
	if err != nil {
		return err
	}
	return run(ctx, lock, fn)
}

// TryDo is [Do] if the lock is free, and otherwise does nothing: of N machines that start a job at the same time one runs it. It
// reports whether it called fn. That somebody else holds the lock is no error: then it returns false and nil.
func TryDo[L Lock](ctx context.Context, l Acquirer[L], name string, fn func(ctx context.Context) error, opts ...Option) (ran bool, err error) {
	if fn == nil {
		return false, noFunction(name)
	}
	lock, err := l.TryAcquire(ctx, name, opts...)
	switch {
	case errors.Is(err, ErrHeld):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, run(ctx, lock, func(ctx context.Context, _ L) error { return fn(ctx) })
}

// run calls fn with a lock that is held, and releases it.
func run[L Lock](ctx context.Context, lock L, fn func(ctx context.Context, lock L) error) (err error) { //nolint:contextcheck // also watches the lock's own context
	defer func() {
		if released := lock.Release(ctx); !told(err, released) {
			err = errors.Join(err, released)
		}
	}()

	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	held := lock.Context()
	stop := context.AfterFunc(held, func() { cancel(context.Cause(held)) }) //nolint:contextcheck // ends with the lock
	defer stop()
	return fn(work, lock)
}

// told reports whether err has what a release says, as when fn returned the cause of its context.
func told(err, released error) bool {
	var op *OpError
	return errors.As(released, &op) && errors.Is(err, op.Err)
}
