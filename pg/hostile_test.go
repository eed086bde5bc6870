package pg_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// hostile are settings of which each hurts somebody who takes locks as the application works.
var hostile = []string{
	"lock_timeout=1", "idle_session_timeout=50", "idle_in_transaction_session_timeout=1",
	"default_transaction_isolation=serializable", "default_transaction_isolation=repeatable read",
	"default_transaction_read_only=on", "default_transaction_deferrable=on", "client_encoding=SQL_ASCII",
	"client_encoding=LATIN1", "search_path=nowhere", "standard_conforming_strings=off", "backslash_quote=off",
	"client_connection_check_interval=1", "deadlock_timeout=1", "DateStyle=SQL, DMY", "bytea_output=escape",
	"enable_seqscan=off", "row_security=off", "check_function_bodies=off", "log_statement=all", "jit=on",
}

func TestEverySettingOfTheDSNLeavesALockWhole(t *testing.T) {
	t.Parallel()
	settings := append([]string{
		"application_name=mine", "pool_max_conns=1", "target_session_attrs=read-write", "connect_timeout=2",
		"options=-c search_path=nowhere -c lock_timeout=1 -c default_transaction_read_only=on",
		"default_query_exec_mode=simple_protocol", "default_query_exec_mode=exec", "default_query_exec_mode=describe_exec",
		"default_query_exec_mode=cache_describe", "statement_timeout=200",
	}, hostile...)
	for _, setting := range settings {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			u := parse(t, db.DSN)
			query := u.Query()
			key, value, _ := strings.Cut(setting, "=")
			query.Set(key, value)
			u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
			locktest.LeftWhole(t, database{db}, u.String(), "a")
		})
	}
}

// A DBA sets these for a role, and its sessions do not know.
func TestSettingsOfTheRoleLeaveALockWhole(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	role := ask[string](t, db, "SELECT current_database()") + "_role"
	statement(t, db, "CREATE ROLE "+role+" LOGIN PASSWORD 'secret'")
	t.Cleanup(func() { _, _ = db.Exec("DROP ROLE " + role) }) //nolint:usetesting // its context has ended
	for _, setting := range hostile {
		name, value, _ := strings.Cut(setting, "=")
		if name != "log_statement" && name != "deadlock_timeout" { // for a superuser's sessions only
			statement(t, db, "ALTER ROLE "+role+" SET "+name+" = '"+value+"'")
		}
	}
	statement(t, db, "ALTER ROLE "+role+" SET statement_timeout = '200ms'")
	u := parse(t, db.DSN)
	u.User = url.UserPassword(role, "secret")
	locktest.LeftWhole(t, database{db}, u.String(), "a")
}
