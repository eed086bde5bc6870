package leasetable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// tick is the maximum delay of the end of such a context. The end of a caller is noticed at one tick and handled at the
// next.
const tick = 100 * time.Millisecond

func TestATimeoutEndsItsContext(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{time.Millisecond, tick, 150 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, done := leasetable.Timeout(t.Context(), d)
			defer done()
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			<-child.Done()
			if after := time.Since(began); after < d || after > d+tick {
				t.Errorf("one of %v ended after %v", d, after)
			}
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(child), context.DeadlineExceeded) {
				t.Errorf("it ended with %v, and its child with %v", ctx.Err(), context.Cause(child))
			}
		})
	}
}

func TestATimeoutEndsAfterItsCallerAndWhenItIsNeededNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		caller, leave := context.WithCancel(t.Context())
		ctx, end := leasetable.Timeout(caller, time.Hour)
		defer end()
		other, done := leasetable.Timeout(caller, 200*time.Millisecond)
		done()
		if ctx.Err() != nil || !errors.Is(other.Err(), context.Canceled) {
			t.Errorf("%v, %v", ctx.Err(), other.Err())
		}
		leave()
		left := time.Now()
		<-ctx.Done()
		if after := time.Since(left); after > 2*tick {
			t.Errorf("it ended %v after its caller had left", after)
		}
		late, done := leasetable.Timeout(caller, time.Hour)
		done()
		<-late.Done()
		<-other.Done()
		pass(time.Hour) // and they stay ended
		for _, ended := range []context.Context{ctx, other, late} {
			if !errors.Is(ended.Err(), context.Canceled) {
				t.Error(ended.Err())
			}
		}
	})
}

// A caller whose deadline has passed does not count as one that has canceled.
func TestATimeoutEndsAsItsCallerDid(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{150 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			caller, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			ctx, done := leasetable.Timeout(caller, d)
			defer done()
			<-ctx.Done()
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("after %v: %v", d, ctx.Err())
			}
		})
	}
}

func TestTheEndOfATimeoutCallsWhoAsksForIt(t *testing.T) {
	t.Parallel()
	ctx, end := leasetable.Timeout(t.Context(), time.Hour)
	called := make(chan string, 3)
	first := context.AfterFunc(ctx, func() { called <- "first" })
	second := context.AfterFunc(ctx, func() { called <- "second" })
	third := context.AfterFunc(ctx, func() { called <- "third" })
	if !second() || second() {
		t.Error("one that has not ended is not stopped once")
	}
	end()
	got := map[string]bool{<-called: true, <-called: true}
	if !got["first"] || !got["third"] || first() || third() {
		t.Errorf("called were %v", got)
	}
	late := context.AfterFunc(ctx, func() { called <- "late" })
	if by := <-called; by != "late" || late() {
		t.Errorf("called was %s", by)
	}
}

// No response was lost, which would cost the lease.
func TestALoneCallerWhoHasLeftSendsNothing(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		if unknown, err := leasetable.TakeTooLate(t.Context(), l, "x"); unknown || !errors.Is(err, context.Canceled) {
			t.Errorf("%v; it is unknown whether the name was taken: %v", err, unknown)
		}
	})
}

// Its statement is canceled, which is not a failure of the database.
func TestALoneCallerWhoLeavesIsToldThatItDid(t *testing.T) {
	t.Parallel()
	db := withTables(t, sqltest.Postgres(t))
	l := newLocker(t, db.DB)
	release(t, take(t, l, "x"))
	tx := db.MustBeginTx(t.Context(), nil)
	if _, err := tx.Exec("SELECT FROM sqllock_lock FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	told := make(chan error)
	go func() {
		_, err := l.TryAcquire(ctx, "x")
		told <- err
	}()
	eventually(t, func() bool { return waitsForRow(t, db) })
	leave()
	if err := <-told; !errors.Is(err, context.Canceled) || sqllock.IsRetryable(err) {
		t.Errorf("TryAcquire = %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	take(t, newLocker(t, db.DB), "x")
}
