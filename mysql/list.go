package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// Info is what the server shows of a lock of GET_LOCK.
type Info struct {
	Name       string // as given to Inspect; List does not know it
	ServerName string // the name that GET_LOCK was called with, on MySQL in lower case as List returns it; compare it with ServerName
	Held       bool   // by a connection

	Holder  sqllock.Holder   // the first of Holders; zero: nobody holds it
	Holders []sqllock.Holder // every connection that holds it: one
}

var (
	errNotShown = fmt.Errorf("the server does not show its locks: start it with performance_schema=ON and enable the "+
		"instrument wait/lock/metadata/sql/mdl in performance_schema.setup_instruments (%w)", sqllock.ErrUnsupported)
	errMayNotSee = errors.New("listing locks requires SELECT on the tables metadata_locks, threads and session_connect_attrs " +
		"of performance_schema")
)

// List returns the locks that were taken by GET_LOCK, by any program and for any purpose, in order of their names. They
// are the locks of the whole server, of every database.
//
// List requires SELECT on the tables metadata_locks, threads and session_connect_attrs of performance_schema. The error is
// sqllock.ErrUnsupported when performance_schema or its instrument wait/lock/metadata/sql/mdl is off, as both are on
// MariaDB unless turned on. A lock that was taken before the instrument was enabled is not shown. Inspect documents
// what is known about a holder.
func (l *Locker) List(ctx context.Context) ([]Info, error) {
	type answer struct {
		infos []Info
		shown bool
	}
	a, err := session.Ask(ctx, l.engine, "list", "*", func(ctx context.Context, c session.Conn[string]) (a answer, err error) {
		a.infos, a.shown, err = c.(*conn).list(ctx)
		if mayNotSee(err) {
			err = fmt.Errorf("%w: %w", errMayNotSee, err)
		}
		return a, err
	})
	if err != nil {
		return nil, err
	}
	if !a.shown {
		return nil, &sqllock.OpError{Op: "list", Name: "*", Err: errNotShown}
	}
	return a.infos, nil
}

func (c *conn) list(ctx context.Context) (infos []Info, shown bool, err error) {
	err = c.sc.QueryRowContext(ctx, shownSQL).Scan(&shown)
	if err != nil || !shown {
		return nil, false, err
	}
	rows, err := c.sc.QueryContext(ctx, listSQL)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		info := Info{Held: true}
		h := &info.Holder
		if err := rows.Scan(&info.ServerName, &h.Session, &h.Owner, &h.Address, &h.Waiters); err != nil {
			return nil, false, err
		}
		h.Owner = strings.TrimPrefix(h.Owner, "sqllock/")
		info.Holders = []sqllock.Holder{*h}
		infos = append(infos, info)
	}
	return infos, true, rows.Err()
}

// mayNotSee reports whether err says that the user may not read a table.
func mayNotSee(err error) bool {
	const tableAccessDenied = 1142
	return isOneOf(err, tableAccessDenied)
}
