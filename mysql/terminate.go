package mysql

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// pause lies between two looks at a lock whose holder was ended.
const pause = 5 * time.Millisecond

var errOwn = errors.New("this Locker holds the lock itself; Release it, or Close the Locker")

// Terminate ends the connection that holds the lock called name (KILL CONNECTION) and returns who
// that was, and whether it ended any: not when nobody held the lock, or no longer when it came to it.
// It returns when that connection no longer holds the lock; every other lock of the connection is
// lost, too.
//
// It takes the same user, or the privilege CONNECTION_ADMIN (MariaDB: CONNECTION ADMIN) or SUPER. A lock
// that this Locker holds is an error. After an error the connection may have been ended if a
// holder is returned, or if the Locker's own connection broke or ctx ended.
func (l *Locker) Terminate(ctx context.Context, name string, opts ...sqllock.Option) (holder sqllock.Holder, ended bool, err error) {
	const op = "terminate"
	if _, err := want(op, name, opts); err != nil {
		return sqllock.Holder{}, false, err
	}
	holder, held, err := l.look(ctx, op, name)
	if err != nil || !held {
		return sqllock.Holder{}, false, err
	}
	if l.engine.Owns(func(c session.Conn[string]) bool { return c.(*conn).id == holder.Session }) {
		return sqllock.Holder{}, false, &sqllock.OpError{Op: op, Name: name, Err: errOwn}
	}
	ended, err = l.end(ctx, op, name, holder.Session)
	if !ended {
		return sqllock.Holder{}, false, err
	}
	if err == nil {
		err = l.gone(ctx, op, name, holder.Session)
	}
	return holder, true, err
}

// end ends the connection if it holds the lock. It may run twice, and then finds nobody.
func (l *Locker) end(ctx context.Context, op, name string, id int64) (ended bool, err error) {
	var done atomic.Bool // the server may have obeyed a statement that was cut off
	_, err = session.Ask(ctx, l.engine, op, name, func(ctx context.Context, c session.Conn[string]) (bool, error) {
		sc, serverName := c.(*conn).sc, ServerName(c.(*conn).database, name)
		_, err := sc.ExecContext(ctx, victimSQL, serverName, id)
		if err == nil {
			_, err = sc.ExecContext(ctx, killSQL)
		}
		if err == nil {
			done.Store(true)
		}
		return err == nil, killError(err, id)
	})
	return done.Load(), err
}

func killError(err error, id int64) error {
	const (
		noSuchThread = 1094
		notOwner     = 1095
	)
	var answer *gomysql.MySQLError
	switch {
	case !errors.As(err, &answer):
		return err
	case answer.Number == noSuchThread:
		return nil
	case answer.Number == notOwner:
		return fmt.Errorf("ending connection %d takes the same user, or the privilege CONNECTION_ADMIN "+
			"(MariaDB: CONNECTION ADMIN) or SUPER: %w", id, err)
	}
	return err
}

// gone waits until the session no longer holds the lock: the server ends it at its leisure.
func (l *Locker) gone(ctx context.Context, op, name string, id int64) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		now, held, err := l.look(ctx, op, name)
		if err != nil {
			return err
		}
		if !held || now.Session != id {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &sqllock.OpError{Op: op, Name: name, Err: context.Cause(ctx)}
		}
	}
}
