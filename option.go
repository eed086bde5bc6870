package sqllock

import (
	"time"

	"github.com/sqllock/sqllock/internal/option"
)

// Option changes one acquisition: [WithTTL], [WithWait], and the options of the backends' packages, such as
// leasetable.WithLimit or pg.WithKey. An option that this kind of lock does not have fails the acquisition with
// ErrUnsupported. An option about waiting has no effect on a call that does not wait, such as TryAcquire.
type Option func(*option.Options)

// WithTTL sets how long a lease outlives its last renewal. The least is 200 ms, and 0 means the TTL of the Locker. A smaller
// or negative ttl fails the acquisition. pg and mysql refuse the option (ErrUnsupported): the TTL of a session lock belongs
// to the session and is set on the Locker (WithSessionTTL).
func WithTTL(ttl time.Duration) Option {
	return func(o *option.Options) { o.TTL = ttl }
}

// WithWait bounds the wait of Acquire, and of functions that call it, to d; the context of [Do] bounds the wait and the
// work together. When d has passed, the error matches ErrHeld if the lock was seen to be held. The first attempt is not
// cut short, however long the database takes to answer, so WithWait(0) does what TryAcquire does. The option has no
// effect on TryAcquire. A negative d is an error.
func WithWait(d time.Duration) Option {
	return func(o *option.Options) { o.Wait = &d }
}
