package leasetable_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// A process is stopped after it has read the response that grants it a name, and before it knows the response, until
// its lease has expired. I4.
func TestALockWhoseAnswerIsKnownTooLateIsNotGiven(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	const metadata = "it is stopped"
	if dsn, is := locktest.StalledChild(); is {
		s := &locktest.Staller{}
		db := openStalling(t, dsn, s)
		l := newLocker(t, db, leasetable.WithTTL(5*time.Second))
		word := onWire(&sqltest.Database{Engine: engineOf(dsn)}, []byte(metadata))
		locktest.ServeStalls(ofAnyKind(l), s, word, leasetable.WithMetadata(metadata))
		return
	}
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		query := "SELECT COUNT(*) FROM sqllock_lock k JOIN sqllock_lease l ON l.id = k.lease_id WHERE " + leftSQL[db.Engine] + " < 0"
		locktest.Stalls(t, db.DSN, 2, func() bool {
			var expired int
			return db.GetContext(t.Context(), &expired, query) == nil && expired == 1
		})
	})
}

// engineOf returns the engine of a DSN; MariaDB's DSNs look like MySQL's.
func engineOf(dsn string) sqltest.Engine {
	if strings.HasPrefix(dsn, "postgres") {
		return sqltest.EnginePostgres
	}
	return sqltest.EngineMySQL
}

func openStalling(t *testing.T, dsn string, s *locktest.Staller) *sqlx.DB {
	t.Helper()
	var db *sqlx.DB
	if engineOf(dsn) == sqltest.EnginePostgres {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		config.DialFunc = s.Dial
		db = sqlx.NewDb(stdlib.OpenDB(*config), "pgx")
	} else {
		config, err := gomysql.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		config.DialFunc = s.Dial
		c, err := gomysql.NewConnector(config)
		if err != nil {
			t.Fatal(err)
		}
		db = sqlx.NewDb(sql.OpenDB(c), "mysql")
	}
	t.Cleanup(func() { _ = db.Close() }) // the test is over, so an error does not matter
	return db
}
