package main

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

// sessionLocker is a locker of session locks.
type sessionLocker interface {
	locker
	// holders lists the session locks of the server, or on PostgreSQL those of the database: one for each holder, without
	// names.
	holders(ctx context.Context) ([]sessionLock, error)
	Terminate(ctx context.Context, name string, opts ...sqllock.Option) (holder sqllock.Holder, ended bool, err error)
}

// sessionLock is a session lock with one of its holders.
type sessionLock struct {
	name       string // empty if only serverName is known
	serverName string // the server's name of the lock
	shared     bool
	sqllock.Holder
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

// hasSessions reports whether the database has sessions that can hold a lock.
func (db *database) hasSessions() bool { return db.dialect != schema.SQLite }

type pgLocker struct{ *pg.Locker }

func (l pgLocker) holder(ctx context.Context, name string) (sqllock.Holder, bool, error) {
	info, err := l.Inspect(ctx, name)
	return info.Holder, info.Held, err
}

func (l pgLocker) holders(ctx context.Context) (all []sessionLock, _ error) {
	infos, err := l.List(ctx)
	for _, info := range infos {
		for _, holder := range info.Holders {
			all = append(all, sessionLock{serverName: keyName(info.Key, info.Pair), shared: info.Shared, Holder: holder})
		}
	}
	return all, err
}

type mysqlLocker struct{ *mysql.Locker }

func (l mysqlLocker) holder(ctx context.Context, name string) (sqllock.Holder, bool, error) {
	info, err := l.Inspect(ctx, name)
	return info.Holder, info.Held, err
}

func (l mysqlLocker) holders(ctx context.Context) (all []sessionLock, _ error) {
	infos, err := l.List(ctx)
	for _, info := range infos {
		all = append(all, sessionLock{serverName: info.ServerName, Holder: info.Holder})
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

// notShown reports whether err means that the server has no session locks, or does not list them, or not for this user.
// Leases can still be listed then.
func notShown(err error) bool {
	const tableAccessDenied = 1142
	var answer *gomysql.MySQLError
	return errors.Is(err, sqllock.ErrUnsupported) || errors.Is(err, sqllock.ErrRefused) ||
		errors.As(err, &answer) && answer.Number == tableAccessDenied
}
