package main

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/schema"
)

// locker is the common interface of all Lockers.
type locker interface {
	sqllock.Locker
	holder(ctx context.Context, name string) (holder sqllock.Holder, held bool, err error)
	Close() error
}

type leaseLocker struct {
	sqllock.Locker
	leases *leasetable.Locker
}

func anyKind(l *leasetable.Locker) locker { return leaseLocker{sqllock.AnyKind(l), l} }

func (l leaseLocker) holder(ctx context.Context, name string) (sqllock.Holder, bool, error) {
	info, err := l.leases.Inspect(ctx, name)
	if err != nil || !info.Held {
		return sqllock.Holder{}, false, err
	}
	return info.Holder, true, nil
}

// Close ends the leases.
func (l leaseLocker) Close() error { return l.leases.Close() }

type pgLocker struct{ *pg.Locker }

func (l pgLocker) holder(ctx context.Context, name string) (sqllock.Holder, bool, error) {
	info, err := l.Inspect(ctx, name)
	return info.Holder, info.Held, err
}

type mysqlLocker struct{ *mysql.Locker }

func (l mysqlLocker) holder(ctx context.Context, name string) (sqllock.Holder, bool, error) {
	info, err := l.Inspect(ctx, name)
	return info.Holder, info.Held, err
}

// The kinds of lock.
const (
	kindLease   = "lease"
	kindSession = "session"
	kindAll     = "all"
)

// lease returns a Locker for leases. It does not connect.
func (db *database) lease(t schema.Tables, ttl time.Duration, owner string) (*leasetable.Locker, error) {
	return leasetable.FromDB(db.DB.DB, leasetable.WithTables(t), leasetable.WithTTL(ttl), leasetable.WithOwner(owner),
		leasetable.WithLogger(db.logger), leasetable.WithHook(db.hook))
}

// sessionLocker is a locker of session locks.
type sessionLocker interface {
	locker
	Terminate(ctx context.Context, name string, opts ...sqllock.Option) (holder sqllock.Holder, ended bool, err error)
}

// session returns a Locker for session locks, exclusive or shared. It does not connect.
func (db *database) session(ttl time.Duration, owner string, shared bool) (sessionLocker, error) {
	switch {
	case db.dialect == schema.Postgres:
		l, err := pg.FromDB(db.DB.DB, pg.WithSessionTTL(ttl), pg.WithOwner(owner), pg.WithLogger(db.logger), pg.WithHook(db.hook))
		return pgLocker{l}, err
	case db.dialect == schema.MySQL && shared:
		return nil, errors.New("MySQL and MariaDB have no shared session locks: leave out --shared or --kind session")
	case db.dialect == schema.MySQL:
		named, err := connectMySQL(db.mysql, "sqllock/"+owner)
		if err != nil {
			return nil, err
		}
		defer func() { _ = named.Close() }() // the pool has no connection: the Locker opens its own
		l, err := mysql.FromDB(named, mysql.WithSessionTTL(ttl), mysql.WithLogger(db.logger), mysql.WithHook(db.hook))
		return mysqlLocker{l}, err
	}
	return nil, errors.New("SQLite has no sessions that could hold a lock: leave out --kind session, or name a server")
}

// The TTL and the owner of a Locker that acquires no locks.
const (
	lookTTL  = 15 * time.Second
	operator = "sqllock"
)

// hasSessions reports whether the database has sessions that can hold a lock.
func (db *database) hasSessions() bool { return db.dialect != schema.SQLite }

// leases returns a Locker for inspecting the leases of this database. Its errors have an exit code.
func (p *place) leases(ctx context.Context, db *database) (*leasetable.Locker, error) {
	l, err := db.lease(p.tables, lookTTL, operator)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	if err := db.prepare(ctx, p.tables); err != nil {
		return nil, fail(exitUnavailable, errors.Join(err, l.Close()))
	}
	return l, nil
}
