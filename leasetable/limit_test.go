package leasetable_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// limited creates a database user with a limited number of connections, and returns the DSN.
func limited(t *testing.T, db *sqltest.Database, connections int) string {
	t.Helper()
	_, rest, _ := strings.Cut(db.DSN, "@")
	if db.Engine == sqltest.EnginePostgres {
		var role string
		if err := db.GetContext(t.Context(), &role, "SELECT current_database() || '_few'"); err != nil {
			t.Fatal(err)
		}
		run(t, db, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'one' CONNECTION LIMIT %d", role, connections))
		t.Cleanup(func() { _, _ = db.Exec("DROP OWNED BY " + role + "; DROP ROLE " + role) })
		run(t, db, "GRANT ALL ON ALL TABLES IN SCHEMA public TO "+role)
		return "postgres://" + role + ":one@" + rest
	}
	var name string
	if err := db.GetContext(t.Context(), &name, "SELECT DATABASE()"); err != nil {
		t.Fatal(err)
	}
	user := "few_" + name[max(0, len(name)-20):]
	run(t, db, fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY 'One1-one' WITH MAX_USER_CONNECTIONS %d", user, connections))
	t.Cleanup(func() { _, _ = db.Exec("DROP USER '" + user + "'@'%'") })
	run(t, db, "GRANT ALL ON `"+name+"`.* TO '"+user+"'@'%'")
	return user + ":One1-one@" + rest
}

func TestFewConnectionsAreEnough(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		connections := 3
		if locktest.Long() {
			connections = 100
		}
		pool := open(t, db.DriverName(), limited(t, db, connections))
		locktest.ManyLockers(t, func(t *testing.T) locktest.Locker {
			t.Helper()
			return ofAnyKind(newLocker(t, pool, leasetable.WithTTL(survivingTTL)))
		}, connections)
	})
}
