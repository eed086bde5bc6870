package leasetable

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
)

// choice is what the options say about one acquisition.
type choice struct {
	ttl   time.Duration // 0: the Locker's own
	keep  time.Duration
	early bool
	meet  func(ctx context.Context, part any) (all []any, awaited bool) // see sqllock.Options; or nil

	shared, limited bool // see WithShared and WithLimit
	limit           int

	metadata []byte // nil: none was given
}

func option(set func(*choice)) sqllock.Option {
	return func(o *sqllock.Options) {
		c, _ := o.Backend.(choice)
		set(&c)
		o.Backend = c
	}
}

// WithHoldAtLeast keeps the name taken after its Release, until d after it was acquired, by the
// database's clock: what N machines start at about the same time runs once, however short it is.
// While it is kept it has no owner. It is free at once when the lock ends in another way. A Release that was not
// confirmed, and is repeated in the background, keeps it as well.
func WithHoldAtLeast(d time.Duration) sqllock.Option {
	return option(func(c *choice) { c.keep = d })
}

// WithGiveUpEarly has Acquire fail at once, as TryAcquire does, when the lease that holds the name
// would outlast the deadline of its context unless it is released before.
func WithGiveUpEarly() sqllock.Option {
	return option(func(c *choice) { c.early = true })
}

// choose reads opts, and refuses what is not for a lease.
func choose(opts []sqllock.Option) (c choice, err error) {
	var o sqllock.Options
	for _, opt := range opts {
		opt(&o)
	}
	c, ok := o.Backend.(choice)
	c.ttl, c.meet = o.TTL, o.Meet
	switch {
	case o.Backend != nil && !ok:
		of, _, _ := strings.Cut(fmt.Sprintf("%T", o.Backend), ".")
		err = fmt.Errorf("%w, a lease: it is of package %s", sqllock.ErrUnsupported, of)
	case c.keep < 0:
		err = fmt.Errorf("leasetable: a name cannot be held for at least %v", c.keep)
	default:
		err = errors.Join(c.checkPlaces(), checkMetadata(c.metadata))
	}
	return c, err
}
