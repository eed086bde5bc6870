package mysql_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// Settings that are meant for the application's statements, and limits shorter than a wait is.
func TestSettingsInTheDSNDoNotHurt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		limit := "max_execution_time=200"
		if db.Engine == sqltest.EngineMariaDB {
			limit = "max_statement_time=0.2"
		}
		for _, setting := range []string{
			limit, "autocommit=0", "wait_timeout=1", "lock_wait_timeout=1", "innodb_lock_wait_timeout=1",
			"readTimeout=300ms&writeTimeout=300ms", "interpolateParams=true", "clientFoundRows=true", "multiStatements=true",
			"sql_mode=%27ANSI%27", "parseTime=true", "collation=utf8mb4_bin",
		} {
			t.Run(setting, func(t *testing.T) {
				t.Parallel()
				separator := "?"
				if strings.Contains(db.DSN, "?") {
					separator = "&"
				}
				dsn := db.DSN + separator + setting
				locktest.LeftWhole(t, database{db}, dsn, setting)
			})
		}
	})
}

func TestAnOptionOutOfRangeIsAnError(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]mysql.Option{
		"a session TTL that is too short":       mysql.WithSessionTTL(3*time.Second - 1),
		"a negative number of connections":      mysql.WithMaxConnections(-1),
		"no connection":                         mysql.WithMaxConnections(0),
		"one connection, and none to wait on":   mysql.WithMaxConnections(1),
		"more connections than a server can be": mysql.WithMaxConnections(1001),
	} {
		if _, err := mysql.New("user@tcp(localhost)/any", option); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
