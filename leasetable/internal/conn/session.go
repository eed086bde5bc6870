package conn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// errNoSession is the error of OpenSession behind a pooler, or with a driver other than pgx.
var errNoSession = errors.New("a pooler, or a driver other than pgx, is in between")

// Session is a connection whose server session has a state. No pool has it, and nothing is prepared on it. One
// goroutine at a time uses it.
type Session struct{ conn driverConn }

// OpenSession opens a session, which the server ends when it has been silent for idle. It refuses to open one through a
// pooler, which would give it to other clients.
func (p Pools) OpenSession(ctx context.Context, idle time.Duration) (*Session, error) {
	connecting, connected := context.WithTimeout(ctx, ConnectTimeout)
	defer connected()
	dc, err := connect(connecting, p.connector)
	if err != nil {
		return nil, err
	}
	err = dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) error { return p.settleSession(ctx, dc, idle) })
	if err != nil {
		_ = dc.Close() // the first error says more
		return nil, err
	}
	return &Session{dc}, nil
}

func (p Pools) settleSession(ctx context.Context, dc driverConn, idle time.Duration) error {
	var texts []string
	switch p.Work.dialect {
	case schema.Postgres:
		if direct, err := lookUpByIndex(ctx, dc); err != nil || !direct {
			return errors.Join(err, errNoSession)
		}
		// PostgreSQL 12 and 13 have no idle_session_timeout. Time limits meant for the application's statements must not hit ours.
		// Without check_function_bodies, what a block executes is parsed when it runs, and not once more before.
		texts = []string{fmt.Sprintf("SELECT pg_catalog.set_config(name, CASE name WHEN 'idle_session_timeout' THEN '%d' ELSE '0' END, false) "+
			"FROM pg_catalog.pg_settings WHERE name IN "+
			"('idle_session_timeout', 'statement_timeout', 'transaction_timeout', 'check_function_bodies')", idle.Milliseconds())}
	case schema.MySQL:
		texts = slices.Concat(settings[schema.MySQL], []string{fmt.Sprintf("SET SESSION wait_timeout = %d", int(idle.Seconds()))})
	}
	return execOn(ctx, dc, texts...)
}

// Exec runs a statement.
func (s *Session) Exec(ctx context.Context, text string) error { return execOn(ctx, s.conn, text) }

// Number runs a statement that returns one number, or NULL.
func (s *Session) Number(ctx context.Context, text string) (n sql.NullInt64, err error) {
	row, err := lastRow(ctx, s.conn, text)
	if err != nil || len(row) == 0 {
		return n, err
	}
	return n, n.Scan(row[0])
}

// Close closes the connection, and so ends the session.
func (s *Session) Close() { _ = s.conn.Close() }
