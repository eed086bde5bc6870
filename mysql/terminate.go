package mysql

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// Terminate ends the connection that holds the lock called name (KILL CONNECTION). It returns the holder, and whether
// it ended a connection: not when nobody held the lock, or when that connection gave it up before. It returns when that
// connection no longer holds the lock. Every other lock of the connection is lost, too.
//
// Terminate requires the same user, or the privilege CONNECTION_ADMIN (MariaDB: CONNECTION ADMIN) or SUPER. On Amazon
// RDS, where nobody has these, its master user can run CALL mysql.rds_kill(id) instead. A lock that this Locker holds is
// an error. After an error the connection may have been ended if a holder is returned, or if the Locker's own connection
// broke or ctx ended.
func (l *Locker) Terminate(ctx context.Context, name string, opts ...sqllock.Option) (holder sqllock.Holder, ended bool, err error) {
	if _, err := want("terminate", name, opts); err != nil {
		return sqllock.Holder{}, false, err
	}
	return l.engine.Terminate(ctx, name, session.Ender[string]{
		Look: func(ctx context.Context, op string) (sqllock.Holder, bool, error) {
			info, err := l.look(ctx, op, name)
			return info.Holder, info.Held, err
		},
		Is: func(c session.Conn[string], id int64) bool { return c.(*conn).id == id },
		End: func(ctx context.Context, c session.Conn[string], id int64) (bool, error) {
			return c.(*conn).end(ctx, name, id)
		},
	})
}

// end ends the connection id if it holds the lock.
func (c *conn) end(ctx context.Context, name string, id int64) (bool, error) {
	_, err := c.sc.ExecContext(ctx, victimSQL, ServerName(c.database, name), id)
	if err == nil {
		_, err = c.sc.ExecContext(ctx, killSQL)
	}
	return err == nil, killError(err, id)
}

func killError(err error, id int64) error {
	const (
		noSuchThread = 1094
		notOwner     = 1095
	)
	switch {
	case isOneOf(err, noSuchThread):
		return nil
	case isOneOf(err, notOwner):
		return fmt.Errorf("ending connection %d requires the same user, or the privilege CONNECTION_ADMIN "+
			"(MariaDB: CONNECTION ADMIN) or SUPER: %w", id, err)
	}
	return err
}
