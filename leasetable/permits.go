package leasetable

import (
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/option"
)

// WithShared has any number of holders hold the name together, as readers do. They exclude a caller that acquires it without this option,
// and the other way round. Nobody joins them while a caller waits for the name without this option. So a holder that acquires again can
// deadlock with itself.
//
// Each holder has a token of its own. [Lease.Guard] does not make the others wait. It does not go with
// [WithHoldAtLeast] or [WithMetadata], nor does [Lease.Extend], [Lease.Export] or [Lease.SetMetadata] work: sqllock.ErrUnsupported.
func WithShared() sqllock.Option {
	return option.Of("leasetable.WithShared", func(c *choice) { c.shared = true })
}

// WithLimit has at most n holders hold the name together: a semaphore, and otherwise like [WithShared]. While holders
// with different limits hold it, the smallest of them counts: a deployment that changes n can go on beside the old one, and
// a greater n counts as soon as nobody holds the name with a smaller one. Earlier holders stay. A caller with a smaller n
// waits until fewer than n hold it.
//
// It does not go together with WithShared: to ask for the one while the name is held with the other is a *[LimitError].
func WithLimit(n int) sqllock.Option {
	return option.Of("leasetable.WithLimit", func(c *choice) { c.limited, c.limit = true, n })
}

// LimitError says that others hold the name together, with [WithLimit], while it was asked for with [WithShared], or the other
// way round: one of them is a mistake. Acquire does not wait. It matches sqllock.ErrLimit.
type LimitError struct {
	Asked  int            // the n of WithLimit, or 0 for WithShared
	Held   int            // the smallest n of those who hold it, or 0
	Holder sqllock.Holder // the one who has held it for longest
}

// Error says both, and who holds it.
func (e *LimitError) Error() string {
	return fmt.Sprintf("asked for %s, and held %s by %s", limitText(e.Asked), limitText(e.Held), e.Holder)
}

// Is reports whether target is sqllock.ErrLimit.
func (e *LimitError) Is(target error) bool { return target == sqllock.ErrLimit }

func limitText(n int) string {
	if n == 0 {
		return "without a limit (WithShared)"
	}
	return fmt.Sprintf("with a limit of %d (WithLimit)", n)
}

// checkPlaces refuses what does not go together.
func (c choice) checkPermits() error {
	switch {
	case c.shared && c.limited:
		return fmt.Errorf("%w: WithShared and WithLimit at the same time", sqllock.ErrUnsupported)
	case c.limited && c.limit < 1:
		return fmt.Errorf("leasetable: a limit of %d holders; it must be at least 1", c.limit)
	case c.permit() && c.minHold > 0:
		return fmt.Errorf("%w: WithHoldAtLeast of a name that several hold together", sqllock.ErrUnsupported)
	case c.permit() && c.metadata != nil:
		return fmt.Errorf("%w: WithMetadata of a name that several hold together", sqllock.ErrUnsupported)
	}
	return nil
}

// errPlace refuses what is for a name that one holds.
var errPermit = fmt.Errorf("%w: several hold the name together", sqllock.ErrUnsupported)

// place reports whether the name is to be held together with others.
func (c choice) permit() bool { return c.shared || c.limited }
