package sqltest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/sqltest"
)

func TestAStandbyFollowsWithTheLagThatATestSets(t *testing.T) {
	t.Parallel()
	server := sqltest.Start(t, sqltest.EnginePostgres)
	db := server.Database(t)
	mustExec(t, db.DB, "CREATE TABLE goods (n int)")
	standby := server.Standby(t)
	here := standby.Database(t, db)
	if got := goods(t, here.DB); got != 0 {
		t.Errorf("%d rows", got)
	}
	if _, err := here.ExecContext(t.Context(), "INSERT INTO goods VALUES (0)"); err == nil {
		t.Error("a standby takes writes")
	}
	mustExec(t, db.DB, "INSERT INTO goods VALUES (1)")
	standby.CatchUp()
	if got := goods(t, here.DB); got != 1 {
		t.Errorf("%d rows", got)
	}

	standby.SetLag(time.Hour)
	mustExec(t, db.DB, "INSERT INTO goods VALUES (2)")
	eventually(t, "the standby has received it", func() bool {
		var is bool
		err := here.GetContext(t.Context(), &is, "SELECT pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()")
		return err == nil && is
	})
	if got := goods(t, here.DB); got != 1 {
		t.Errorf("%d rows in spite of the lag", got)
	}
	standby.SetLag(0)
	standby.CatchUp()
	if got := goods(t, here.DB); got != 2 {
		t.Errorf("%d rows", got)
	}

	network := db.Network(t)
	far := openFar(t, db, network)
	goods(t, far)
	server.Kill()
	standby.Promote()
	network.SwitchTo(here)
	if _, err := far.ExecContext(t.Context(), "INSERT INTO goods VALUES (3)"); err != nil { // on a connection that ended
		mustExec(t, far, "INSERT INTO goods VALUES (3)")
	}
	if got := goods(t, here.DB); got != 3 {
		t.Errorf("%d rows after the failover", got)
	}
	here.SetMaxIdleConns(0)
	standby.Stop()
	standby.Start()
	if got := goods(t, here.DB); got != 3 {
		t.Errorf("%d rows after a restart", got)
	}
}

func TestOnlyPostgreSQLHasAStandby(t *testing.T) {
	t.Parallel()
	server := sqltest.Start(t, sqltest.EngineMariaDB)
	tb := newFakeTB(t.Name())
	tb.run(func() { server.Standby(tb) })
	if !strings.Contains(tb.fatal, "is one of PostgreSQL") {
		t.Errorf("failed with %q", tb.fatal)
	}
}
