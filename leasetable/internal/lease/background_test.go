package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
