package leasetable

import "context"

// WaitInVain waits for permission to wait for a row while the row-wait limiter is saturated.
func WaitInVain(ctx context.Context) error {
	p := newRowWaitLimiter()
	locked := func() bool { return false }
	for !p.saturated() {
		_, _ = p.acquire(ctx, locked)
	}
	_, err := p.acquire(ctx, locked)
	return classify(err)
}
