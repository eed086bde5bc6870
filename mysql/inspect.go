package mysql

import (
	"context"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// look asks who holds the lock called name, and what more the user may see.
func (l *Locker) look(ctx context.Context, op, name string) (sqllock.Holder, bool, error) {
	type answer struct {
		holder sqllock.Holder
		held   bool
	}
	a, err := session.Ask(ctx, l.engine, op, name, func(ctx context.Context, c session.Conn[string]) (a answer, err error) {
		a.holder, a.held, err = c.Holder(ctx, name)
		if err == nil && a.held {
			err = c.(*conn).details(ctx, name, &a.holder)
		}
		return a, err
	})
	return a.holder, a.held, err
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
