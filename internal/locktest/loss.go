package locktest

import (
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/stall"
)

// sessionEnds makes the server end a session. The session TTL is long: the holder learns of the loss because the Locker
// notices the end of the connection, by watching it or by a heartbeat.
func sessionEnds(t *testing.T, s sessions) {
	l, elsewhere := s.open(t), s.open(t)
	// "b" is waited for, and so is on a connection of its own.
	a, b := MustTry(t, l, "a"), MustTry(t, elsewhere, "b")
	waiting := startWaiting(bounded(t), t, s, l, "b")
	MustRelease(t, b)
	waitedFor := waiting.mustGet(t)
	c := MustTry(t, elsewhere, "c")

	s.End(t, "a")
	MustBeLost(t, a)
	MustLive(t, waitedFor)
	MustLive(t, c)
	again := MustAcquire(t, l, "a")
	MustBeHeld(t, elsewhere, "a")
	MustRelease(t, again)
	MustRelease(t, waitedFor)
	MustRelease(t, c)
}

// ToldAtOnce makes the server end a session with several locks, and then one whose lock was acquired by waiting. No
// heartbeat is due during the test, and nobody uses the Locker, so only watching an idle connection can reveal the
// loss.
func ToldAtOnce(t *testing.T, db Database, settings Settings) {
	t.Helper()
	settings.Heartbeat = endless
	l, elsewhere := open(t, db, settings), open(t, db, Settings{})
	before := MustAcquire(t, elsewhere, "waited for") // the server may still be ending a session of an earlier call
	waiting := startWaiting(bounded(t), t, db, l, "waited for")
	MustRelease(t, before)
	waitedFor := waiting.mustGet(t)

	locks := []sqllock.Lock{MustAcquire(t, l, "a"), MustAcquire(t, l, "b"), MustAcquire(t, l, "c")}
	ended := time.Now()
	db.End(t, "a")
	for _, lock := range locks {
		MustBeLost(t, lock)
	}
	t.Logf("%d locks were told within %v", len(locks), time.Since(ended))
	MustLive(t, waitedFor)
	db.End(t, "waited for")
	MustBeLost(t, waitedFor)
	MustRelease(t, MustAcquire(t, l, "a"))
}

// notTakenAgain makes a holder ask for another lock before it notices the end of its connection. I42.
func notTakenAgain(t *testing.T, s sessions) {
	l := s.open(t)
	a := MustTry(t, l, "a")
	s.End(t, "a")
	b := MustAcquire(t, l, "b")
	MustBeLost(t, a)
	MustLive(t, b)
	MustRelease(t, b)
}

// waitBeginsAgain ends the session of a waiter.
func waitBeginsAgain(t *testing.T, s sessions) {
	var told events
	l := open(t, s, Settings{Hook: told.add})
	lock, other := MustTry(t, s.open(t), "a"), MustTry(t, l, "other")
	waiting := startWaiting(endingIn(t, 2*soon), t, s, l, "a")
	Eventually(t, "the wait is hit", func() bool {
		s.EndWaits(t, "a", true)
		return told.retried()
	})
	Eventually(t, "it waits again", func() bool { return s.Waiting(t, "a") > 0 })
	if len(waiting.done) > 0 {
		t.Fatalf("Acquire: %v", waiting.result(t).err)
	}
	MustLive(t, lock)
	MustLive(t, other)
	MustRelease(t, lock)
	MustRelease(t, waiting.mustGet(t))
	MustRelease(t, other)
	Eventually(t, "nobody holds or waits", func() bool { return s.Holder(t, "a") == 0 && s.Locks(t) == 0 })
}

func waitEnds(t *testing.T, s sessions) {
	l := s.open(t)
	lock, other := MustTry(t, s.open(t), "a"), MustTry(t, l, "other")
	waiting := startWaiting(bounded(t), t, s, l, "a")
	Eventually(t, "the wait is hit", func() bool {
		s.EndWaits(t, "a", false)
		return len(waiting.done) > 0
	})
	if out := waiting.result(t); out.err == nil || errors.Is(out.err, sqllock.ErrLost) {
		t.Fatalf("Acquire = %v, %v", out.lock, out.err)
	}
	MustLive(t, lock)
	MustLive(t, other)
	MustRelease(t, lock)
	MustRelease(t, other)
	Eventually(t, "nobody holds or waits", func() bool { return s.Holder(t, "a") == 0 && s.Locks(t) == 0 })
	MustRelease(t, MustTry(t, l, "a"))
}

// Machine is a server that one test owns.
type Machine interface {
	Pause()
	Resume()
	Kill()
	Stop()
	Start()
}

// GoesAway tests a Locker whose server is paused, killed and stopped.
func GoesAway(t *testing.T, machine Machine, db Database) {
	t.Helper()
	const ttl = 18 * time.Second // the last sixth is between the report of the loss and the end of the lock
	l := open(t, db, Settings{TTL: ttl})

	lock := MustAcquire(t, l, "a")
	machine.Pause()
	MustEndWithin(t, lock, ttl)
	MustBeLost(t, lock)
	machine.Resume()
	lock = MustAcquire(t, l, "a")

	machine.Kill()
	MustBeLost(t, lock)
	if _, err := l.TryAcquire(bounded(t), "a"); err == nil || !sqllock.IsRetryable(err) {
		t.Errorf("killed: TryAcquire = %v; want an error that may be retried", err)
	}
	machine.Start()
	lock = MustAcquire(t, l, "a")

	machine.Stop()
	MustBeLost(t, lock)
	machine.Start()
	MustRelease(t, MustAcquire(t, l, "a"))
}

// MustEndWithin waits for the end of a lock that the server no longer confirms. It ends at least ⅙ TTL before the server
// could let another client have it, a TTL from now. If the machine stalls for longer than that, both come at once, and which
// is first shows nothing. A timer at ⅚ TTL shows such a stall: it is late, too.
func MustEndWithin(t *testing.T, lock sqllock.Lock, ttl time.Duration) {
	t.Helper()
	due := time.Now().Add(ttl * 5 / 6)
	late := make(chan time.Duration, 1)
	control := time.AfterFunc(time.Until(due), func() { late <- time.Since(due) })
	defer control.Stop()
	couldBeTaken := time.NewTimer(ttl)
	defer couldBeTaken.Stop()
	select {
	case <-lock.Context().Done():
		return
	case <-couldBeTaken.C:
	}
	if lock.Context().Err() != nil { // both had come
		return
	}
	if stall := <-late; stall > ttl/12 {
		t.Logf("the machine stalled: a timer of %v was late by %v", ttl*5/6, stall)
		return
	}
	t.Errorf("the holder of %q was not told when its lock could be over already, after %v", lock.Name(), ttl)
}

// watchStalls watches for stalls of the machine until the test ends.
func watchStalls(t *testing.T) *stall.Watch {
	t.Helper()
	w := stall.Start()
	t.Cleanup(w.Stop)
	return w
}

// excuses reports whether the machine has stalled since the given time for so long that the order of two events shows
// nothing: that a holder is told of the end of its lock, and ⅙ TTL later that the server lets another client have it.
func excuses(t *testing.T, stalls *stall.Watch, since time.Time, ttl time.Duration) bool {
	t.Helper()
	longest := stalls.Longest(since)
	if longest < ttl/12 {
		return false
	}
	t.Logf("the machine stalled for %v", longest)
	return true
}
