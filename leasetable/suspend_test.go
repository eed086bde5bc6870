package leasetable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	suspended "github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/sqltest"
)

// These tests simulate a suspension of the machine for all tests, so no other test may run at the same time.

// I5.
func TestALeaseIsOverAfterASuspensionOfTheMachine(t *testing.T) { //nolint:paralleltest // see above
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.SQLite(t))
	lease := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x")
	suspended.Pretend(40 * time.Minute)
	if left := lease.Remaining(); left > 10*time.Minute || left == 0 {
		t.Errorf("40 minutes after it was taken it has %v left", left)
	}
	suspended.Pretend(30 * time.Minute)
	if cause := await(t, lease); !errors.Is(cause, sqllock.ErrExpired) {
		t.Errorf("the holder was told %v", cause)
	}
}

// The timer of the renewals stands still during a suspension, and the deadline does not.
func TestARenewalIsSentSoonAfterASuspensionOfTheMachine(t *testing.T) { //nolint:paralleltest // see above
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		lease := take(t, keep(t, memory.NewServer(memory.Postgres).Store(), leasetable.WithTTL(time.Hour)), "x")
		suspended.Pretend(25 * time.Minute)
		pass(2 * time.Second)
		if left := lease.Remaining(); left < 45*time.Minute {
			t.Errorf("two seconds after a suspension it has %v left: it was not renewed", left)
		}
		release(t, lease)
	})
}

// asleep is a store whose machine is suspended, once, when the server has run a statement and its answer is under way.
type asleep struct {
	*memory.Store

	next time.Duration // how long
}

func (s *asleep) suspend() {
	suspended.Pretend(s.next)
	s.next = 0
}

func (s *asleep) Renew(ctx context.Context, id []byte) (bool, int64, error) {
	defer s.suspend()
	return s.Store.Renew(ctx, id)
}

func (s *asleep) Read(ctx context.Context, name string) (store.State, error) {
	defer s.suspend()
	return s.Store.Read(ctx, name)
}

func (s *asleep) SetMetadata(ctx context.Context, h store.Held, metadata []byte) (bool, error) {
	defer s.suspend()
	return s.Store.SetMetadata(ctx, h, metadata)
}

// The timer of the deadline comes to a suspension up to a second later. I5.
func TestNothingSucceedsWithALeaseThatASuspensionOutlasted(t *testing.T) { //nolint:paralleltest // see above
	locktest.OncePerEngine(t)
	for what, f := range map[string]func(context.Context, *asleep, *leasetable.Lease) error{ //nolint:paralleltest // see above
		"Renew": func(ctx context.Context, s *asleep, lease *leasetable.Lease) error {
			s.suspend()
			return lease.Renew(ctx)
		},
		"Renew, meanwhile": func(ctx context.Context, _ *asleep, lease *leasetable.Lease) error { return lease.Renew(ctx) },
		"Verify":           func(ctx context.Context, _ *asleep, lease *leasetable.Lease) error { return lease.Verify(ctx) },
		"SetMetadata": func(ctx context.Context, _ *asleep, lease *leasetable.Lease) error {
			return lease.SetMetadata(ctx, "x")
		},
		"Guard": func(ctx context.Context, s *asleep, lease *leasetable.Lease) error {
			s.suspend()
			tx := s.Begin()
			defer func() { _ = tx.Rollback(ctx) }() // the guard failed
			return lease.Guard(ctx, leasetable.PgxTx(tx))
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &asleep{Store: memory.NewServer(memory.Postgres).Store()}
				lease := take(t, keep(t, s, leasetable.WithTTL(time.Hour)), "x")
				s.next = 2 * time.Hour
				if err := f(t.Context(), s, lease); !errors.Is(err, sqllock.ErrExpired) || lease.Context().Err() == nil {
					t.Errorf("%v; the lock has ended: %t", err, lease.Context().Err() != nil)
				}
			})
		})
	}
}

// I39.
func TestOfAllNamesNoneIsHeldIfASuspensionOutlastsOneOfThem(t *testing.T) { //nolint:paralleltest // see above
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		l, other := keep(t, server.Store(), leasetable.WithTTL(time.Hour)), keep(t, server.Store(), leasetable.WithTTL(24*time.Hour))
		held := take(t, other, "b")
		failed := make(chan error, 1)
		go func() {
			_, err := sqllock.AcquireAll(t.Context(), l, []string{"a", "b"})
			failed <- err
		}()
		pass(10100 * time.Millisecond) // it has a, and waits for b
		suspended.Pretend(2 * time.Hour)
		release(t, held)
		if err := <-failed; !errors.Is(err, sqllock.ErrExpired) {
			t.Errorf("AcquireAll: %v", err)
		}
		release(t, take(t, other, "a"), take(t, other, "b"))
	})
}

// I39.
func TestOfNamesThatAreTriedTogetherNoneIsHeldIfASuspensionOutlastsOneOfThem(t *testing.T) { //nolint:paralleltest // see above
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s, other := &scripted{Store: server.Store()}, keep(t, server.Store(), leasetable.WithTTL(24*time.Hour))
		take(t, keep(t, &scripted{Store: server.Store(), renew: notRenewed}), "b")
		pass(2 * time.Second) // it has expired
		next := 2 * time.Hour
		s.over = func(ctx context.Context, req *store.Request, from []byte) (int64, error) {
			pass(100 * time.Millisecond) // a is held meanwhile
			suspended.Pretend(next)
			next = 0
			return s.Store.Takeover(ctx, req, from)
		}
		leases, err := keep(t, s, leasetable.WithTTL(time.Hour)).TryAcquireAll(t.Context(), []string{"a", "b"})
		if leases != nil || !sqllock.IsRetryable(err) || next != 0 {
			t.Errorf("%d leases: %v; there was a suspension: %t", len(leases), err, next == 0)
		}
		release(t, take(t, other, "a"), take(t, other, "b"))
	})
}
