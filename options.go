package sqllock

import (
	"context"
	"time"
)

// Option changes one acquisition. A Locker that cannot honour an option fails the
// acquisition with ErrUnsupported rather than ignoring it.
type Option func(*Options)

// Options is what a Locker reads from a list of Option.
type Options struct {
	TTL     time.Duration // 0: the Locker's own
	Backend any           // what an option of one backend's package sets; the other backends refuse it, and say what %v prints

	// Meet is nil, or set by AcquireAll for a backend that can take several names by one statement.
	// Each of its acquisitions comes with a part of its own. The first waits until the others have come, or have
	// ended, or ctx has, and gets the parts of all who came until then, to act on them; the others get nothing, at once.
	// An acquisition that comes again, or too late, is not awaited and goes on alone.
	Meet func(ctx context.Context, part any) (all []any, awaited bool)
}

// WithTTL sets how long the lock outlives its last renewal. It is for leases: the TTL of a
// session lock belongs to the session and is set on the Locker.
func WithTTL(ttl time.Duration) Option {
	return func(o *Options) { o.TTL = ttl }
}
