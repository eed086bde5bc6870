package store

import (
	"context"
	"time"
)

// waitSteps notes waiters in the row of a name, and opens their turns.
type waitSteps struct{ *database }

func (s waitSteps) NoteWaiter(ctx context.Context, name string, since int64, within time.Duration) (noted bool, err error) {
	rows, err := s.change(ctx, s.Work, noteWaiter, []byte(name), since, within.Microseconds())
	return rows > 0, err
}

func (s waitSteps) RemoveWaiter(ctx context.Context, name string, since int64) error {
	_, err := s.change(ctx, s.Work, removeWaiter, []byte(name), since)
	return err
}

func (s waitSteps) NoteExclusiveWaiter(ctx context.Context, name string, us any) error {
	_, err := s.change(ctx, s.Work, noteExclusiveWaiter, row{[]byte(name)}, us)
	return err
}
