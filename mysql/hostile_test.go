package mysql_test

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

func TestEverySettingOfTheDSNLeavesALockWhole(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		settings := []string{
			"clientFoundRows=true&autocommit=0&interpolateParams=true&multiStatements=true", "parseTime=true&loc=Europe%2FBerlin",
			"columnsWithAlias=true", "checkConnLiveness=false", "rejectReadOnly=true", "timeTruncate=1h",
			"maxAllowedPacket=1024", "readTimeout=1ms&writeTimeout=1s", "charset=latin1", "charset=latin1&interpolateParams=true", "charset=ascii",
			"collation=utf8mb4_bin&sql_mode=%27ANSI_QUOTES%2CNO_BACKSLASH_ESCAPES%27&interpolateParams=true",
			"sql_mode=%27PIPES_AS_CONCAT%2CNO_AUTO_VALUE_ON_ZERO%27", "time_zone=%27%2B05%3A00%27",
			"innodb_lock_wait_timeout=1&lock_wait_timeout=1", "wait_timeout=1&interactive_timeout=1",
			"net_read_timeout=1&net_write_timeout=1", "completion_type=2", "sql_safe_updates=1", "sql_select_limit=0", "sql_select_limit=1",
			"big_tables=1", "connectionAttributes=program_name%3Amine",
		}
		if db.Engine == sqltest.EngineMariaDB {
			settings = append(settings, "tx_isolation=%27SERIALIZABLE%27", "max_statement_time=0.02", "tx_read_only=1",
				"idle_transaction_timeout=1", "sql_mode=%27ORACLE%27")
		} else {
			settings = append(settings, "transaction_isolation=%27SERIALIZABLE%27", "max_execution_time=20", "transaction_read_only=1",
				"sql_require_primary_key=1")
		}
		for _, setting := range settings {
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
