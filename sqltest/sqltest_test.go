package sqltest_test

import (
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

var engines = map[sqltest.Engine]func(sqltest.TB, ...sqltest.Option) *sqltest.Database{
	sqltest.EnginePostgres: sqltest.Postgres,
	sqltest.EngineMySQL:    sqltest.MySQL,
	sqltest.EngineMariaDB:  sqltest.MariaDB,
	sqltest.EngineSQLite:   sqltest.SQLite,
}

// TestWhichServers logs the servers that the tests of this run use.
func TestWhichServers(t *testing.T) {
	t.Parallel()
	for engine, open := range engines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			db := open(t)
			t.Logf("server: %s", db.Server)
			var one int
			if err := db.Get(&one, "SELECT 1"); err != nil || one != 1 {
				t.Fatalf("SELECT 1 = %d, %v", one, err)
			}
		})
	}
}
