package lock

import (
	"context"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the leases on PostgreSQL

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
)

// library is a Locker of this project with its default settings.
type library[L sqllock.Lock] struct {
	sqllock.Acquirer[L]
	close func() error
}

// Acquire implements Client.
func (c library[L]) Acquire(ctx context.Context, name string) (Release, error) {
	lock, err := c.Acquirer.Acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	return lock.Release, nil
}

// Close implements Client.
func (c library[L]) Close() error { return c.close() }

func openPg(_ context.Context, dsn string) (Client, error) {
	l, err := pg.New(dsn)
	return library[sqllock.Lock]{l, l.Close}, err
}

func openMySQL(_ context.Context, dsn string) (Client, error) {
	l, err := mysql.New(dsn)
	return library[sqllock.Lock]{l, l.Close}, err
}

func openLeases(_ context.Context, dsn string) (Client, error) {
	l, err := leasetable.New(dsn)
	return library[*leasetable.Lease]{l, l.Close}, err
}
