package leasetable_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// sighting is one result of Observe.
type sighting struct {
	leader sqllock.Holder
	err    error
}

// observe starts an observer that sends its results. The returned function ends it.
func observe(t *testing.T, e *leasetable.Elector) (<-chan sighting, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan sighting)
	go func() {
		defer close(told)
		for leader, err := range e.Observe(ctx, time.Millisecond) {
			select {
			case told <- sighting{leader, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	end := func() {
		cancel()
		slow := false
		for s := range told {
			if slow = slow || sqllock.IsRetryable(s.err); !slow {
				t.Errorf("an observer that was ended is told %v", s)
			}
		}
	}
	t.Cleanup(end)
	return told, end
}

// nextLeader waits until an observer is told of another leader than the one with the token last. Its reads follow each other
// at once, so a machine that stalls for longer than a read may take always stalls one: the observer is told of that, and then
// again who leads.
func nextLeader(t *testing.T, told <-chan sighting, last int64) sqllock.Holder {
	t.Helper()
	for slow := false; ; {
		switch s := receive(t, told); {
		case sqllock.IsRetryable(s.err):
			slow = true
		case s.err != nil:
			t.Fatalf("the observer was told %v", s.err)
		case slow && s.leader.Token == last:
			slow = false
		default:
			return s.leader
		}
	}
}

// unknown is the token of the leader before an observer is told of any.
const unknown = -1

func TestObserversAreToldEveryChangeOnce(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		campaigning := newLocker(t, db.DB, leasetable.WithTTL(time.Hour), leasetable.WithOwner("it"))
		observing := newLocker(t, db.DB)
		told, end := observe(t, newElector(t, observing))
		last := int64(unknown)
		mustBeTold := func(token int64) {
			t.Helper()
			leader := nextLeader(t, told, last)
			if leader.Token != token || (token != 0) != (leader.Owner == "it") {
				t.Fatalf("the observer was told %v; want token %d", leader, token)
			}
			last = token
		}
		mustBeTold(0)
		if n := leaseRows(t, db); n != 0 {
			t.Errorf("an observer wrote %d rows", n)
		}
		c := campaign(t, newElector(t, campaigning))
		first := c.mustLead(t)
		mustBeTold(1)
		for range 2 { // renewals are not changes
			mustRenew(t, first.lease)
			<-time.After(time.Second)
		}
		if was, err := observing.ForceRelease(t.Context(), "x"); err != nil || !was.Held {
			t.Fatal(was, err)
		}
		mustBeTold(0)
		renewUntilLost(t, first.lease)
		first.mustEnd(t, sqllock.ErrLost)
		first.end <- nil
		second := c.mustLead(t)
		mustBeTold(second.lease.Token())
		second.end <- nil
		mustBeTold(0)
		end()

		// Another leader leads at the next read: a pulled observer reads when it is asked.
		ctx := bounded(t)
		next, stop := iter.Pull2(newElector(t, observing).Observe(ctx, time.Millisecond))
		defer stop()
		for range 2 {
			token := take(t, newLocker(t, db.DB), "x").Token()
			leader, err, _ := next()
			for sqllock.IsRetryable(err) { // the machine is slow
				leader, err, _ = next()
			}
			if err != nil || leader.Token != token {
				t.Errorf("the observer was told %v, %v; want token %d", leader, err, token)
			}
			expireLease(t, db, "x")
		}
		if stop(); ctx.Err() != nil {
			t.Error("an observer that was stopped went on")
		}
	})
}

func TestObserversAreToldOfTroubleAndThenAgainWhoLeads(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		lease := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x")
		l, network := breakably(t, db)
		for _, err := range newElector(t, l).Observe(bounded(t), time.Millisecond) {
			if !errors.Is(err, errAway) {
				t.Errorf("an observer that is cut off is told %v", err)
			}
			break // also after an error: an Observe that went on would panic
		}
		told, _ := observe(t, newElector(t, l))
		for round := range 2 {
			if round > 0 {
				network.set(true)
				endConnections(t, db)
			}
			for range 3 {
				if s := receive(t, told); !sqllock.IsRetryable(s.err) || s.leader.Token != 0 {
					t.Fatalf("an observer that is cut off is told %v, %v", s.leader, s.err)
				}
			}
			network.set(false)
			s := receive(t, told)
			for s.err != nil { // results from before
				s = receive(t, told)
			}
			if s.leader.Token != lease.Token() {
				t.Errorf("the leader is told as %v", s.leader)
			}
			eventually(t, func() bool { return lease.Verify(t.Context()) == nil }) // its connection was ended, too
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		last := sighting{}
		for s := range told {
			last = s
		}
		if !errors.Is(last.err, sqllock.ErrClosed) {
			t.Errorf("the last that an observer of a closed Locker is told is %v", last.err)
		}
	})
}

// While the name is only kept after the resignation of its leader, nobody else can lead, and nobody leads.
func TestWhoHasResignedLeadsNoMoreThoughTheNameIsKept(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		e, err := leasetable.NewElector(newLocker(t, db.DB), "x", leasetable.WithHoldAtLeast(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		told, _ := observe(t, e)
		last := int64(unknown)
		mustBeTold := func(token int64) {
			t.Helper()
			if leader := nextLeader(t, told, last); leader.Token != token {
				t.Errorf("observers are told %v; want the token %d", leader, token)
			}
			last = token
		}
		mustBeTold(0)
		if err := e.Run(t.Context(), func(_ context.Context, lease *leasetable.Lease) error {
			mustBeTold(lease.Token())
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		var leader sqllock.Holder
		var led bool
		if err := insist(bounded(t), func() (err error) {
			leader, led, err = e.Leader(t.Context())
			return err
		}); led || err != nil {
			t.Fatalf("after the resignation %v leads: %v, %v", leader, led, err)
		}
		mustBeTold(0)
	})
}
