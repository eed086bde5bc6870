package sqllock

import (
	"context"
	"errors"
)

// Do acquires name, calls fn and releases the lock, also when fn panics. It waits for the lock while ctx lives, or for
// as long as [WithWait] allows.
//
// The context given to fn ends when ctx ends or when the lock does; context.Cause then tells which. fn must return soon
// after that: once its lock is lost, another process may be at work.
//
// A transaction that the lock protects begins and ends inside fn. If it is committed after Do has returned, the next holder
// may have read what was there before.
//
// Do returns the error of the acquisition, or the errors of fn and of the release joined. So a nil error means that fn
// ran, succeeded, and held the lock throughout, as far as this process knows.
func Do[L Lock](ctx context.Context, l Acquirer[L], name string, fn func(ctx context.Context) error, opts ...Option) error {
	if fn == nil {
		return noFunction(name)
	}
	return DoWith(ctx, l, name, func(ctx context.Context, _ L) error { return fn(ctx) }, opts...)
}

// noFunction is the error for a nil function. It is returned before the lock is acquired.
func noFunction(name string) error {
	return &OpError{Op: "do", Name: name, Err: errors.New("the function is nil")}
}

// DoWith is [Do] for an fn that uses the lock, for example the token of a lease or its Guard. fn does not release the
// lock; DoWith does.
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

// TryDo is [Do] without the wait: if the lock is held, it does nothing. So of N machines that start a job at the same
// time, one runs it. TryDo reports whether it called fn. A held lock is not an error: TryDo then returns false and nil.
func TryDo[L Lock](ctx context.Context, l Acquirer[L], name string, fn func(ctx context.Context) error, opts ...Option) (ran bool, err error) {
	if fn == nil {
		return false, noFunction(name)
	}
	return TryDoWith(ctx, l, name, func(ctx context.Context, _ L) error { return fn(ctx) }, opts...)
}

// TryDoWith is [TryDo] for an fn that uses the lock, as [DoWith] is for [Do].
func TryDoWith[L Lock](
	ctx context.Context, l Acquirer[L], name string, fn func(ctx context.Context, lock L) error, opts ...Option,
) (ran bool, err error) {
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
	return true, run(ctx, lock, fn)
}

// run calls fn with the held lock and releases the lock.
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

// told reports whether err already contains the error of the release, as when fn returned the cause of its context.
func told(err, released error) bool {
	op, ok := released.(*OpError) //nolint:errorlint // one that is joined with others must not hide them
	return ok && errors.Is(err, op.Err)
}
