package session_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// hangs makes the nth dial on s hang until the function that it returns is called.
func (s *server) hangs(nth int32) (release func()) {
	released := make(chan struct{})
	var dials atomic.Int32
	s.dial = func() {
		if dials.Add(1) == nth {
			<-released
		}
	}
	return func() { close(released) }
}

func TestADialThatHangsIsGivenUpAndItsConnectionIsClosedIfItComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		release := s.hangs(1)
		l := s.newLocker(t)
		_, err := l.TryAcquire(t.Context(), want("x"))
		const text = `sqllock: acquire "x": cannot connect: no answer within 15s: the opening of the connection did not return`
		if err == nil || err.Error() != text || errors.Is(err, context.DeadlineExceeded) || !sqllock.IsRetryable(err) {
			t.Errorf("TryAcquire during a dial that hangs: %v", err)
		}
		mustTry(t, l, "x") // by another dial
		release()
		synctest.Wait()
		if n := s.living(); n != 1 {
			t.Errorf("%d connections are open", n)
		}
	})
}

func TestADialForAWaitThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		release := s.hangs(3)
		defer release()
		l := s.newLockerWith(t, session.Limits{Sessions: 2, Locks: 100}, nil) // one of them for waits
		x := mustTry(t, s.newLocker(t), "x")
		got := acquiring(t.Context(), l, want("x"))
		pass(session.OpenTimeout + 5*time.Second)
		waited := len(s.statements(waits))
		if err := x.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if r := <-got; r.err != nil || waited == 0 {
			t.Errorf("Acquire: %v; it waited %d times on a connection", r.err, waited)
		}
	})
}

func TestCloseDoesNotWaitForADialThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		release := s.hangs(1)
		l := s.newLocker(t)
		got := acquiring(t.Context(), l, want("x"))
		synctest.Wait()
		l.Close()
		if r := <-got; !errors.Is(r.err, sqllock.ErrClosed) {
			t.Errorf("Acquire: %v", r.err)
		}
		release()
		synctest.Wait()
		if n := s.living(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
	})
}

// As t.Fatal does in a function that the driver calls.
func TestADialThatEndsItsGoroutineIsAnError(t *testing.T) {
	t.Parallel()
	for _, nth := range []int32{2, 3} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			var dials atomic.Int32
			s.dial = func() {
				if dials.Add(1) == nth {
					runtime.Goexit()
				}
			}
			l := s.newLockerWith(t, session.Limits{Sessions: 2, Locks: 100}, nil)
			releaseAfter(t, time.Minute, mustTry(t, s.newLocker(t), "x"))
			if _, err := l.Acquire(t.Context(), want("x")); err != nil {
				t.Error(err)
			}
			if len(s.statements(waits)) == 0 {
				t.Error("it did not wait on a connection")
			}
		})
	}
}
