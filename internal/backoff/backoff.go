// Package backoff has the pauses between attempts.
package backoff

import (
	"context"
	"time"
)

// First and Last are the shortest and the longest pause between attempts that follow each other.
const (
	First = 5 * time.Millisecond
	Last  = 50 * time.Millisecond
)

// Rarest is the longest pause between two looks at a name that is held for long, on average.
const Rarest = 500 * time.Millisecond

// Longer doubles a pause up to Last.
func Longer(pause time.Duration) time.Duration { return min(2*pause, Last) }

// Patient is Longer for attempts that may go on for hours: it also lets the pause grow with the time since they began, up
// to mostPatient.
func Patient(pause time.Duration, began time.Time) time.Duration {
	return max(Longer(pause), min(time.Since(began)/50, mostPatient))
}

const mostPatient = 2 * time.Second

// Sleep returns nil after d, or the cause of the end of ctx if that comes first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
