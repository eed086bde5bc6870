package pg_test

import (
	"cmp"
	"context"
	"database/sql"
	"net/url"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestSessionLocksAreAsOnEveryServer(t *testing.T) {
	t.Parallel()
	locktest.Sessions(t, locktest.Server{
		Open:               newDatabase,
		Driver:             "pgx",
		LocksPerConnection: 600,
		Slice:              700 * time.Millisecond,
		Malformed: []string{
			"postgres://user:" + locktest.Secret + "@host:port/db", "postgres://user:" + locktest.Secret + "@[host/db",
			"password=" + locktest.Secret + " port=x", "postgres://user:" + locktest.Secret + "%zz@host/db",
			"host=h password='" + locktest.Secret, "postgres://u:" + locktest.Secret + "@h/d?sslmode=no",
		},
	})
}

func newDatabase(t *testing.T) locktest.Database { t.Helper(); return database{sqltest.Postgres(t)} }

// database is a database for the tests that all servers share.
type database struct{ db *sqltest.Database }

func (d database) Pool() *sql.DB { return d.db.DB.DB }

func (d database) Access(t *testing.T) locktest.Access {
	t.Helper()
	u := parse(t, d.db.DSN)
	password, _ := u.User.Password()
	return locktest.Access{Address: u.Host, User: u.User.Username(), Password: password, Database: u.Path[1:]}
}

func (d database) DSN(t *testing.T, other locktest.Access) string {
	t.Helper()
	own := d.Access(t)
	u := parse(t, d.db.DSN)
	u.Host, u.Path = cmp.Or(other.Address, own.Address), "/"+cmp.Or(other.Database, own.Database)
	u.User = url.UserPassword(cmp.Or(other.User, own.User), cmp.Or(other.Password, own.Password))
	return u.String()
}

func (d database) New(s locktest.Settings) (locktest.SessionLocker, error) {
	opts := []pg.Option{pg.WithSessionTTL(s.SessionTTL()), pg.WithHook(s.Hook), pg.WithLogger(s.Logger)}
	if s.Owner != "" {
		opts = append(opts, pg.WithOwner(s.Owner))
	}
	if s.Heartbeat != 0 {
		opts = append(opts, pg.WithHeartbeat(s.Heartbeat))
	}
	if s.Connections != 0 {
		opts = append(opts, pg.WithMaxConnections(s.Connections))
	}
	if s.DB != nil {
		l, err := pg.FromDB(s.DB, opts...)
		return shown{l}, err
	}
	l, err := pg.New(cmp.Or(s.DSN, d.db.DSN), opts...)
	return shown{l}, err
}

// shown is a Locker for the suites that all servers share.
type shown struct{ *pg.Locker }

func (s shown) Inspect(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Holder, bool, error) {
	info, err := s.Locker.Inspect(ctx, name, opts...)
	return info.Holder, info.Held, err
}

func (d database) Child(dsn string, ttl time.Duration, job locktest.Job) []string {
	return childEnv(dsn, ttl, string(job))
}

func (d database) Waiting(t *testing.T, name string) int {
	t.Helper()
	return waitersFor(t, d.db, name)
}

func (d database) Locks(t *testing.T) int    { t.Helper(); return locksOn(t, d.db) }
func (d database) Sessions(t *testing.T) int { t.Helper(); return sessionsOn(t, d.db) }

func (d database) Holder(t *testing.T, name string) int64 {
	t.Helper()
	return int64(holderOf(t, d.db, name))
}

func (d database) End(t *testing.T, name string) { t.Helper(); terminate(t, d.db, name) }

func (d database) EndWaits(t *testing.T, name string, sessions bool) {
	t.Helper()
	end := "pg_cancel_backend"
	if sessions {
		end = "pg_terminate_backend"
	}
	_ = ask[int](t, d.db, inLocks("count("+end+"(l.pid))", "NOT l.granted"), pg.Key(name))
}
