package store

import (
	"context"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// WaitInVain waits for permission to wait for a row while the row-wait limiter is saturated.
func WaitInVain(ctx context.Context) error {
	p := newRowWaitLimiter()
	locked := func() bool { return false }
	for !p.Saturated() {
		_, _ = p.acquire(ctx, locked)
	}
	_, err := p.acquire(ctx, locked)
	return dberr.Classify(err)
}
