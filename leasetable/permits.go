package leasetable

import (
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/option"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// WithShared makes the lock a share: any number of holders have a share of the name at the same time, as readers do.
// Shares exclude a caller that acquires the name without this option, and the other way round. While such a caller
// waits, nobody gets a share. So a holder that acquires again can deadlock with itself. Each acquisition reads a row for
// each holder, so a name with thousands of them is slow to acquire.
//
// Each share has a token of its own. [Lease.Guard] does not make the other holders wait. WithShared cannot be combined
// with [WithHoldAtLeast] or [WithMetadata], and [Lease.Extend], [Lease.Export] and [Lease.SetMetadata] do not work on a
// share: they fail with sqllock.ErrUnsupported.
func WithShared() sqllock.Option {
	return option.Of("leasetable.WithShared", func(c *choice) { c.Shared = true })
}

// WithLimit makes the name a semaphore: at most n holders have a permit at the same time. Otherwise it is like
// [WithShared]. While there are holders with different limits, the smallest limit counts. So a deployment that changes
// n can run beside the old one, and a greater n counts as soon as no holder has a smaller one. Earlier holders stay. A
// caller with a smaller n waits until there are fewer than n holders.
//
// WithLimit cannot be combined with WithShared. To ask for a permit of a name that is shared, or the other way round,
// is a *[SharingError].
func WithLimit(n int) sqllock.Option {
	return option.Of("leasetable.WithLimit", func(c *choice) { c.Limited, c.Limit = true, n })
}

// SharingError says that the name was asked for with [WithShared] while it has permits ([WithLimit]), or the other way
// round: one of them is a mistake. Acquire does not wait, and sqllock.IsRetryable is false.
type SharingError struct {
	Asked  int            // the n of WithLimit, or 0 for WithShared
	Held   int            // the smallest n of the holders, or 0 for WithShared
	Holder sqllock.Holder // the holder that has held it for longest
}

// Error names both limits, and the holder.
func (e *SharingError) Error() string {
	return fmt.Sprintf("asked for %s, and held %s by %s", limitText(e.Asked), limitText(e.Held), e.Holder)
}

func limitText(n int) string {
	if n == 0 {
		return "without a limit (WithShared)"
	}
	return fmt.Sprintf("with a limit of %d (WithLimit)", n)
}

// checkPermits rejects options that cannot be combined.
func (c choice) checkPermits() error {
	switch {
	case c.Shared && c.Limited:
		return fmt.Errorf("%w: WithShared and WithLimit at the same time", sqllock.ErrUnsupported)
	case c.Limited && c.Limit < 1:
		return fmt.Errorf("a limit of %d holders; it must be at least 1", c.Limit)
	case c.Permit() && c.minHold > 0:
		return fmt.Errorf("%w: WithHoldAtLeast of a name that several hold together", sqllock.ErrUnsupported)
	case c.Permit() && c.metadata != nil:
		return fmt.Errorf("%w: WithMetadata of a name that several hold together", sqllock.ErrUnsupported)
	}
	return nil
}

// mismatched returns the error for a choice with a limit if the live permits have none, or the other way round, and
// otherwise nil.
func (c *choice) mismatched(state store.State) error {
	others := state.Together()
	held := store.LimitOf(others)
	if !c.Permit() || len(others) == 0 || (held == 0) == (c.Limit == 0) {
		return nil
	}
	return &SharingError{Asked: c.Limit, Held: held, Holder: state.Holder()}
}
