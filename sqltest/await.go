package sqltest

import (
	"context"
	"time"
)

// await asks again and again until done says so or returns an error. It returns
// the cause if ctx ends first.
func await(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
