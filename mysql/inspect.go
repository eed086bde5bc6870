package mysql

import (
	"context"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// look asks who holds the lock called name, and what more the user may see.
func (l *Locker) look(ctx context.Context, op, name string) (sqllock.Holder, bool, error) {
	var found struct {
		holder sqllock.Holder
		held   bool
	}
	err := l.engine.Use(ctx, op, name, func(ctx context.Context, c session.Conn[string]) (err error) {
		found.holder, found.held, err = c.Holder(ctx, name)
		if err == nil && found.held {
			err = c.(*conn).details(ctx, name, &found.holder)
		}
		return err
	})
	if err != nil { // found may still be written to
		return sqllock.Holder{}, false, err
	}
	return found.holder, found.held, nil
}

// details adds what the statement that says who holds a lock does not: it takes ten times as long,
// too long for a failed try.
func (c *conn) details(ctx context.Context, name string, h *sqllock.Holder) error {
	err := c.sc.QueryRowContext(ctx, detailsSQL, h.Session, ServerName(c.database, name)).Scan(&h.Owner, &h.Waiters)
	if mayNotSee(err) {
		err = c.sc.QueryRowContext(ctx, ownerSQL, h.Session).Scan(&h.Owner)
	}
	h.Owner = strings.TrimPrefix(h.Owner, "sqllock/")
	return err
}
