package mysql_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestSessionLocksAreAsOnEveryServer(t *testing.T) {
	t.Parallel()
	for name, open := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Sessions(t, locktest.Server{
				Open:               func(t *testing.T) locktest.Database { t.Helper(); return database{open(t)} },
				Driver:             "mysql",
				LocksPerConnection: 1000,
				Slice:              990 * time.Millisecond,
				Malformed: []string{
					"user:" + locktest.Secret + "@tcp(host:3306", "user:" + locktest.Secret + "@host",
					"user:" + locktest.Secret + "@tcp(host)/db?timeout=" + locktest.Secret,
					locktest.Secret, "user:" + locktest.Secret + "@tcp(host)/db?parseTime=" + locktest.Secret,
				},
			})
		})
	}
}

// database is a database for the tests that all servers share.
type database struct{ db *sqltest.Database }

func (d database) Pool() *sql.DB { return d.db.DB.DB }

func (d database) Access(t *testing.T) locktest.Access {
	t.Helper()
	c := d.config(t)
	return locktest.Access{Address: c.Addr, User: c.User, Password: c.Passwd, Database: c.DBName}
}

func (d database) DSN(t *testing.T, other locktest.Access) string {
	t.Helper()
	c := d.config(t)
	c.Addr, c.DBName = cmp.Or(other.Address, c.Addr), cmp.Or(other.Database, c.DBName)
	c.User, c.Passwd = cmp.Or(other.User, c.User), cmp.Or(other.Password, c.Passwd)
	return c.FormatDSN()
}

func (d database) config(t *testing.T) *gomysql.Config {
	t.Helper()
	return parse(t, d.db.DSN)
}

func parse(t *testing.T, dsn string) *gomysql.Config {
	t.Helper()
	config, err := gomysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (d database) New(s locktest.Settings) (locktest.SessionLocker, error) {
	opts := []mysql.Option{mysql.WithSessionTTL(s.SessionTTL()), mysql.WithHook(s.Hook), mysql.WithLogger(s.Logger)}
	if s.Owner != "" {
		opts = append(opts, mysql.WithOwner(s.Owner))
	}
	if s.Heartbeat != 0 {
		opts = append(opts, mysql.WithHeartbeat(s.Heartbeat))
	}
	if s.Connections != 0 {
		opts = append(opts, mysql.WithMaxConnections(s.Connections))
	}
	if s.DB != nil {
		l, err := mysql.FromDB(s.DB, opts...)
		return shown{l}, err
	}
	l, err := mysql.New(cmp.Or(s.DSN, d.db.DSN), opts...)
	return shown{l}, err
}

// shown is a Locker for the suites that all servers share.
type shown struct{ *mysql.Locker }

func (s shown) Inspect(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Holder, bool, error) {
	info, err := s.Locker.Inspect(ctx, name, opts...)
	return info.Holder, info.Held, err
}

func (d database) Child(dsn string, ttl time.Duration, job locktest.Job) []string {
	return childEnv(dsn, ttl, string(job))
}

func (d database) Waiting(t *testing.T, _ string) int { t.Helper(); return waitersOn(t, d.db) }
func (d database) Locks(t *testing.T) int             { t.Helper(); return waitersOn(t, d.db) }
func (d database) Sessions(t *testing.T) int          { t.Helper(); return sessionsOn(t, d.db) }

func (d database) Holder(t *testing.T, name string) int64 {
	t.Helper()
	return int64(holderOf(t, d.db, name))
}

func (d database) End(t *testing.T, name string) { t.Helper(); kill(t, d.db, name) }

func (d database) EndWaits(t *testing.T, _ string, sessions bool) {
	t.Helper()
	end := "KILL QUERY"
	if sessions {
		end = "KILL"
	}
	var ids []int
	if err := d.db.SelectContext(t.Context(), &ids,
		"SELECT ID FROM "+processes+" WHERE DB = DATABASE() AND STATE = 'User lock'"); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		_, _ = d.db.ExecContext(t.Context(), fmt.Sprintf("%s %d", end, id)) // it may be gone
	}
}
