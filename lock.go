package sqllock

import "context"

// Lock is one lock that was acquired.
type Lock interface {
	// Name is the name the lock was acquired under.
	Name() string

	// Context is cancelled when the lock ends, for any reason; context.Cause then matches
	// ErrReleased, ErrLost or ErrExpired. It carries the values, but not the cancellation,
	// of the context that the lock was acquired with.
	Context() context.Context

	// Release gives the lock back. It works with a dead ctx, of which it takes the values
	// only, and returns in bounded time. Calling it again is harmless and returns the same.
	//
	// It returns nil when the lock was held until now, and ErrLost or ErrExpired when it was
	// not. Any other error means that the server did not confirm; each backend says what
	// then ends the lock. The Context is cancelled in every case.
	Release(ctx context.Context) error
}

// Acquirer takes locks by name, as an L: what [Do] and its kin work with. Each Locker of this module is one; that of leases is an
// Acquirer[*leasetable.Lease]. Every method may be called by any number of goroutines.
type Acquirer[L Lock] interface {
	// TryAcquire takes name if it is free, and otherwise fails at once with a *HeldError
	// (errors.Is ErrHeld).
	TryAcquire(ctx context.Context, name string, opts ...Option) (L, error)

	// Acquire waits for name until it is taken or ctx ends; ctx bounds the waiting only, not
	// the life of the lock. When ctx ends the error matches both ErrHeld, if somebody was
	// seen to hold the lock, and context.Cause(ctx).
	//
	// It also waits, trying again after up to 3 s, while the database cannot be used: it cannot be reached, restarts,
	// has no connection left, or is a standby or read-only, as in a failover; so with a ctx that does not end it waits for
	// ever for a host that does not exist. The logger (Warn) and the hook (event.Retrying) are told, and when ctx ends the error matches what
	// was met last, instead of ErrHeld. What somebody has to mend ends the wait at once, such as a wrong password, missing tables or
	// a server that is refused for what it is; see IsRetryable.
	//
	// On any error nothing is held. What the server may have granted while the caller left
	// is given back in the background; the Locker's Close waits for that.
	Acquire(ctx context.Context, name string, opts ...Option) (L, error)
}

// Locker is an Acquirer whose locks are any kind of lock: the type to store one in. Session Lockers are Lockers as they are,
// [AnyKind] makes one of another.
type Locker = Acquirer[Lock]

// AnyKind makes a Locker of an Acquirer whose locks are of a certain kind, such as a *leasetable.Locker.
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

// asLock keeps a nil pointer from becoming a Lock that is not nil.
func asLock[L Lock](lock L, err error) (Lock, error) {
	if err != nil {
		return nil, err
	}
	return lock, nil
}
