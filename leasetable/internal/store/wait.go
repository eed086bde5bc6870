package store

import (
	"context"
	"time"
)

func (s *Database) NoteWaiter(ctx context.Context, name string, since int64, within time.Duration) (noted bool, err error) {
	rows, err := s.change(ctx, s.Work, noteWaiter, []byte(name), since, within.Microseconds())
	return rows > 0, err
}

func (s *Database) RemoveWaiter(ctx context.Context, name string, since int64) error {
	_, err := s.change(ctx, s.Work, removeWaiter, []byte(name), since)
	return err
}

func (s *Database) NoteExclusiveWaiter(ctx context.Context, name string, us any) error {
	_, err := s.change(ctx, s.Work, noteExclusiveWaiter, row{[]byte(name)}, us)
	return err
}
