package leasetable_test

import (
	"slices"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// These tests stop, kill or pause a server, or change its settings. They run one after the other on one server of each
// kind that they own, because starting a server takes longer than most of them.
func TestAServerOfOnesOwn(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	type story struct {
		name string
		run  func(*testing.T, *sqltest.Server, *sqltest.Database)
	}
	all := []story{
		{"a server that hangs ends the lock before its lease expires", serverHangs},
		{"a lease survives a restart of the server", serverRestarts},
		{"a lock released while the server is away is free when it is back", serverIsAway},
		{"waits and campaigns outlast a restart of the server", serverRestartsUnderWaits},
		{"a leader that is cut off leads again when it is not", leaderIsCutOff},
		{"a holder on a server that became read-only is told, and waits outlast it", serverBecomesReadOnly},
		{"the server's odd defaults do no harm", oddDefaults},
	}
	postgres := []story{
		{"what no standby confirms is not held", noStandbyConfirms},
		{"what no standby confirms is not passed on", noStandbyConfirmsWhatIsPassedOn},
		{"what no standby confirms is not known to be released", noStandbyConfirmsARelease},
	}
	mysql := []story{
		{"what waits for a dump's lock ends by itself", serverIsDumped},
		{"a guard on a read-only server is refused", guardOnReadOnlyServer},
	}
	for engine, more := range map[sqltest.Engine][]story{
		sqltest.EnginePostgres: postgres, sqltest.EngineMySQL: mysql, sqltest.EngineMariaDB: mysql,
	} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			server := sqltest.Start(t, engine)
			for _, s := range append(slices.Clip(all), more...) {
				if !t.Run(s.name, func(t *testing.T) { s.run(t, server, withTables(t, server.Database(t))) }) {
					t.Fatal("the server may not be as the others expect it")
				}
			}
		})
	}
}
