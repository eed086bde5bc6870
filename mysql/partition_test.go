package mysql_test

import (
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestPartitions(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(sqltest.TB) *sqltest.Database{"MySQL": sqltest.MySQL, "MariaDB": sqltest.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Partitions(t, func(t *testing.T) locktest.Parted {
				db := open(t)
				return locktest.Parted{
					Server: parse(t, db.DSN).Addr,
					NewLocker: func(t *testing.T, address string) locktest.Locker {
						t.Helper()
						return closing(t)(mysql.New(at(t, db, address), mysql.WithSessionTTL(3*time.Second)))
					},
					Waiting:  func(t *testing.T, _ string) int { t.Helper(); return waitersOn(t, db) },
					Sessions: func(t *testing.T) int { t.Helper(); return sessionsOn(t, db) },
				}
			})
		})
	}
}

func TestProcessesThatAreCutOff(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	for name, open := range map[string]func(sqltest.TB) *sqltest.Database{"MySQL": sqltest.MySQL, "MariaDB": sqltest.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Remotes(t, func(t *testing.T) locktest.Remote {
				db := open(t)
				return locktest.Remote{
					Server:    parse(t, db.DSN).Addr,
					TTL:       ttl,
					NewLocker: func(t *testing.T) locktest.Locker { t.Helper(); return newLocker(t, db) },
					Child: func(t *testing.T, address string, job locktest.Job) []string {
						t.Helper()
						return childEnv(at(t, db, address), ttl, string(job))
					},
					Waiting: func(t *testing.T, _ string) int { t.Helper(); return waitersOn(t, db) },
				}
			})
		})
	}
}

// at is the DSN of db with another address.
func at(t *testing.T, db *sqltest.Database, address string) string {
	t.Helper()
	config := parse(t, db.DSN)
	config.Addr = address
	return config.FormatDSN()
}

func parse(t *testing.T, dsn string) *gomysql.Config {
	t.Helper()
	config, err := gomysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return config
}
