package sqltest

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// newDatabase creates a database on srv for tb. It drops the database when tb ends, if the server is running then.
func newDatabase(tb TB, srv server, running func() bool) *Database {
	tb.Helper()
	p := srv.product
	fail := func(what string, err error) {
		tb.Helper()
		tb.Fatalf("sqltest: %s on %s: %v", what, srv, redactError(p, srv.record.DSN, err))
	}
	// The time helps a person to judge an old database.
	name := "sqltest_" + strconv.FormatInt(time.Now().Unix(), 36) + "_" + strings.ToLower(randomID())
	dsn, err := p.in(srv.record.DSN, name)
	if err != nil {
		fail("name a database", err)
	}
	_, done, err := srv.admin() // keeps the pool open until the database is dropped
	if err == nil {
		tb.Cleanup(done)
		err = srv.administer(func(ctx context.Context, admin *sql.DB) error {
			_, err := admin.ExecContext(ctx, "CREATE DATABASE "+name)
			return err
		})
	}
	if err != nil {
		fail("create a database", err)
	}
	db, err := sqlx.Open(p.driver(), dsn)
	if err != nil {
		fail("open a database", err)
	}
	tb.Cleanup(func() {
		tb.Helper()
		if err := db.Close(); err != nil {
			tb.Logf("sqltest: close %s: %v", name, redactError(p, dsn, err))
		}
		switch {
		case keep(tb):
			srv.keep(tb, dsn)
		case running():
			srv.drop(tb, name)
		}
	})
	return &Database{DB: db, DSN: dsn, Engine: p.engine(), Server: srv.String()}
}

// keep keeps the database of a failed test for inspection.
func (s server) keep(tb TB, dsn string) {
	tb.Helper()
	if s.inst == nil {
		tb.Logf("sqltest: kept for a look (SQLTEST_KEEP): %s", publicDSN(s.product, dsn))
		return
	}
	if err := s.inst.keep(); err != nil {
		tb.Logf("sqltest: cannot keep the server: %v", err)
		return
	}
	// The password may be logged: sqltest chose it, and only this machine can reach the server.
	tb.Logf("sqltest: kept for a look, until the next run without SQLTEST_KEEP: %s", dsn)
}

func (s server) drop(tb TB, name string) {
	tb.Helper()
	err := s.administer(func(ctx context.Context, admin *sql.DB) error {
		leaked, err := s.leftSessions(ctx, admin, name)
		if err != nil {
			return err
		}
		if len(leaked) > 0 {
			tb.Logf("sqltest: %s ends, but some connections to its database are still open; they are ended now. "+
				"Close them before the test ends, or in a Cleanup that is registered after the database is made:\n  %s",
				tb.Name(), strings.Join(leaked, "\n  "))
		}
		return s.product.drop(ctx, admin, name)
	})
	if err != nil {
		tb.Logf("sqltest: drop %s on %s: %v", name, s, redactError(s.product, s.record.DSN, err))
	}
}

// leftSessions describes the sessions that remain after one second. A server needs a moment to notice that a connection
// was closed.
func (s server) leftSessions(ctx context.Context, admin *sql.DB, name string) (found []string, err error) {
	moment, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = await(moment, 10*time.Millisecond, func() (bool, error) {
		found, err = s.product.sessions(ctx, admin, name)
		return len(found) == 0, err
	})
	return found, err
}
