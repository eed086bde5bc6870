package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/oddserver"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// I42.
func TestAWaitOutlastsAProxyThatHasLostItsServer(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for name, answers := range map[string]oddserver.Answers{
		"and lets nobody in":    {Connecting: "2003", Statement: "2013"},
		"and lets everybody in": {Statement: "9001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, db *sqltest.Database) {
				t.Helper()
				p := oddserver.NewProxy(t, db)
				locktest.OutlastsProxy(t, database{db}, p.Address, func() { p.Lose(answers) }, p.Find)
			})
		})
	}
}

func TestAWaitOutlastsAPasswordThatIsRefusedForAWhile(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		dsn := asUser(t, db)
		user := parse(t, dsn).User
		locktest.OutlastsPassword(t, database{db}, dsn,
			func() { statement(t, db, "ALTER USER "+user+" IDENTIFIED BY 'another'") },
			func() { statement(t, db, "ALTER USER "+user+" IDENTIFIED BY 'visitor'") })
	})
}

// I49.
func TestAServerIsAskedWhetherItIsARelativeOfMySQL(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		p := oddserver.NewProxy(t, db)
		comment := ask[string](t, db, "SELECT @@version_comment")
		p.Rename(comment, fmt.Sprintf("%-*.*s", len(comment), len(comment), "TiDB Server"))
		l := closing(t)(mysql.New(database{db}.DSN(t, locktest.Access{Address: p.Address})))
		_, err := l.TryAcquire(t.Context(), "a")
		mustSayWhy(t, err, "TiDB")
	})
}

func TestAWrongParameterOfTheDSNEndsAWait(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		l := closing(t)(mysql.New(strings.Split(db.DSN, "?")[0] + "?no_such_variable=1"))
		if _, err := l.Acquire(t.Context(), "x"); err == nil || sqllock.IsRetryable(err) {
			t.Error(err)
		}
	})
}
