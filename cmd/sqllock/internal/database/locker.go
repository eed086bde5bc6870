package database

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

// Locker is the common interface of all Lockers.
type Locker interface {
	sqllock.Locker
	// Holder returns the holder of a lock, or one of several holders.
	Holder(ctx context.Context, name string) (holder sqllock.Holder, held bool, err error)
	Close() error
}

type leaseLocker struct {
	sqllock.Locker
	leases *leasetable.Locker
}

// AnyKind returns a Locker for leases as one of any kind.
func AnyKind(l *leasetable.Locker) Locker { return leaseLocker{sqllock.AnyKind(l), l} }

func (l leaseLocker) Holder(ctx context.Context, name string) (sqllock.Holder, bool, error) {
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
	KindLease   = "lease"
	KindSession = "session"
	KindAll     = "all"
)

// Lease returns a Locker for leases. It does not connect.
func (db *Database) Lease(t schema.Tables, ttl time.Duration, owner string) (*leasetable.Locker, error) {
	return leasetable.FromDB(db.DB.DB, leasetable.WithTables(t), leasetable.WithTTL(ttl), leasetable.WithOwner(owner),
		leasetable.WithLogger(db.Logger), leasetable.WithHook(db.Hook))
}

// The TTL and the owner of a Locker that acquires no locks.
const (
	LookTTL  = 15 * time.Second
	Operator = "sqllock"
)
