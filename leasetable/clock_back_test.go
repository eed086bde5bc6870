package leasetable_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

const clockBackTTL = 15 * time.Second

// onClockSetBack runs a test on a server whose clock was set back by an hour after a process had acquired "x" and died:
// alone and, with an option, with the only permit.
func onClockSetBack(t *testing.T, test func(t *testing.T, server *memory.Server, one ...sqllock.Option)) {
	t.Helper()
	for _, c := range []struct {
		name string
		opts []sqllock.Option
		die  func(t *testing.T, s *memory.Store, id []byte) error
	}{
		{"alone", nil, func(t *testing.T, s *memory.Store, id []byte) error {
			t.Helper()
			_, err := s.Insert(t.Context(), &store.Request{Name: "x", ID: id})
			return err
		}},
		{"permit", []sqllock.Option{leasetable.WithLimit(1)}, func(t *testing.T, s *memory.Store, id []byte) error {
			t.Helper()
			_, err := s.AcquirePermit(t.Context(), "x", store.State{}, id, 1)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			locktest.OncePerEngine(t)
			synctest.Test(t, func(t *testing.T) {
				server := memory.NewServer(memory.Postgres)
				dead, id := server.Store(), make([]byte, 16)
				_, err := dead.OpenLease(t.Context(), store.LeaseRow{ID: id, TTL: clockBackTTL}, time.Second)
				if err := errors.Join(err, c.die(t, dead, id)); err != nil {
					t.Fatal(err)
				}
				server.SetClock(-time.Hour)
				test(t, server, c.opts...)
			})
		})
	}
}

// The row says that the lease lasts for an hour; its waiters can end it after a TTL. I11.
func TestWhoGivesUpEarlyWaitsForADeadHolderThoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	onClockSetBack(t, func(t *testing.T, server *memory.Server, one ...sqllock.Option) {
		began := time.Now()
		early := append(slices.Clip(one), leasetable.WithGiveUpEarly(), sqllock.WithWait(clockBackTTL-time.Second))
		if _, err := keep(t, server.Store()).Acquire(t.Context(), "x", early...); !errors.Is(err, sqllock.ErrHeld) || time.Since(began) > time.Second {
			t.Errorf("a wait of less than a TTL, after %v: %v", time.Since(began), err)
		}
		early = append(early, sqllock.WithWait(clockBackTTL*5/3))
		lock, err := keep(t, server.Store()).Acquire(t.Context(), "x", early...)
		if err != nil {
			t.Fatalf("a wait of more than a TTL, after %v: %v", time.Since(began), err)
		}
		release(t, lock)
	})
}

// Each try ends at once, and the second one a TTL after the first knows as much as a waiter. I11.
func TestATryEndsADeadLeaseThatAnEarlierOneFoundThoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	onClockSetBack(t, func(t *testing.T, server *memory.Server, one ...sqllock.Option) {
		l := keep(t, server.Store())
		mustBeKept := func() {
			t.Helper()
			if _, err := l.TryAcquire(t.Context(), "x", one...); !errors.Is(err, sqllock.ErrHeld) {
				t.Fatal(err)
			}
		}
		mustBeKept()
		pass(clockBackTTL - time.Second)
		mustBeKept()
		pass(2 * time.Second)
		lock, err := l.TryAcquire(t.Context(), "x", one...)
		if err != nil {
			t.Fatal(err)
		}
		release(t, lock)
	})
}

// I11.
func TestTriesDoNotEndTheLeaseOfALiveHolderThoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		lock := take(t, keep(t, server.Store(), leasetable.WithTTL(clockBackTTL)), "x")
		l := keep(t, server.Store())
		for range 3 {
			server.SetClock(-time.Hour)
			for range 2 {
				mustBeHeld(t, l, "x")
				pass(clockBackTTL + time.Second)
			}
		}
		if err := lock.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		release(t, lock)
	})
}
