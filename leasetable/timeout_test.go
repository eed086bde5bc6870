package leasetable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock/leasetable"
)

func TestATimeoutEndsItsContext(t *testing.T) {
	t.Parallel()
	const d = 150 * time.Millisecond
	began := time.Now()
	ctx, done := leasetable.Timeout(t.Context(), d)
	defer done()
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	<-child.Done()
	if after := time.Since(began); after < d || !errors.Is(ctx.Err(), context.DeadlineExceeded) ||
		!errors.Is(context.Cause(child), context.DeadlineExceeded) {
		t.Errorf("after %v: %v", after, ctx.Err())
	}
}

func TestATimeoutEndsWithItsParentAndWhenItIsNeededNoMore(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancel(t.Context())
	ctx, done := leasetable.Timeout(parent, time.Hour)
	defer done()
	other, done := leasetable.Timeout(parent, 0)
	done()
	if ctx.Err() != nil || !errors.Is(other.Err(), context.Canceled) {
		t.Errorf("%v, %v", ctx.Err(), other.Err())
	}
	cancel()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error(ctx.Err())
	}
}
