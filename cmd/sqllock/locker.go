package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/schema"
)

// locker is what the Lockers of every kind have.
type locker interface {
	sqllock.Locker
	Inspect(ctx context.Context, name string, opts ...sqllock.Option) (holder sqllock.Holder, held bool, err error)
	Close() error
}

// The kinds of lock.
const (
	kindLease   = "lease"
	kindSession = "session"
	kindAll     = "all"
)

// lease returns a Locker for leases, which nothing was asked of yet.
func (db *database) lease(t schema.Tables, ttl time.Duration, owner string) (*leasetable.Locker, error) {
	return leasetable.New(db.DB, leasetable.WithTables(t), leasetable.WithTTL(ttl), leasetable.WithOwner(owner))
}

// sessionLocker is what the Lockers of session locks have besides.
type sessionLocker interface {
	locker
	Terminate(ctx context.Context, name string, opts ...sqllock.Option) (holder sqllock.Holder, ended bool, err error)
}

// session returns a Locker for session locks, which nothing was asked of yet.
func (db *database) session(ttl time.Duration) (sessionLocker, error) {
	switch db.dialect {
	case schema.Postgres:
		return pg.FromDB(db.DB.DB, pg.WithSessionTTL(ttl))
	case schema.MySQL:
		return mysql.FromDB(db.DB.DB, mysql.WithSessionTTL(ttl))
	}
	return nil, errors.New("SQLite has no sessions that could hold a lock: leave out --kind session, or name a server")
}

// tokenOf returns the fencing token of a lease.
func tokenOf(lock sqllock.Lock) (token string, ok bool) {
	lease, ok := lock.(interface{ Token() int64 })
	if !ok {
		return "", false
	}
	return strconv.FormatInt(lease.Token(), 10), true
}

// lookTTL is that of a Locker which takes no locks.
const lookTTL = 15 * time.Second

// hasSessions reports whether the database has sessions that can hold a lock.
func (db *database) hasSessions() bool { return db.dialect != schema.SQLite }

// leases returns a Locker that looks after the leases of the place. Its errors have an exit code.
func (p *place) leases(ctx context.Context, db *database) (*leasetable.Locker, error) {
	l, err := db.lease(p.tables, lookTTL, "sqllock")
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	if err := db.prepare(ctx, p.tables); err != nil {
		return nil, fail(exitUnavailable, errors.Join(err, l.Close()))
	}
	return l, nil
}
