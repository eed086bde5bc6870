package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// The error does not mean that the caller's own deadline has passed.
func TestWhoMayNotWaitForARowIsToAskAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	err := store.WaitInVain(ctx)
	if !sqllock.IsRetryable(err) || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
