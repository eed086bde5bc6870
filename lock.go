package sqllock

import "context"

// Lock is an acquired lock.
type Lock interface {
	// Name returns the name that the lock was acquired with.
	Name() string

	// Context is cancelled when the lock ends, for any reason; context.Cause then matches ErrReleased, ErrLost,
	// ErrExpired (a lease) or, if the Locker was closed, ErrClosed. It carries the values, but not the cancellation, of
	// the context that the lock was acquired with.
	Context() context.Context

	// Release gives the lock back. It works with a dead ctx, from which it takes only the values, and returns in
	// bounded time. Calling it again is harmless and returns the same result.
	//
	// It returns nil when the lock was held until now, ErrLost or ErrExpired when it was not, and ErrClosed when Close of
	// its Locker ended it, or has begun to. Any other error means that the server did not confirm the release; each
	// backend documents what then ends the lock. The Context is cancelled in every case.
	Release(ctx context.Context) error
}

// Acquirer acquires locks of type L by name, for [Do] and its variants. Each Locker of this module is one; that of
// leases is an Acquirer[*leasetable.Lease]. Any number of goroutines may call its methods.
type Acquirer[L Lock] interface {
	// TryAcquire acquires name if it is free. Otherwise it fails at once with a *HeldError (errors.Is ErrHeld). It does not
	// wait for the holder, but for the answer of the database: opening a connection may take up to 15 s.
	TryAcquire(ctx context.Context, name string, opts ...Option) (L, error)

	// Acquire waits for name until it is acquired or ctx ends. ctx bounds only the wait, not the life of the lock. When
	// ctx ends, the error matches context.Cause(ctx) and, if the lock was seen to be held, ErrHeld. The Holder of its
	// *HeldError may be empty.
	//
	// Acquire also waits while the database cannot be used, and retries after up to 3 s: the server cannot be reached,
	// restarts, has no connection left, or is a standby or read-only, as in a failover. So with a ctx that does not end
	// it waits for ever for a host that does not exist. The logger (Warn) and the hook (event.Retrying) report it. When
	// ctx ends meanwhile, the error matches the last error of the database instead of ErrHeld. An error that somebody
	// has to repair ends the wait at once, such as a password that the server has never accepted from this Locker, missing tables, a server that is
	// refused for what it is, or, for a session lock, a limit on the number of locks; see IsRetryable. A proxy that
	// answers in place of its server says the same if that passes and if it does not: Acquire waits.
	//
	// After an error the caller holds nothing. If the server may have granted the lock anyway, the Locker releases it in the
	// background; until then others may find it held. The Locker's Close waits for that.
	Acquire(ctx context.Context, name string, opts ...Option) (L, error)
}

// Locker is an Acquirer of locks of any kind: the type to store one in. The Lockers of session locks are Lockers as
// they are; [AnyKind] makes one of another Acquirer.
type Locker = Acquirer[Lock]

// AnyKind makes a Locker of an Acquirer of one specific kind of lock, such as a *leasetable.Locker.
func AnyKind[L Lock](l Acquirer[L]) Locker {
	if same, ok := any(l).(Locker); ok {
		return same
	}
	return anyKind[L]{l}
}

type anyKind[L Lock] struct{ of Acquirer[L] }

// TryAcquire implements Locker.
func (k anyKind[L]) TryAcquire(ctx context.Context, name string, opts ...Option) (Lock, error) {
	return asLock(k.of.TryAcquire(ctx, name, opts...))
}

// Acquire implements Locker.
func (k anyKind[L]) Acquire(ctx context.Context, name string, opts ...Option) (Lock, error) {
	return asLock(k.of.Acquire(ctx, name, opts...))
}

// TryAcquireAll implements batchLocker.
func (k anyKind[L]) TryAcquireAll(ctx context.Context, names []string, opts ...Option) ([]Lock, error) {
	some, err := tryAll(ctx, k.of, names, opts)
	if err != nil {
		return nil, err
	}
	locks := make([]Lock, len(some))
	for i, lock := range some {
		locks[i] = lock
	}
	return locks, nil
}

// asLock keeps a nil pointer from becoming a non-nil Lock.
func asLock[L Lock](lock L, err error) (Lock, error) {
	if err != nil {
		return nil, err
	}
	return lock, nil
}
