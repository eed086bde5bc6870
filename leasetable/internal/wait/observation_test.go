package wait_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/observe"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/leasetable/internal/wait"
)

func TestAPauseEndsWithTheLease(t *testing.T) {
	t.Parallel()
	const pause = 2 * time.Second
	tests := []struct {
		name            string
		remaining, late time.Duration // of the lease when it was read, and from then to the pause
		min, max        time.Duration
	}{
		{"lives on", time.Minute, 0, pause, pause},
		{"ends meanwhile", time.Second, 0, time.Second, time.Second + backoff.First},
		{"has ended since it was read", time.Second, 2 * time.Second, 0, backoff.First},
		{"had ended before it was read", -time.Second, 0, pause, pause},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var w wait.Waiter
				w.Observe(store.State{RemainingUS: test.remaining.Microseconds()})
				<-time.After(test.late)
				if d := w.Holding.UntilExpiry(pause); d < test.min || d > test.max {
					t.Errorf("%v; want %v to %v", d, test.min, test.max)
				}
				<-time.After(test.remaining - test.late)
				w.Holding.UntilExpiry(pause)
				if d := w.Holding.UntilExpiry(pause); d != pause {
					t.Errorf("after the end without a new read: %v; want %v", d, pause)
				}
			})
		})
	}
}

// Somebody has written the expiry by hand.
func TestALeaseThatHardlyEverEndsShortensNoPause(t *testing.T) {
	t.Parallel()
	const pause = time.Second
	for _, us := range []int64{math.MaxInt64, math.MaxInt64 / 1000, math.MinInt64, math.MinInt64 / 1000} {
		var w wait.Waiter
		w.Observe(store.State{LeaseID: []byte{1}, RemainingUS: us, TTLUS: us, ExpiresUS: us})
		if d := w.Holding.UntilExpiry(pause); d != pause {
			t.Errorf("with %d µs left: %v", us, d)
		}
	}
}

// A failover has forgotten the renewal that a waiter saw, and the next one has the same number. I11.
func TestARenewalWithANumberThatWasSeenBeforeIsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 15 * time.Second
		began := time.Now()
		w := wait.Waiter{Keeper: lease.NewKeeper(memory.NewServer(memory.Postgres).Store(), store.LeaseRow{}, observe.Sink{})}
		defer w.Keeper.Close() // of a database in memory
		for _, after := range []time.Duration{0, ttl * 4 / 5, ttl + time.Second} {
			<-time.After(time.Until(began.Add(after)))
			renewed := began
			if after > 0 {
				renewed = began.Add(ttl * 4 / 5)
			}
			w.Observe(store.State{LeaseID: make([]byte, 16), Renewals: 10, ExpiresUS: renewed.Add(ttl).UnixMicro(), TTLUS: ttl.Microseconds()})
		}
		if ended, err := w.ExpireUnchanged(t.Context()); ended || err != nil {
			t.Errorf("a lease that was renewed 4 s ago: ended %t, %v", ended, err)
		}
	})
}
