package wait

import (
	"bytes"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// observation is the last state that was read of a lease that holds a name, and since when that lease has not been
// renewed, by the clock of this process. If that is longer ago than its TTL, its holder no longer trusts it. Then only
// the clock of the database, which was set back, keeps it from being over.
type observation struct {
	store.State
	since   time.Time
	changed time.Time // since when the name has not changed hands; zero: it was not read
	seen    time.Time // when it was read
	expiry  time.Time // when the lease expires unless it is renewed
}

// update notes what was read of the lease, and when it was last seen to be renewed (I11).
func (s *observation) update(state store.State, earlier *Stalled) {
	if s.since.IsZero() || !s.same(state) {
		s.since = earlier.since(state)
	}
	if s.changed.IsZero() || s.Token != state.Token {
		s.changed = time.Now().Add(-state.Age())
	}
	s.State, s.seen = state, time.Now()
	s.expiry = s.seen.Add(store.Micros(state.RemainingUS))
}

// same reports whether state is of the same lease, which was not renewed since. After a failover that forgot a renewal,
// the next one gets the same number.
func (s *observation) same(state store.State) bool {
	return bytes.Equal(s.LeaseID, state.LeaseID) && s.Renewals == state.Renewals && s.ExpiresUS == state.ExpiresUS
}

// leftUS returns for how many microseconds the lease that was read as state is in the way unless it is renewed: until it
// expires, or was unchanged for its TTL (I11).
func (s *observation) leftUS(state store.State) int64 {
	if state.TTLUS == 0 { // a minimum hold
		return state.RemainingUS
	}
	left := state.TTLUS
	if s.same(state) {
		left = max(1, left-time.Since(s.since).Microseconds())
	}
	return min(state.RemainingUS, left)
}

// UntilExpiry shortens a pause that would last beyond the expiry of the lease. It adds jitter, so that not all waiters
// read at the same moment. A lease that had expired before it was read is in the way for another reason. One that has
// expired since shortens one pause.
func (s *observation) UntilExpiry(pause time.Duration) time.Duration {
	if !s.mayExpire() {
		return pause
	}
	left := time.Until(s.expiry)
	if left <= 0 {
		left, s.seen = 0, time.Now()
	}
	return min(pause, left+jitter.Below(backoff.First))
}

// mayExpire reports whether the expiry is still to come, or has come since the lease was read.
func (s *observation) mayExpire() bool { return s.expiry.After(s.seen) }

// endsWithin reports whether the lease expires within d, or has expired.
func (s *observation) endsWithin(d time.Duration) bool { return time.Until(s.expiry) < d }

// unchangedForTTL reports whether the lease was not renewed for its TTL, by the clock of this process (I11).
func (s *observation) unchangedForTTL() bool {
	return s.TTLUS > 0 && time.Since(s.since) > store.Micros(s.TTLUS)
}
