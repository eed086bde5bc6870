package pg_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/oddserver"
	"github.com/sqllock/sqllock/sqltest"
)

// I42.
func TestAWaitOutlastsAProxyThatHasLostItsServer(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for name, answers := range map[string]oddserver.Answers{
		"and lets nobody in":    {Connecting: "XX000", Statement: "XX000"},
		"and lets everybody in": {Statement: "58000"},
		"and says so":           {Connecting: "08004", Statement: "08006"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			p := oddserver.NewProxy(t, db)
			locktest.OutlastsProxy(t, database{db}, p.Address, func() { p.Lose(answers) }, p.Find)
		})
	}
}

func TestAWaitOutlastsAPasswordThatIsRefusedForAWhile(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	dsn := asRole(t, db)
	role := parse(t, dsn).User.Username()
	locktest.OutlastsPassword(t, database{db}, dsn,
		func() { statement(t, db, "ALTER ROLE "+role+" PASSWORD 'another'") },
		func() { statement(t, db, "ALTER ROLE "+role+" PASSWORD 'visitor'") })
}
