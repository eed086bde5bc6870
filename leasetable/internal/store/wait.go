package store

import (
	"context"
	"time"
)

// waits are the steps of waiters.
type waits struct{ *database }

// NoteWaiter implements Waits.
func (s waits) NoteWaiter(ctx context.Context, name string, since int64, within time.Duration) (noted bool, err error) {
	rows, err := s.change(ctx, s.Work, noteWaiter, []byte(name), since, within.Microseconds())
	return rows > 0, err
}

// RemoveWaiter implements Waits.
func (s waits) RemoveWaiter(ctx context.Context, name string, since int64) error {
	_, err := s.change(ctx, s.Work, removeWaiter, []byte(name), since)
	return err
}

// NoteExclusiveWaiter implements Waits.
func (s waits) NoteExclusiveWaiter(ctx context.Context, name string, us any) error {
	_, err := s.change(ctx, s.Work, noteExclusiveWaiter, row{[]byte(name)}, us)
	return err
}
