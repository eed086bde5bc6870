package leasetable

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/lockname"
	"github.com/sqllock/sqllock/internal/option"
	"github.com/sqllock/sqllock/internal/waiting"
	"github.com/sqllock/sqllock/leasetable/internal/permit"
)

// choice holds the options of one acquisition.
type choice struct {
	ttl     time.Duration // 0: the Locker's own
	minHold time.Duration
	wait    *time.Duration // nil: as long as the context lives
	early   bool
	probe   bool          // see option.Options, as of whole
	whole   *option.Whole // nil: none
	member  *member       // of a call of TryAcquireAll, or nil

	permit.Wants

	metadata []byte // nil: none was given
}

// WithHoldAtLeast keeps the name taken after its Release, until d after its acquisition, by the database's clock. So
// what N machines start at about the same time runs once, however short it is. d counts in whole microseconds, 0 is no
// minimum hold, and a negative d fails the acquisition. During this minimum hold the name has no owner. If the lock ends
// in another way, the name is free at once. A Release that was not confirmed, and is retried in the background, keeps the
// minimum hold as well. So does a Release that Close of the Locker interrupts: Close sends it again. If the database does
// not answer that, the name is free when the lease expires, if that is sooner.
func WithHoldAtLeast(d time.Duration) sqllock.Option {
	return option.Of("leasetable.WithHoldAtLeast", func(c *choice) { c.minHold = d })
}

// WithGiveUpEarly makes Acquire fail at once with sqllock.ErrHeld if the lease that holds the name expires only after the
// wait would end, by the deadline of the context or by sqllock.WithWait. It may miss a lock that is released earlier. A
// lease counts as one that expires within its TTL, also if the database's clock was set back. The option has no effect on an
// Acquire with neither of these, on TryAcquire and on Adopt.
func WithGiveUpEarly() sqllock.Option {
	return option.Of("leasetable.WithGiveUpEarly", func(c *choice) { c.early = true })
}

// Validate returns the error by which TryAcquire would refuse the name or the options, without asking the database: it
// matches sqllock.ErrName or sqllock.ErrUnsupported, or says which value is out of range. It is for a constructor that
// keeps options for later acquisitions.
func (l *Locker) Validate(name string, opts ...sqllock.Option) error {
	if _, err := l.choose(name, opts); err != nil {
		return &sqllock.OpError{Op: "validate the options for", Name: name, Err: err}
	}
	return nil
}

// choose reads the options of an acquisition by l, and rejects them and the name if they are invalid.
func (l *Locker) choose(name string, opts []sqllock.Option) (choice, error) {
	c, err := choose(opts)
	if c.ttl == 0 {
		c.ttl = l.ttl
	}
	return c, errors.Join(lockname.Check(name), err, checkTTL(c.ttl))
}

// choose reads opts, and rejects those that are invalid or not for a lease.
func choose(opts []sqllock.Option) (c choice, err error) {
	o, c, foreign := option.Read[choice](opts)
	c.ttl, c.wait, c.probe, c.whole = o.TTL, o.Wait, o.Probe, o.Whole
	switch {
	case foreign != "":
		err = fmt.Errorf("%w: %s, which is not for a lease", sqllock.ErrUnsupported, foreign)
	case c.minHold < 0:
		err = fmt.Errorf("a name cannot be held for at least %v", c.minHold)
	default:
		err = errors.Join(waiting.Check(c.wait), c.checkPermits(), checkMetadata(string(c.metadata)))
	}
	return c, err
}
