package sqllock

import "context"

// Locker takes locks by name. Every method may be called by any number of goroutines.
type Locker interface {
	// TryAcquire takes name if it is free, and otherwise fails at once with a *HeldError
	// (errors.Is ErrHeld).
	TryAcquire(ctx context.Context, name string, opts ...Option) (Lock, error)

	// Acquire waits for name until it is taken or ctx ends; ctx bounds the waiting only, not
	// the life of the lock. When ctx ends the error matches both ErrHeld, if somebody was
	// seen to hold the lock, and context.Cause(ctx).
	//
	// It also waits, trying again after up to 3 s, while the database cannot be used: it cannot be reached, restarts,
	// has no connection left, or is a standby or read-only, as in a failover; so with a ctx that does not end it waits for
	// ever for a host that does not exist. The logger (Warn) and the hook ("retrying") are told, and when ctx ends the error matches what
	// was met last, instead of ErrHeld. What somebody has to mend ends the wait at once, such as a wrong password, missing tables or
	// a server that is refused for what it is; see IsRetryable.
	//
	// On any error nothing is held. What the server may have granted while the caller left
	// is given back in the background; the Locker's Close waits for that.
	Acquire(ctx context.Context, name string, opts ...Option) (Lock, error)
}

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
