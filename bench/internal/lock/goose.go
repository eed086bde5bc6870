package lock

import (
	"context"
	"database/sql"
	"errors"
	"hash/fnv"

	gooselock "github.com/pressly/goose/v3/lock"
)

// goose makes a lock for each acquisition, as each Provider has one. All settings are the defaults, which poll every 5 s.
type goose struct{ db *sql.DB }

func openGoose(driver, dsn string) (goose, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return goose{}, err
	}
	db.SetMaxIdleConns(256) // a connection for each lock that is held, as a Provider has one
	return goose{db}, nil
}

// Close implements Client.
func (g goose) Close() error { return g.db.Close() }

func (g goose) id(name string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return int64(h.Sum64()>>1) + 1 // it has to be greater than zero
}

type gooseSession struct{ goose }

func openGooseSession(_ context.Context, dsn string) (Client, error) {
	g, err := openGoose("pgx", dsn)
	return gooseSession{g}, err
}

// Acquire implements Client.
func (g gooseSession) Acquire(ctx context.Context, name string) (Release, error) {
	locker, err := gooselock.NewPostgresSessionLocker(gooselock.WithLockID(g.id(name)))
	if err != nil {
		return nil, err
	}
	conn, err := g.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := locker.SessionLock(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func(ctx context.Context) error {
		return errors.Join(locker.SessionUnlock(ctx, conn), conn.Close())
	}, nil
}

type gooseTable struct {
	goose
	newLocker func(...gooselock.TableLockerOption) (gooselock.Locker, error)
}

func openGooseTable(e Engine) func(context.Context, string) (Client, error) {
	driver, newLocker := "mysql", gooselock.NewMySQLTableLocker
	if e == Postgres {
		driver, newLocker = "pgx", gooselock.NewPostgresTableLocker
	}
	return func(_ context.Context, dsn string) (Client, error) {
		g, err := openGoose(driver, dsn)
		return gooseTable{g, newLocker}, err
	}
}

// Acquire implements Client.
func (g gooseTable) Acquire(ctx context.Context, name string) (Release, error) {
	locker, err := g.newLocker(gooselock.WithTableLockID(g.id(name)), gooselock.WithTableLeaseDuration(TTL))
	if err != nil {
		return nil, err
	}
	if err := locker.Lock(ctx, g.db); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return locker.Unlock(ctx, g.db) }, nil
}
