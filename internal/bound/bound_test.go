package bound_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

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
