package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// Parted is a database whose server some Lockers can be cut off from. Nobody else uses it.
type Parted struct {
	Server string // host:port

	// NewLocker opens a Locker that connects to address instead of Server. Its session TTL is
	// the shortest that there is.
	NewLocker func(t *testing.T, address string) Locker

	Waiting  func(t *testing.T, name string) int // counts who waits for a lock on the server
	Sessions func(t *testing.T) int              // counts the connections of Lockers
}

// Partitions tests session locks whose connection is half-open: it carries nothing any more,
// and neither side has seen its end. Each test has a database of its own.
func Partitions(t *testing.T, open func(t *testing.T) Parted) {
	t.Helper()
	for name, test := range map[string]func(parted, *testing.T){
		"a holder that is cut off is told before anybody else has its lock":       parted.holder,
		"a waiter that is cut off while it is in the queue does not get the lock": parted.waiterInQueue,
		"a waiter that is cut off leaves the queue":                               parted.waiterLeaves,
		"a caller need not wait for an answer that does not come":                 parted.impatient,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t)
			cable := NewCable(t, "127.0.0.1", p.Server)
			test(parted{
				Parted: p, Cable: cable,
				near: p.NewLocker(t, p.Server), other: p.NewLocker(t, p.Server), far: p.NewLocker(t, cable.Address()),
			}, t)
		})
	}
}

type parted struct {
	Parted
	*Cable
	near, other Locker
	far         Locker // the one that is cut off
}

func (p parted) holder(t *testing.T) {
	taken := mustTry(t, p.far, "taken")
	before := mustTry(t, p.near, "waited for")
	waiting := p.wait(bounded(t), t, "waited for")
	mustRelease(t, before)
	waitedFor := waiting.mustGet(t)

	p.Cut()
	next := make(chan outcome, 2)
	for _, lock := range []sqllock.Lock{taken, waitedFor} {
		mustBeHeld(t, p.other, lock.Name()) // the server has not noticed
		go func() {
			after, err := p.near.Acquire(bounded(t), lock.Name())
			if err == nil && lock.Context().Err() == nil {
				err = errors.New("two hold the lock")
			}
			next <- outcome{after, err}
		}()
	}
	for range 2 {
		out := receive(t, next, soon, "the server to give up the session")
		if out.err != nil {
			t.Fatal(out.err)
		}
		t.Cleanup(func() { _ = out.lock.Release(t.Context()) })
		defer mustLive(t, out.lock)
	}
	for _, lock := range []sqllock.Lock{taken, waitedFor} {
		mustEnd(t, lock, sqllock.ErrLost)
		mustMatch(t, lock.Release(t.Context()), sqllock.ErrLost)
	}

	// What was sent before and while it was cut off does not change who holds what.
	p.Heal()
	mustRelease(t, mustAcquire(t, p.far, "another"))
	mustBeHeld(t, p.far, "taken")
	mustBeHeld(t, p.far, "waited for")
}

// impatient leaves in the middle of a statement, that of an acquisition which finds the session idle.
func (p parted) impatient(t *testing.T) {
	for round := range 10 {
		var kept sqllock.Lock
		if round%2 == 0 {
			kept = mustTry(t, p.far, "kept")
		}
		mustRelease(t, mustTry(t, p.far, "another"))
		p.Cut()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Duration(round)*10*time.Millisecond, func() { cancel(errGone) })
		began := time.Now()
		_, err := p.far.TryAcquire(ctx, "late")
		mustMatch(t, err, errGone)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it left after %v", took)
		}
		if kept != nil {
			mustLive(t, kept) // it was not the end of its session that ended the call
		}
		p.Heal()
		mustBecomeFree(t, p.near, "late")
		if kept != nil {
			mustLive(t, kept)
			mustRelease(t, kept)
		}
	}
}

// waiterInQueue has the server grant the lock to somebody who does not hear of it.
func (p parted) waiterInQueue(t *testing.T) {
	p.waiter(t, func() {})
}

func (p parted) waiterLeaves(t *testing.T) {
	p.waiter(t, func() {
		eventually(t, "the waiter has left the queue", func() bool { return p.Waiting(t, "a") == 0 })
	})
}

// waiter cuts a waiter off, and releases the lock that it waits for after it did what is given.
func (p parted) waiter(t *testing.T, before func()) {
	lock := mustTry(t, p.near, "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	waiting := p.wait(ctx, t, "a")
	p.Cut()
	before()
	mustRelease(t, lock)
	began := time.Now()
	next := mustAcquire(t, p.other, "a")
	t.Logf("somebody else had the lock %v after its release", time.Since(began))
	mustBeHeld(t, p.near, "a")
	cancel(errGone)
	if out := waiting.result(t, soon); out.err == nil {
		t.Errorf("the waiter that is cut off has the lock (it lives: %t)", out.lock.Context().Err() == nil)
	}
	mustLive(t, next)
	mustRelease(t, next)
	for _, l := range []Locker{p.near, p.other} {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "the server has no session left", func() bool { return p.Sessions(t) == 0 })

	p.Heal()
	mustBecomeFree(t, p.far, "a")
}

// wait has the Locker that will be cut off wait, and returns when the server knows.
func (p parted) wait(ctx context.Context, t *testing.T, name string) waiter {
	t.Helper()
	w := startWaiter(ctx, p.far, name)
	eventually(t, "the wait is in the server's queue", func() bool { return p.Waiting(t, name) > 0 })
	return w
}
