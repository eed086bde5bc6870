package session_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/session"
)

// brieflyTrusted is 5/6 of the TTL of a session that waits.
const (
	waitTTL        = 12 * time.Second
	brieflyTrusted = 10 * time.Second
)

// waited returns a lock that another Locker has released after 100 ms, and its Locker, on a server that keeps a session
// that waits for waitTTL. The answer to the wait came at once.
func waited(t *testing.T, keep ...lag) (*server, *session.Locker[string], sqllock.Lock) {
	t.Helper()
	s := newServer()
	s.waitTTL = waitTTL
	s.delay(keeps, keep...)
	l := s.newLocker(t)
	releaseAfter(t, 100*time.Millisecond, mustTry(t, s.newLocker(t), "x"))
	lock, err := l.Acquire(t.Context(), want("x"))
	if err != nil {
		t.Fatal(err)
	}
	return s, l, lock
}

func releaseAfter(t *testing.T, d time.Duration, lock sqllock.Lock) {
	t.Helper()
	time.AfterFunc(d, func() {
		if err := lock.Release(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// I3.
func TestALockIsGivenBeforeItsSessionIsKeptForLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, lock := waited(t, lag{answer: 5 * time.Second})
		if n := len(s.statements(keeps)); n != 0 {
			t.Errorf("the caller waited for %d more statements", n)
		}
		pass(100 * ttl)
		if err := context.Cause(lock.Context()); err != nil {
			t.Error(err)
		}
		if n := len(s.statements(keeps)); n != 1 {
			t.Errorf("the session was kept %d times", n)
		}
	})
}

func TestALockEndsSoonIfItsSessionIsNotKeptForLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, lock := waited(t, lag{hangs: true})
		mustEndAt(t, lock, func() time.Time {
			all := s.statements(waits)
			return all[len(all)-1].at.Truncate(time.Second).Add(brieflyTrusted)
		})
	})
}

// The answer to the wait comes when the session that waits has not long to live.
func TestASessionIsKeptForLongerFirstIfItsWaitTookLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.waitTTL = waitTTL
		l := s.newLocker(t)
		releaseAfter(t, time.Millisecond, mustTry(t, s.newLocker(t), "x"))
		s.delay(waits, lag{request: time.Second, answer: waitTTL - 2*time.Second}, lag{})
		if _, err := l.Acquire(t.Context(), want("x")); err != nil {
			t.Fatal(err)
		}
		if n := len(s.statements(keeps)); n != 1 {
			t.Errorf("the session was kept %d times before the lock was given", n)
		}
	})
}

// A holder of some milliseconds costs no statement but its wait and its release.
func TestASessionOfAShortHoldIsNotKeptForLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, lock := waited(t)
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(s.statements(keeps)); n != 0 {
			t.Errorf("the session was kept %d times", n)
		}
	})
}

// What a Locker says of how long its locks last is what otellock's alerts go by.
func TestALockThatIsKeptSoonIsNotSaidToEndSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, l, _ := waited(t)
		if left, held := l.Remaining(); !held || left < trustedFor-time.Second {
			t.Errorf("%v are left (%t)", left, held)
		}
	})
}

// An error that the server answers Keep with, as to a statement that somebody cancelled, costs no lock.
func TestAKeepThatTheServerRefusesIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, lock := waited(t, lag{refused: true}, lag{refused: true}, lag{refused: true}, lag{})
		pass(100 * ttl)
		if err := context.Cause(lock.Context()); err != nil {
			t.Error(err)
		}
		if n := len(s.statements(keeps)); n != 4 {
			t.Errorf("Keep was sent %d times", n)
		}
	})
}

// The test simulates a suspension of the machine for all tests, so no other test may run at the same time.
func TestAHeartbeatIsSentSoonAfterASuspensionOfTheMachine(t *testing.T) { //nolint:paralleltest // see above
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		lock := mustTry(t, s.newLocker(t), "x")
		pass(time.Second)
		before := len(s.statements(pings))
		clock.Pretend(trustedFor - 10*time.Second)
		pass(2 * time.Second)
		if n := len(s.statements(pings)) - before; n != 1 {
			t.Errorf("%d heartbeats were sent within two seconds after a suspension", n)
		}
		pass(100 * ttl)
		if err := context.Cause(lock.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A slice of a wait asks the server what a heartbeat asks.
func TestASessionThatWaitsSendsNoHeartbeat(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		lock := mustTry(t, s.newLocker(t), "x")
		got := acquiring(t.Context(), s.newLocker(t), want("x"))
		pass(10 * ttl)
		waiting := s.statements(waits)[0].on
		if n := len(slices.DeleteFunc(s.statements(pings), func(p statement) bool { return p.on != waiting })); n != 1 {
			t.Errorf("the session that waits has sent %d heartbeats; want the one of its opening", n)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if r := <-got; r.err != nil {
			t.Error(r.err)
		}
	})
}
