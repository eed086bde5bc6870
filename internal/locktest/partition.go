package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/netfault"
)

// partitions tests session locks on a half-open connection: it transmits nothing, and neither side has noticed. For
// comparison, the connections of one waiter are closed. Each test has a database of its own.
func partitions(t *testing.T, database func(t *testing.T) Database) {
	for name, test := range map[string]struct {
		ttl time.Duration // of the Locker that is cut off
		run func(parted, *testing.T)
	}{
		"a holder that is cut off is told before anybody else has its lock":       {partedTTL, parted.holder},
		"a waiter that is cut off while it is in the queue does not get the lock": {partedTTL, parted.waiterInQueue},
		"a waiter that is cut off leaves the queue":                               {partedTTL, parted.waiterLeaves},
		"a waiter that is killed while it is in the queue delays nobody":          {endless, parted.waiterKilled},
		"a caller need not wait for an answer that does not come":                 {endless, parted.impatient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := database(t)
			cable := newNetwork(t, db.Access(t).Address)
			far := open(t, db, Settings{DSN: db.DSN(t, Access{Address: cable.Address()}), TTL: test.ttl})
			test.run(parted{
				Database: db, Network: cable,
				near: open(t, db, Settings{}), other: open(t, db, Settings{}), far: far,
			}, t)
		})
	}
}

// partedTTL is the session TTL of the Lockers that are cut off. The last sixth of it is between the report of the loss
// and the end of the lock, and a busy machine needs a part of that.
const partedTTL = 18 * time.Second

type parted struct {
	Database
	*netfault.Network
	near, other Locker
	far         Locker // the Locker that is cut off
}

func (p parted) holder(t *testing.T) {
	NeedSessionTimeout(t, p.Pool())
	taken := MustTry(t, p.far, "taken")
	before := MustTry(t, p.near, "waited for")
	waiting := p.wait(bounded(t), t, "waited for")
	MustRelease(t, before)
	waitedFor := waiting.mustGet(t)

	stalls := watchStalls(t)
	p.Cut()
	cut := time.Now()
	next := make(chan outcome, 2)
	for _, lock := range []sqllock.Lock{taken, waitedFor} {
		MustBeHeld(t, p.other, lock.Name()) // the server has not noticed
		go func() {
			after, err := p.near.Acquire(endingIn(t, 2*soon), lock.Name())
			if err == nil && lock.Context().Err() == nil && !excuses(t, stalls, cut, partedTTL) {
				err = errors.New("two hold the lock")
			}
			next <- outcome{after, err}
		}()
	}
	for range 2 {
		out := receive(t, next, 2*soon, "the server to give up the session")
		if out.err != nil {
			t.Fatal(out.err)
		}
		t.Cleanup(func() { _ = out.lock.Release(t.Context()) })
		defer MustLive(t, out.lock)
	}
	for _, lock := range []sqllock.Lock{taken, waitedFor} {
		mustEnd(t, lock, sqllock.ErrLost)
		mustMatch(t, lock.Release(t.Context()), sqllock.ErrLost)
	}

	// Data sent before and during the cut must not change the holders.
	p.Heal()
	MustRelease(t, MustAcquire(t, p.far, "another"))
	MustBeHeld(t, p.far, "taken")
	MustBeHeld(t, p.far, "waited for")
}

// impatient cancels in the middle of a statement, that of an acquisition that finds the session idle. Waiting for the
// end of the statement, after 10 s, would cost the session and its other lock, and ten such waits would take longer
// than the test has.
func (p parted) impatient(t *testing.T) {
	all := bounded(t)
	for round := range 10 {
		var kept sqllock.Lock
		if round%2 == 0 {
			kept = MustTry(t, p.far, "kept")
		}
		MustRelease(t, MustTry(t, p.far, "another"))
		p.Cut()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Duration(round)*10*time.Millisecond, func() { cancel(errGone) })
		_, err := p.far.TryAcquire(ctx, "late")
		mustMatch(t, err, errGone)
		if kept != nil {
			MustLive(t, kept) // the call did not end because its session ended
		}
		p.Heal()
		mustBecomeFree(t, p.near, "late")
		if kept != nil {
			MustLive(t, kept)
			MustRelease(t, kept)
		}
	}
	if all.Err() != nil {
		t.Errorf("ten callers needed more than %v to leave", soon)
	}
}

// waiterInQueue makes the server grant the lock to a waiter that does not receive the response.
func (p parted) waiterInQueue(t *testing.T) {
	NeedSessionTimeout(t, p.Pool())
	p.waiter(t, p.Cut, func() {})
}

func (p parted) waiterKilled(t *testing.T) {
	p.waiter(t, p.Refuse, func() {})
}

func (p parted) waiterLeaves(t *testing.T) {
	NeedSessionTimeout(t, p.Pool())
	p.waiter(t, p.Cut, func() {
		Eventually(t, "the waiter has left the queue", func() bool { return p.Waiting(t, "a") == 0 })
	})
}

// waiter has a waiter meet a fault, calls before, and releases the lock that it waits for.
func (p parted) waiter(t *testing.T, fault, before func()) {
	lock := MustTry(t, p.near, "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	waiting := p.wait(ctx, t, "a")
	fault()
	before()
	MustRelease(t, lock)
	next := MustAcquire(t, p.other, "a")
	MustBeHeld(t, p.near, "a")
	cancel(errGone)
	if out := waiting.result(t); out.err == nil {
		t.Errorf("the waiter that was gone has the lock (it lives: %t)", out.lock.Context().Err() == nil)
	}
	MustLive(t, next)
	MustRelease(t, next)
	for _, l := range []Locker{p.near, p.other} {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	Eventually(t, "the server has no session left", func() bool { return p.Sessions(t) == 0 })

	p.Heal()
	mustBecomeFree(t, p.far, "a")
}

// wait makes the Locker that will be cut off wait, and returns when the wait is in the server's queue.
func (p parted) wait(ctx context.Context, t *testing.T, name string) waiter {
	t.Helper()
	w := startWaiter(ctx, p.far, name)
	Eventually(t, "the wait is in the server's queue", func() bool { return p.Waiting(t, name) > 0 })
	return w
}
