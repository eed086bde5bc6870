package lock

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock/pg"
)

var errRefused = errors.New("the server did not grant or free the lock")

// openAdvisory opens a client of pgx: a connection for each lock that is held, with statements prepared once.
func openAdvisory(_ context.Context, dsn string) (Client, error) {
	return pairs[*pgx.Conn]{
		idle: &idle[*pgx.Conn]{
			open:  func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, dsn) },
			close: func(c *pgx.Conn) error { return c.Close(context.Background()) },
		},
		lock: func(ctx context.Context, c *pgx.Conn, name string) error {
			_, err := c.Exec(ctx, "SELECT pg_advisory_lock($1)", pg.Key(name))
			return err
		},
		unlock: func(ctx context.Context, c *pgx.Conn, name string) error {
			var ok bool
			err := c.QueryRow(ctx, "SELECT pg_advisory_unlock($1)", pg.Key(name)).Scan(&ok)
			if err == nil && !ok {
				err = errRefused
			}
			return err
		},
	}, nil
}

// statements is a connection with the statements that a client has prepared on it.
type statements struct {
	pool *sql.DB
	conn *sql.Conn
	at   []*sql.Stmt
}

// prepare opens a connection, and prepares queries on it.
func prepare(ctx context.Context, driver, dsn string, queries ...string) (s *statements, err error) {
	s = &statements{}
	if s.pool, err = sql.Open(driver, dsn); err != nil {
		return nil, err
	}
	if s.conn, err = s.pool.Conn(ctx); err != nil {
		return nil, errors.Join(err, s.pool.Close())
	}
	for _, query := range queries {
		stmt, err := s.conn.PrepareContext(ctx, query)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.at = append(s.at, stmt)
	}
	return s, nil
}

// Close ends the connection.
func (s *statements) Close() error { return errors.Join(s.conn.Close(), s.pool.Close()) }

// one runs a statement that answers 1.
func (s *statements) one(ctx context.Context, i int, args ...any) error {
	var answer sql.NullInt64
	if err := s.at[i].QueryRowContext(ctx, args...).Scan(&answer); err != nil {
		return err
	}
	if answer.Int64 != 1 {
		return errRefused
	}
	return nil
}

// changesOne runs a statement that changes one row.
func (s *statements) changesOne(ctx context.Context, i int, args ...any) error {
	result, err := s.at[i].ExecContext(ctx, args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(errRefused, err)
	}
	return nil
}

// openGetLock opens a client of go-sql-driver/mysql: a connection for each lock that is held.
func openGetLock(_ context.Context, dsn string) (Client, error) {
	return pairs[*statements]{
		idle: &idle[*statements]{
			open: func(ctx context.Context) (*statements, error) {
				return prepare(ctx, "mysql", dsn, "SELECT GET_LOCK(?, 3600)", "SELECT RELEASE_LOCK(?)")
			},
			close: (*statements).Close,
		},
		lock:   func(ctx context.Context, s *statements, name string) error { return s.one(ctx, 0, name) },
		unlock: func(ctx context.Context, s *statements, name string) error { return s.one(ctx, 1, name) },
	}, nil
}

// openRows opens a client that takes and frees the row of a name in the table of sqllock, with one UPDATE each. It does
// not wait, and nothing ends such a lock but its release.
func openRows(e Engine) func(context.Context, string) (Client, error) {
	driver, now, first, second := "mysql", "UTC_TIMESTAMP(6)", "?", "?"
	if e == Postgres {
		driver, now, first, second = "pgx", "clock_timestamp()", "$1", "$2"
	}
	queries := []string{
		"UPDATE sqllock_lock SET token = token + 1, lease_id = " + first + ", acquired_at = " + now +
			", released_at = NULL WHERE name = " + second + " AND lease_id IS NULL",
		"UPDATE sqllock_lock SET lease_id = NULL, released_at = " + now + " WHERE lease_id = " + first + " AND name = " + second,
		"INSERT INTO sqllock_lock (lease_id, name, token, acquired_at) VALUES (" + first + ", " + second + ", 1, " + now + ")",
	}
	id := []byte("0123456789abcdef")
	return func(_ context.Context, dsn string) (Client, error) {
		return pairs[*statements]{
			idle: &idle[*statements]{
				open:  func(ctx context.Context) (*statements, error) { return prepare(ctx, driver, dsn, queries...) },
				close: (*statements).Close,
			},
			lock: func(ctx context.Context, s *statements, name string) error {
				err := s.changesOne(ctx, 0, id, []byte(name))
				if errors.Is(err, errRefused) { // the first time there is no row
					err = s.changesOne(ctx, 2, id, []byte(name))
				}
				return err
			},
			unlock: func(ctx context.Context, s *statements, name string) error {
				return s.changesOne(ctx, 1, id, []byte(name))
			},
		}, nil
	}
}
