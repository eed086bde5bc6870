package locktest

import (
	"context"
	"time"
)

// mostPause bounds the pauses of Poll. Tests that poll often, a database above all, take the processors from what they wait for.
const mostPause = 40 * time.Millisecond

// Poll calls done after pauses that grow, until done returns true. It reports false if ctx ends first.
func Poll(ctx context.Context, done func() bool) bool {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := time.Millisecond; !done(); pause = min(2*pause, mostPause) {
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
