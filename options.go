package sqllock

import "time"

// Option changes one acquisition. A Locker that cannot honour an option fails the
// acquisition with ErrUnsupported rather than ignoring it.
type Option func(*Options)

// Options is what a Locker reads from a list of Option.
type Options struct {
	TTL     time.Duration // 0: the Locker's own
	Backend any           // what an option of one backend's package sets; the other backends refuse it
}

// WithTTL sets how long the lock outlives its last renewal. It is for leases: the TTL of a
// session lock belongs to the session and is set on the Locker.
func WithTTL(ttl time.Duration) Option {
	return func(o *Options) { o.TTL = ttl }
}
