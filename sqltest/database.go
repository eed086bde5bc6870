package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// supply makes databases for tests, and takes them back.
type supply interface {
	// take makes a database, or returns one that is ready.
	take() (name string, err error)
	// give takes a database back, which is dropped at once or later. An empty name is one that was dropped or kept.
	give(name string) error
}

// inline is the supply of a server that tests stop and kill: nothing is made ahead.
type inline struct {
	srv      server
	template *Template
	running  func() bool
}

func (i inline) take() (string, error) {
	b, err := i.srv.blueprint(i.template)
	if err != nil {
		return "", err
	}
	return i.srv.make(i.template, b)
}

func (i inline) give(name string) error {
	if name == "" || !i.running() {
		return nil
	}
	return i.srv.dropNow(name)
}

// make makes a database. If it fails, it leaves none.
func (s server) make(t *Template, b blueprint) (name string, err error) {
	name = s.newName()
	exact := b
	if b.inexact != "" {
		exact = blueprint{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), migrating)
	defer cancel()
	admin, done, err := s.admin()
	if err != nil {
		return "", err
	}
	defer done()
	if err := s.announced(ctx); err != nil {
		return "", err
	}
	c, template := s.product.copier(), build{s, t, b.name}
	err = c.create(ctx, admin, exact, name)
	if err != nil && b.name != "" {
		if _, errFind := c.find(ctx, admin, b.name); errors.Is(errFind, sql.ErrNoRows) { // somebody has dropped the template
			if _, err = template.findOrBuild(ctx); err == nil {
				err = c.create(ctx, admin, exact, name)
			}
		}
	}
	if err == nil && b.inexact != "" {
		if err = template.migrate(ctx, name); err != nil {
			err = errors.Join(err, s.dropNow(name))
		}
	}
	return name, err
}

// newDatabase gives tb a database on srv, until tb ends.
func newDatabase(tb TB, srv server, from supply, o options, running func() bool) *Database {
	tb.Helper()
	p := srv.product
	fail := func(what string, err error) {
		tb.Helper()
		tb.Fatalf("sqltest: %s on %s: %v", what, srv, redactError(p, srv.record.DSN, err))
	}
	_, done, err := srv.admin() // keeps the pool open until the test ends
	if err != nil {
		fail("connect", err)
	}
	tb.Cleanup(done)
	name, err := from.take()
	if err != nil {
		fail("create a database", err)
	}
	give := func(name string) {
		tb.Helper()
		if err := from.give(name); err != nil {
			tb.Logf("sqltest: drop a database on %s: %v", srv, redactError(p, srv.record.DSN, err))
		}
	}
	dsn, err := p.in(srv.record.DSN, name)
	if err == nil {
		dsn, err = o.dsn(p, dsn)
	}
	if err != nil {
		give(name)
		fail("name a database", err)
	}
	db, err := sqlx.Open(p.driver(), dsn)
	if err != nil {
		give(name)
		fail("open a database", err)
	}
	test := &Database{DB: db, DSN: dsn, Engine: p.engine(), Server: srv.String(), log: srv.inst.logAfter(), sweeps: srv.inst == nil}
	tb.Cleanup(func() {
		tb.Helper()
		if tb.Failed() && running() {
			srv.explain(tb, test, name)
		}
		if err := db.Close(); err != nil {
			tb.Logf("sqltest: close %s: %v", name, redactError(p, dsn, err))
		}
		if keep(tb) {
			srv.keep(tb, dsn)
			name = ""
		} else if running() && srv.endSessions(tb, name) {
			name = ""
		}
		give(name)
	})
	ctx, cancel := context.WithTimeout(context.Background(), patiently)
	defer cancel()
	if err := o.furnish(ctx, p, db.DB, name); err != nil {
		fail("make a database", err)
	}
	return test
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

// endSessions looks for sessions that a test has left. If there are any, it explains them in the test's log, and reports true
// after it has dropped the database together with them.
func (s server) endSessions(tb TB, name string) (dropped bool) {
	tb.Helper()
	err := s.administer(func(ctx context.Context, admin *sql.DB) error {
		leaked, err := leftSessions(ctx, s.product, admin, name)
		if err != nil || len(leaked) == 0 {
			return err
		}
		tb.Logf("sqltest: %s ends, but some connections to its database are still open; they are ended now. "+
			"Close them before the test ends, or in a Cleanup that is registered after the database is made:\n  %s",
			tb.Name(), strings.Join(leaked, "\n  "))
		err = s.product.drop(ctx, admin, name)
		dropped = err == nil
		return err
	})
	if err != nil {
		tb.Logf("sqltest: drop %s on %s: %v", name, s, redactError(s.product, s.record.DSN, err))
	}
	return dropped
}

// leftSessions describes the sessions that remain in a database after one second. A server needs a moment to notice that a
// connection was closed.
func leftSessions(ctx context.Context, p product, admin *sql.DB, name string) (found []string, err error) {
	moment, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = await(moment, 2*time.Millisecond, func() (bool, error) {
		found, err = p.sessions(ctx, admin, name)
		return len(found) == 0, err
	})
	return found, err
}
