package locktest

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// Answered is a server whose responses a test can delay.
type Answered struct {
	Server    string // host:port
	NewLocker func(t *testing.T, address string, ttl time.Duration) Locker

	// Dialling opens a Locker that uses this dial function.
	Dialling func(t *testing.T, dial func(ctx context.Context, network, address string) (net.Conn, error), ttl time.Duration) Locker

	Ask  string // a part of the request for the lock "late", and of no other request of an open session
	Ping string // a part of the request that decides whether a new session is trusted, and of no earlier one
}

// Deadlines tests how long a holder trusts a session whose responses come late. The holder must learn of the loss
// before the server can end the session. The time counts from when the last answered statement was sent.
func Deadlines(t *testing.T, open func(t *testing.T) Answered) {
	t.Helper()
	for name, test := range map[string]func(Answered, *testing.T){
		"a holder that hears no more is told before its session can end": Answered.silence,
		"a session that is opened too slowly is not used":                Answered.slowness,
		"a holder whose driver hangs is told all the same":               Answered.hang,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(open(t), t)
		})
	}
}

// silence lasts until the deadline. If the machine is too slow at that moment, the test tries again.
func (a Answered) silence(t *testing.T) {
	for range 5 {
		if a.toldInTime(t) {
			return
		}
	}
	t.Skip("this machine was too slow to tell one second from the next")
}

// toldInTime compares two timers of this process. One is that of the session. The other is set before the session's
// last statement is sent, and fires one second after the deadline, when the server still keeps the session for another
// second. toldInTime reports whether the comparison was valid.
func (a Answered) toldInTime(t *testing.T) (valid bool) {
	const (
		ttl     = 12 * time.Second // the deadline is after 10 s
		control = 11 * time.Second
		late    = 3 * time.Second        // delay of the response
		slack   = 300 * time.Millisecond // tolerance for operations that take no time
	)
	n := newNetwork(t, a.Server)
	near, far := a.NewLocker(t, a.Server, ttl), a.NewLocker(t, n.Address(), ttl)
	MustRelease(t, MustTry(t, far, "warm")) // opens the session
	held := n.HoldAnswer(a.Ask)
	fallSilent := func() { // the answer is the last that arrives
		held.Pass()
		n.Cut()
	}

	began, timer := time.Now(), time.NewTimer(control)
	defer timer.Stop()
	asked := make(chan outcome, 1)
	go func() {
		lock, err := far.TryAcquire(endingIn(t, time.Minute), "late")
		asked <- outcome{lock, err}
	}()
	await(t, held.Asked(), "the request")
	if time.Since(began) > slack {
		fallSilent()
		<-asked
		return false
	}
	Eventually(t, "the server has granted the lock", func() bool {
		lock, err := near.TryAcquire(bounded(t), "late")
		if err == nil {
			MustRelease(t, lock) // this overtook the request, which may fail now
		}
		return errors.Is(err, sqllock.ErrHeld)
	})
	await(t, time.After(late-time.Since(began)), "the answer to be late")
	fallSilent()
	out := <-asked
	if out.err != nil {
		if time.Since(began) > late+slack || errors.Is(out.err, sqllock.ErrHeld) {
			return false
		}
		t.Fatal(out.err)
	}
	select {
	case <-out.lock.Context().Done():
		if time.Since(began) >= control {
			return false
		}
		mustEnd(t, out.lock, sqllock.ErrLost)
		return true
	case <-timer.C:
	}
	switch overdue := time.Since(began) - control; {
	case out.lock.Context().Err() != nil, overdue > slack:
		return false
	default:
		t.Fatalf("the holder was not told %v after the last statement was sent; the server may end the session after %v", control, ttl)
		return false
	}
}

// slowness delays the response that decides whether a new session is trusted.
func (a Answered) slowness(t *testing.T) {
	const (
		ttl     = 6 * time.Second
		trusted = 5 * time.Second
	)
	n := newNetwork(t, a.Server)
	l := a.NewLocker(t, n.Address(), ttl)
	held := n.HoldAnswer(a.Ping)
	asked := make(chan outcome, 1)
	stalls, began := watchStalls(t), time.Now()
	go func() {
		lock, err := TryAnswered(endingIn(t, time.Minute), l, "late") // a busy machine may take as long for the next session
		asked <- outcome{lock, err}
	}()
	await(t, held.Asked(), "the request")
	await(t, time.After(trusted), "the answer to be late")
	held.Pass()
	out := <-asked
	if out.err != nil {
		t.Fatal(out.err)
	}
	if n.Connections() < 2 {
		t.Error("the lock is on a session that was not to be trusted when it was open")
	}
	if err := out.lock.Release(t.Context()); err != nil && !excuses(t, stalls, began, ttl) {
		t.Errorf("the lock did not live: Release: %v", err)
	}
}

// hang makes the driver hang forever.
func (a Answered) hang(t *testing.T) {
	const ttl = 3 * time.Second
	j := &jam{done: make(chan struct{})}
	l := a.Dialling(t, j.dial, ttl)
	t.Cleanup(j.end) // before the Locker is closed
	Eventually(t, "a session that was used", func() bool {
		lock, err := l.TryAcquire(bounded(t), "warm")
		return err == nil && lock.Release(bounded(t)) == nil
	})
	await(t, time.After(ttl/6), "the deadline to be another than the first one")
	var lock sqllock.Lock
	Eventually(t, "a lock that lived when the driver began to hang", func() bool {
		var err error
		if lock, err = l.TryAcquire(bounded(t), "late"); err != nil {
			return false
		}
		j.begin()
		return true
	})
	await(t, lock.Context().Done(), "the holder to be told")
	mustMatch(t, context.Cause(lock.Context()), sqllock.ErrLost)
}

// await waits for an event that must happen.
func await[T any](t *testing.T, c <-chan T, what string) {
	t.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
		t.Fatalf("waited a minute for %s", what)
	}
}
