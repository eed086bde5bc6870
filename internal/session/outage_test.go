package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/internal/session"
)

var (
	errRefused  = errors.New("connection refused")
	errPassword = errors.New("wrong password")
	unreachable = &session.UnavailableError{Err: errRefused}
	standby     = &session.PassingRefusalError{Refused: &refusal.Error{Seen: "a standby"}}
	full        = &session.LimitError{Err: errRefused, OfServer: true}
)

type result struct {
	lock sqllock.Lock
	err  error
}

// acquiring acquires w with l in another goroutine.
func acquiring(ctx context.Context, l *session.Locker[string], w session.Want[string]) <-chan result {
	got := make(chan result, 1)
	go func() {
		lock, err := l.Acquire(ctx, w)
		got <- result{lock, err}
	}()
	return got
}

// ways returns an exclusive and a shared request.
func ways() []session.Want[string] {
	return []session.Want[string]{{Name: "x", Key: "x"}, {Name: "x", Key: "x", Shared: true}}
}

func TestAWaitOutlastsAServerThatIsAwayAtFirst(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		for _, away := range []error{unreachable, standby, full} {
			onBoth(t, func(t *testing.T, s *server) {
				var told []sqllock.Event
				l := s.newLockerTold(t, func(_ context.Context, e sqllock.Event) {
					if e.Kind == "retrying" {
						told = append(told, e)
					}
				})
				s.goAway(away)
				if _, err := l.TryAcquire(t.Context(), w); !errors.Is(err, away) {
					t.Errorf("TryAcquire: %v", err)
				}
				tries := len(s.opened())
				got := acquiring(t.Context(), l, w)
				pass(time.Hour)
				synctest.Wait()
				if n := len(got); n != 0 {
					t.Fatalf("Acquire: %v", (<-got).err)
				}
				if len(told) != 1 || told[0].Name != "x" || !errors.Is(told[0].Err, away) {
					t.Errorf("told: %+v", told)
				}
				if n := len(s.opened()) - tries; n < int(time.Hour/(4*time.Second)) || n > int(time.Hour/time.Second) {
					t.Errorf("%d attempts in an hour", n)
				}
				s.goAway(nil)
				back := time.Now()
				if r := <-got; r.err != nil {
					t.Error(r.err)
				}
				if took := time.Since(back); took > 3*time.Second {
					t.Errorf("it had the lock %v after the server was back", took)
				}
			})
		}
	}
}

func TestAWaitOutlastsARestartOfTheServer(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		onBoth(t, func(t *testing.T, s *server) {
			l, other := s.newLocker(t), s.newLocker(t)
			held := mustTry(t, other, "x")
			got := acquiring(t.Context(), l, w)
			pass(10 * time.Second)
			s.goAway(unreachable)
			pass(time.Minute)
			if held.Context().Err() == nil {
				t.Error("the holder was not told")
			}
			if len(got) != 0 {
				t.Fatalf("Acquire: %v", (<-got).err)
			}
			s.goAway(unreachable, standby, nil)
			if r := <-got; r.err != nil || !s.isHeld() {
				t.Errorf("Acquire: %v; it is held: %t", r.err, s.isHeld())
			}
		})
	}
}

func TestAWaitThatEndsInTroubleSaysWhatItWas(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		onBoth(t, func(t *testing.T, s *server) {
			l, other := s.newLocker(t), s.newLocker(t)
			mustTry(t, other, "x")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			waits := []<-chan result{acquiring(ctx, l, w)}
			synctest.Wait()
			waits = append(waits, acquiring(ctx, l, w)) // in the queue behind the first
			pass(10 * time.Second)
			s.goAway(unreachable)
			began := time.Now()
			for _, got := range waits {
				r := <-got
				if !errors.Is(r.err, context.DeadlineExceeded) || !errors.Is(r.err, errRefused) || errors.Is(r.err, sqllock.ErrHeld) || !sqllock.IsRetryable(r.err) {
					t.Errorf("Acquire: %v", r.err)
				}
			}
			if took := time.Since(began); took != 50*time.Second {
				t.Errorf("it ended after %v", took)
			}
			s.goAway(nil)
			synctest.Wait()
			mustTry(t, l, "x")
		})
	}
}

