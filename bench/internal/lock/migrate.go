package lock

import (
	"context"
	"database/sql"
	"errors"
	"hash/fnv"
	"strconv"
	"sync"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/mysql"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
)

// migrate has one driver of golang-migrate. Its lock is named after the table of migrations, so a client has one name.
type migrate struct {
	open func(table string) (database.Driver, error)

	mu     sync.Mutex
	name   string          // guarded by mu
	driver database.Driver // guarded by mu
}

var errOneName = errors.New("a driver of golang-migrate has one name")

func openMigrate(e Engine) func(context.Context, string) (Client, error) {
	return func(_ context.Context, dsn string) (Client, error) {
		name := "mysql"
		if e == Postgres {
			name = "pgx"
		}
		return &migrate{open: func(table string) (database.Driver, error) {
			db, err := sql.Open(name, dsn)
			if err != nil {
				return nil, err
			}
			if e == Postgres {
				return migratepgx.WithInstance(db, &migratepgx.Config{MigrationsTable: table})
			}
			return mysql.WithInstance(db, &mysql.Config{MigrationsTable: table})
		}}, nil
	}
}

// Acquire implements Client. On PostgreSQL the wait does not end with ctx. Elsewhere it ends after 10 s, and is repeated.
func (m *migrate) Acquire(ctx context.Context, name string) (Release, error) {
	d, err := m.of(name)
	if err != nil {
		return nil, err
	}
	for err = d.Lock(); errors.Is(err, database.ErrLocked) && ctx.Err() == nil; err = d.Lock() {
	}
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return d.Unlock() }, nil
}

func (m *migrate) of(name string) (database.Driver, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.driver != nil {
		if m.name != name {
			return nil, errOneName
		}
		return m.driver, nil
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	d, err := m.open("migrations_" + strconv.FormatUint(uint64(h.Sum32()), 36))
	m.name, m.driver = name, d
	return d, err
}

// Close implements Client.
func (m *migrate) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.driver == nil {
		return nil
	}
	return m.driver.Close()
}
