package permit

import (
	"cmp"
	"slices"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Wants says what a caller asks of a name: the whole name, a share of it, or a permit.
type Wants struct {
	Shared, Limited bool // see WithShared and WithLimit
	Limit           int
}

// Permit reports whether w asks for a share or a permit.
func (w Wants) Permit() bool { return w.Shared || w.Limited }

// fits reports whether one more holder fits in beside these permits: their number is below the limit of w, and below
// the limit of each of them (I29). Permits with a limit and shares without one exclude each other.
func (w Wants) fits(permits []store.State) bool {
	for _, p := range permits {
		limit := p.Limit.Int64
		if (limit == 0) != (w.Limit == 0) || limit > 0 && int64(len(permits)) >= limit {
			return false
		}
	}
	return w.Limit == 0 || len(permits) < w.Limit
}

// Blocked reports whether state is in the way of w. An exclusive waiter blocks until its note expires (I35).
func (w Wants) Blocked(state store.State) bool {
	if !w.Permit() {
		return state.Taken()
	}
	return state.Live() || !w.fits(state.Together()) || state.ExclusiveWaiterFor() > 0
}

// Lasts returns for how long state is in the way of w, unless there is a release before.
func (w Wants) Lasts(state store.State) time.Duration {
	us := state.RemainingUS
	together := state.Together()
	slices.SortFunc(together, func(a, b store.State) int { return cmp.Compare(a.RemainingUS, b.RemainingUS) })
	for i, p := range together {
		us = p.RemainingUS
		if w.Permit() && w.fits(together[i+1:]) {
			break
		}
	}
	return store.Micros(us)
}
