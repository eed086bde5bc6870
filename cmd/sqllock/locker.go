package main

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
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

// The TTL and the owner of a Locker that acquires no locks.
const (
	lookTTL  = 15 * time.Second
	operator = "sqllock"
)
