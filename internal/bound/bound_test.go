package bound_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/bound"
)

func TestTheCauseOfAnEndIsSaidOnce(t *testing.T) {
	t.Parallel()
	trouble := errors.New("connection refused")
	for _, c := range []struct {
		cause, err error
		want       string
	}{
		{context.DeadlineExceeded, context.Canceled, "context deadline exceeded"},
		{context.DeadlineExceeded, fmt.Errorf("%w", context.Canceled), "context deadline exceeded"},
		{context.Canceled, fmt.Errorf("open: %w", context.Canceled), "open: context canceled"},
		{context.DeadlineExceeded, trouble, "context deadline exceeded: connection refused"},
	} {
		got := bound.WithCause(c.cause, c.err)
		if got.Error() != c.want || !errors.Is(got, c.cause) {
			t.Errorf("WithCause(%v, %v) = %v; want %s", c.cause, c.err, got, c.want)
		}
	}
}

// past is a context whose deadline, a time of day, has passed by a clock that was set ahead.
type past struct{ context.Context }

func (past) Deadline() (time.Time, bool) { return time.Now().Add(-time.Hour), true }

func TestADeadlineThatPassedByTheClockAloneIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if bound.Ended(past{ctx}) {
			t.Error("the context has ended")
		}
		time.AfterFunc(70*time.Millisecond, cancel)
		if !bound.Ended(past{ctx}) {
			t.Error("the context ended a moment later, and that is not seen")
		}
	})
}
