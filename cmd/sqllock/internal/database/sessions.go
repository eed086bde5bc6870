package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/schema"
)

// SessionLocker is a locker of session locks.
type SessionLocker interface {
	Locker
	// Holders lists the session locks of the server, or on PostgreSQL those of the database, without names: one entry
	// for each holder.
	Holders(ctx context.Context) ([]SessionLock, error)
	Terminate(ctx context.Context, name string, opts ...sqllock.Option) (holder sqllock.Holder, ended bool, err error)
}

// SessionLock is a session lock with one of its holders.
type SessionLock struct {
	Name       string // empty if only ServerName is known
	ServerName string // the server's name of the lock
	Shared     bool
	sqllock.Holder
}

// Session returns a Locker for session locks, exclusive or shared. It does not connect.
func (db *Database) Session(ttl time.Duration, owner string, shared bool) (SessionLocker, error) {
	switch {
	case db.Dialect == schema.Postgres:
		l, err := pg.FromDB(db.DB.DB, pg.WithSessionTTL(ttl), pg.WithOwner(owner), pg.WithLogger(db.Logger), pg.WithHook(db.Hook))
		return pgLocker{l}, err
	case db.Dialect == schema.MySQL && shared:
		return nil, errors.New("MySQL and MariaDB have no shared session locks: leave out --shared or --kind session")
	case db.Dialect == schema.MySQL:
		named, err := connectMySQL(db.mysql, "sqllock/"+owner)
		if err != nil {
			return nil, err
		}
		defer func() { _ = named.Close() }() // the pool has no connection: the Locker opens its own
		l, err := mysql.FromDB(named, mysql.WithSessionTTL(ttl), mysql.WithLogger(db.Logger), mysql.WithHook(db.Hook))
		return mysqlLocker{l}, err
	}
	return nil, errors.New("SQLite has no sessions that could hold a lock: leave out --kind session, or name a server")
}

// HasSessions reports whether the database has sessions that can hold a lock.
func (db *Database) HasSessions() bool { return db.Dialect != schema.SQLite }

type pgLocker struct{ *pg.Locker }

func (l pgLocker) Holder(ctx context.Context, name string) (sqllock.Holder, bool, error) {
	info, err := l.Inspect(ctx, name)
	return info.Holder, info.Held, err
}

func (l pgLocker) Holders(ctx context.Context) (all []SessionLock, _ error) {
	infos, err := l.List(ctx)
	for _, info := range infos {
		for _, holder := range info.Holders {
			all = append(all, SessionLock{ServerName: keyName(info.Key, info.Pair), Shared: info.Shared, Holder: holder})
		}
	}
	return all, err
}

type mysqlLocker struct{ *mysql.Locker }

func (l mysqlLocker) Holder(ctx context.Context, name string) (sqllock.Holder, bool, error) {
	info, err := l.Inspect(ctx, name)
	return info.Holder, info.Held, err
}

func (l mysqlLocker) Holders(ctx context.Context) (all []SessionLock, _ error) {
	infos, err := l.List(ctx)
	for _, info := range infos {
		all = append(all, SessionLock{ServerName: info.ServerName, Holder: info.Holder})
	}
	return all, err
}

// keyName formats the key of an advisory lock.
func keyName(key int64, pair bool) string {
	if pair {
		return fmt.Sprintf("key %d,%d", int32(key>>32), int32(key)) // the two halves
	}
	return fmt.Sprintf("key %d", key)
}

// NotShown reports whether err means that the server has no session locks, or does not list them, or not for this user.
// Leases can still be listed then.
func NotShown(err error) bool {
	const tableAccessDenied = 1142
	var answer *gomysql.MySQLError
	return errors.Is(err, sqllock.ErrUnsupported) || errors.Is(err, sqllock.ErrRefused) ||
		errors.As(err, &answer) && answer.Number == tableAccessDenied
}
