package lease_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
)

// An answer that comes soon after the caller has left still counts: nothing is unknown then.
func TestAStatementMayBeAnsweredForAMomentAfterItsCallerHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		caller, leave := context.WithCancelCause(t.Context())
		ctx, done := lease.Linger(caller, time.Hour)
		defer done()
		leave(errors.New("the caller left"))
		left := time.Now()
		synctest.Wait()
		if ctx.Err() != nil {
			t.Errorf("it ended with its caller: %v", ctx.Err())
		}
		<-ctx.Done()
		if after := time.Since(left); after != 100*time.Millisecond || !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("it ended %v after its caller had left: %v", after, ctx.Err())
		}
	})
}

func TestAStatementIsBoundedWhateverItsCallerDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, done := lease.Linger(t.Context(), time.Second)
		<-ctx.Done()
		if after := time.Since(began); after != time.Second || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("it ended after %v: %v", after, ctx.Err())
		}
		done()
		ended, done := lease.Linger(t.Context(), time.Hour)
		done()
		if !errors.Is(ended.Err(), context.Canceled) {
			t.Errorf("it goes on when it is needed no more: %v", ended.Err())
		}
	})
}

// The deadline of the caller is not that of the statement.
func TestACallerWhoseTimeIsOverHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		caller, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx, done := lease.Linger(caller, time.Hour)
		defer done()
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("it looks like a timeout of the statement: %v", ctx.Err())
		}
	})
}

// Its statements fail at once then, and their error is the caller's.
func TestWhatCannotStartSinceTheLockerIsClosedRunsInline(t *testing.T) {
	t.Parallel()
	failed := errors.New("its context has ended")
	_, left, err := lease.OrLeave(t.Context(),
		func(func()) error { return errors.New("closed") },
		func() (int, error) { return 1, failed },
		func(int, error) { t.Error("the caller has left") })
	if left || !errors.Is(err, failed) {
		t.Errorf("it returned %v; left: %v", err, left)
	}
}

func TestACallerThatLeavesLearnsWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, failed := range []error{nil, errors.New("it failed")} {
			caller, leave := context.WithCancelCause(t.Context())
			why := errors.New("the caller left")
			leave(why)
			answer, given, late := make(chan struct{}), 0, error(nil)
			got, left, err := lease.OrLeave(caller,
				func(run func()) error { go run(); return nil },
				func() (int, error) { <-answer; return 1, failed },
				func(v int, err error) { given, late = v, err })
			close(answer)
			synctest.Wait()
			if got != 0 || !left || !errors.Is(err, why) || given != 1 || !errors.Is(late, failed) {
				t.Errorf("with %v it returned %v, %v, %v, and late %v, %v", failed, got, left, err, given, late)
			}
		}
	})
}

// A driver ends it.
func TestACallerWhoseStatementEndsItsGoroutineIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, left, err := lease.OrLeave(t.Context(),
			func(run func()) error { go run(); return nil },
			func() (int, error) { runtime.Goexit(); return 1, nil },
			nil)
		if left || !errors.Is(err, dberr.ErrUnreturned) {
			t.Errorf("it returned %v; left: %v", err, left)
		}
	})
}
