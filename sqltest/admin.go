package sqltest

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// admins has the administrator's connections that create and drop databases on shared servers. Opening one costs a
// server more than everything else, so they stay open as long as this process uses a database, and no longer: a test
// that checks for leaks must find only its own connections.
var admins struct {
	mu  sync.Mutex
	all map[string]*admin // guarded by mu; the key is the DSN
}

type admin struct {
	dsn   string
	db    *sql.DB
	users int // guarded by admins.mu

	mu       sync.Mutex // held while this process is announced
	presence *presence  // guarded by mu; nil before the first database, and on servers of this run
}

// admin opens the administrator's pool, which is shared if the server is. The caller must call done.
func (s server) admin() (db *sql.DB, done func(), err error) {
	if s.own {
		if db, err = s.product.open(s.record.DSN); err != nil {
			return nil, nil, err
		}
		db.SetMaxOpenConns(1)
		return db, func() { _ = db.Close() }, nil
	}
	admins.mu.Lock()
	defer admins.mu.Unlock()
	a := admins.all[s.record.DSN]
	if a == nil {
		if db, err = s.product.open(s.record.DSN); err != nil {
			return nil, nil, err
		}
		db.SetMaxOpenConns(4)
		db.SetMaxIdleConns(2)
		if admins.all == nil {
			admins.all = make(map[string]*admin)
		}
		a = &admin{dsn: s.record.DSN, db: db}
		admins.all[s.record.DSN] = a
	}
	a.users++
	return a.db, a.leave, nil
}

// leave is called when a user does not need the pool any more.
func (a *admin) leave() {
	admins.mu.Lock()
	defer admins.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(admins.all, a.dsn)
		_ = a.db.Close()
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.presence != nil {
			a.presence.end()
		}
	}
}

// announced makes sure that other processes see this one, before it makes a database on a server that stays. The caller
// has a connection of the administrator.
func (s server) announced(ctx context.Context) error {
	if s.inst != nil || s.own {
		return nil
	}
	admins.mu.Lock()
	a := admins.all[s.record.DSN]
	admins.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.presence != nil {
		soon, cancel := context.WithTimeout(ctx, quickly)
		defer cancel()
		if a.presence.conn.PingContext(soon) == nil {
			return nil
		}
		a.presence.end() // the server, or something in between, has ended its session
		a.presence = nil
	}
	p, err := s.announce(ctx)
	if err == nil {
		a.presence = &p
	}
	return err
}

// administer runs do with a connection of the administrator.
func (s server) administer(do func(ctx context.Context, admin *sql.DB) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, done, err := s.admin()
	if err != nil {
		return err
	}
	defer done()
	return do(ctx, db)
}

// identify asks the server once for its name and version.
func (s server) identify(ctx context.Context, within time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	db, done, err := s.admin()
	if err != nil {
		return "", err
	}
	defer done()
	return s.product.identify(ctx, db)
}

// querier is a *sql.DB or a *sql.Conn.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// namesOf returns the only column of a query.
func namesOf(ctx context.Context, db querier, query string) (names []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
