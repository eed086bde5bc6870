package oddserver

import (
	"fmt"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

// MakeStandby restarts a PostgreSQL server as a standby, until the test ends or the returned function is called. db is
// a database on it.
func MakeStandby(t *testing.T, server *sqltest.Server, db *sqltest.Database) (promote func()) {
	t.Helper()
	var folder string
	if err := db.Get(&folder, "SHOW data_directory"); err != nil {
		t.Fatal(err)
	}
	// PostgreSQL starts as a standby if this file exists.
	if _, err := db.ExecContext(t.Context(), fmt.Sprintf("COPY (SELECT 1) TO '%s/standby.signal'", folder)); err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(0) // no connection from before the restart may be reused
	server.Stop()
	server.Start()
	promote = sync.OnceFunc(func() {
		var promoted bool
		if err := db.Get(&promoted, "SELECT pg_promote()"); err != nil || !promoted {
			t.Errorf("the standby was not promoted: %v", err)
		}
	})
	t.Cleanup(promote) // so that the database can be dropped
	return promote
}
