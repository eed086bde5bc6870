package pg

import (
	"context"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// look asks who holds the lock called name.
func (l *Locker) look(ctx context.Context, op, name string) (sqllock.Holder, bool, error) {
	var found struct {
		holder sqllock.Holder
		held   bool
	}
	err := l.engine.Use(ctx, op, name, func(ctx context.Context, c session.Conn[int64]) (err error) {
		found.holder, found.held, err = c.Holder(ctx, Key(name))
		return err
	})
	if err != nil { // found may still be written to
		return sqllock.Holder{}, false, err
	}
	return found.holder, found.held, nil
}