func TestAWaitEndsWithWhatDoesNotPass(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		for _, final := range []error{
			&session.UnavailableError{Err: errPassword, Permanent: true},
			&refusal.Error{Seen: "a pooler"},
			&session.LimitError{Err: errors.New("this Locker's own")},
		} {
			onBoth(t, func(t *testing.T, s *server) {
				l := s.newLocker(t)
				s.goAway(unreachable, final)
				if r := <-acquiring(t.Context(), l, w); !errors.Is(r.err, final) {
					t.Errorf("Acquire: %v", r.err)
				}
			})
		}
	}
}

func TestAWaitInTroubleEndsWithItsLocker(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		onBoth(t, func(t *testing.T, s *server) {
			l := s.newLocker(t)
			s.goAway(unreachable)
			got := acquiring(t.Context(), l, w)
			pass(time.Minute)
			l.Close()
			if r := <-got; !errors.Is(r.err, sqllock.ErrClosed) {
				t.Errorf("Acquire: %v", r.err)
			}
		})
	}
}

// A long wait costs the connection that waits. The other one, on which the lock was tried for, is closed after five seconds
// without use, and a later caller gets another one.
func TestALongWaitCostsOneConnection(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		onBoth(t, func(t *testing.T, s *server) {
			holder, waiter := s.newLocker(t), s.newLocker(t)
			lock, err := holder.TryAcquire(t.Context(), session.Want[string]{Name: "x", Key: "x"})
			if err != nil {
				t.Fatal(err)
			}
			before := s.living()
			got := acquiring(t.Context(), waiter, w)
			pass(3 * time.Second)
			if n := s.living() - before; n != 2 {
				t.Errorf("a wait has %d connections at first; want 2", n)
			}
			pass(10 * time.Second)
			if n := s.living() - before; n != 1 {
				t.Errorf("a long wait has %d connections; want 1", n)
			}
			other, err := waiter.TryAcquire(t.Context(), session.Want[string]{Name: "y", Key: "y"})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			if err := other.Context().Err(); err != nil {
				t.Errorf("a lock that is held was ended: %v", context.Cause(other.Context()))
			}
			if err := errors.Join(lock.Release(t.Context()), other.Release(t.Context())); err != nil {
				t.Error(err)
			}
			if r := <-got; r.err != nil {
				t.Error(r.err)
			}
		})
	}
}

// A Locker that holds nothing leaves its connection to others, and opens one for the next lock.
func TestAnIdleLockerHasNoConnection(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		for range 2 {
			lock := mustTry(t, l, "x")
			pass(time.Minute)
			if n := s.living(); n != 1 {
				t.Errorf("a Locker that holds a lock has %d connections", n)
			}
			if err := lock.Release(t.Context()); err != nil {
				t.Error(err)
			}
			pass(12 * time.Second)
			if n := s.living(); n != 0 {
				t.Errorf("an idle Locker has %d connections", n)
			}
		}
	})
}

// While a Locker is being closed, its sessions can end in other ways.
func TestAWaitWhoseSessionBreaksDuringCloseSaysThatItsLockerIsClosed(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		onBoth(t, func(t *testing.T, s *server) {
			l, other := s.newLocker(t), s.newLocker(t)
			mustTry(t, other, "x")
			got := acquiring(t.Context(), l, w)
			pass(10 * time.Second)
			closed := make(chan struct{})
			go func() {
				l.Close()
				close(closed)
			}()
			synctest.Wait()
			s.goAway(unreachable)
			if r := <-got; !errors.Is(r.err, sqllock.ErrClosed) {
				t.Errorf("Acquire: %v", r.err)
			}
			<-closed
		})
	}
}
