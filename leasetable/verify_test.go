package leasetable_test

import (
	"context"
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
	"github.com/sqllock/sqllock/sqltest"
)

// lockKinds are the options of a lock that has the whole name, and of one that shares it.
var lockKinds = map[string][]sqllock.Option{"whole": nil, "permit": {leasetable.WithLimit(3)}}

// mustEnd verifies a lock, which must be over.
func mustEnd(t *testing.T, lock *leasetable.Lease, want error) {
	t.Helper()
	if err := lock.Verify(t.Context()); !errors.Is(err, want) || lock.Context().Err() == nil {
		t.Errorf("Verify: %v; the lock has ended: %t; want %v", err, lock.Context().Err() != nil, want)
	}
}

// The clock of the database is set ahead, or that of the holder stood still, so that the next renewal is not due yet. I20.
func TestALockWhoseLeaseIsOverInTheDatabaseIsNotVerified(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for kind, opts := range lockKinds {
		for _, gone := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				server := memory.NewServer(memory.Postgres)
				s := server.Store()
				lock := take(t, keep(t, s, leasetable.WithTTL(time.Minute)), "x", opts...)
				server.SetClock(time.Hour)
				want := sqllock.ErrExpired
				if gone { // somebody is about to take the name
					want = sqllock.ErrLost
					dead, err := s.Expired(t.Context(), 0, 1)
					if err != nil {
						t.Fatal(err)
					}
					if expired, err := s.Expire(t.Context(), dead[0].LeaseID); !expired || err != nil {
						t.Fatal(expired, err)
					}
				}
				mustEnd(t, lock, want)
				if err := lock.Release(t.Context()); !errors.Is(err, want) {
					t.Errorf("%s: Release: %v; want %v", kind, err, want)
				}
				release(t, take(t, keep(t, s), "x"))
			})
		}
	}
}

// I20.
func TestALockWhoseLeaseIsOverOnAServerIsNotVerified(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		for kind, opts := range lockKinds {
			l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
			late := take(t, l, kind, opts...)
			if err := late.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			run(t, db, "UPDATE sqllock_lease SET expires_at = (SELECT acquired_at FROM sqllock_lock WHERE name = ?)", []byte(kind))
			mustEnd(t, late, sqllock.ErrExpired)
			if err := late.Release(t.Context()); !errors.Is(err, sqllock.ErrExpired) {
				t.Errorf("%s: Release: %v", kind, err)
			}
			lost := take(t, l, kind, opts...)
			run(t, db, "DELETE FROM sqllock_lease")
			mustEnd(t, lost, sqllock.ErrLost)
		}
	})
}

// The read of a verification comes when the name has moved, and that began after it. I20, I27.
func TestALockThatMovesDuringItsVerificationIsNotLost(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		lock := take(t, keep(t, s), "x")
		s.read = func(ctx context.Context, name string) (store.State, error) {
			s.read = nil
			if err := lock.Extend(t.Context(), time.Minute); err != nil {
				t.Error(err)
			}
			return s.Store.Read(ctx, name)
		}
		mustVerify(t, lock)
		release(t, lock)
	})
}

// All locks of the longer lease are verified while one moves to it: the read comes before the move, and its answer after that.
func TestALockThatMovesDuringTheVerificationOfItsNewLeaseIsNotLost(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		l := keep(t, s)
		long := take(t, l, "long")
		if err := long.Extend(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		lock := take(t, l, "x")
		read, moved := make(chan struct{}), make(chan struct{})
		s.held = func(ctx context.Context, id []byte, names []string) ([]store.State, error) {
			states, err := s.Store.StillHeld(ctx, id, names)
			if slices.Contains(names, "long") {
				s.held = nil
				close(read)
				<-moved
			}
			return states, err
		}
		s.move = func(ctx context.Context, name string, token int64, from, to []byte) (bool, error) {
			s.renew = func(ctx context.Context, id []byte) (bool, int64, error) { // somebody has released another name by force
				there, changes, err := s.Store.Renew(ctx, id)
				return there, changes + 1, err
			}
			if err := long.Renew(t.Context()); err != nil {
				t.Error(err)
			}
			<-read
			return s.Store.Move(ctx, name, token, from, to)
		}
		if err := lock.Extend(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		close(moved)
		synctest.Wait()
		mustVerify(t, lock)
		release(t, lock, long)
	})
}
