package schema_test

import (
	"testing"

	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// hostile are settings of a DSN that change the effect of a statement or how it is sent.
func hostile(engine sqltest.Engine) map[string]map[string]string {
	isolation := "transaction_isolation"
	if engine == sqltest.EngineMariaDB {
		isolation = "tx_isolation"
	}
	switch engine {
	case sqltest.EnginePostgres:
		return map[string]map[string]string{
			"serializable":              {"default_transaction_isolation": "serializable"},
			"repeatable read":           {"default_transaction_isolation": "repeatable read"},
			"simple protocol":           {"default_query_exec_mode": "simple_protocol"},
			"no statement is prepared":  {"default_query_exec_mode": "exec"},
			"every notice is sent":      {"client_min_messages": "debug1"},
			"backslashes escape":        {"standard_conforming_strings": "off", "escape_string_warning": "off"},
			"a schema that is ours too": {"search_path": "nowhere, public"},
		}
	case sqltest.EngineSQLite:
		return map[string]map[string]string{
			"every transaction writes": {"_txlock": "immediate"},
			"foreign keys":             {"_pragma": "foreign_keys(1)"},
			"nobody waits":             {"_pragma": "busy_timeout(0)"},
		}
	default:
		return map[string]map[string]string{
			"no autocommit":                   {"autocommit": "0"},
			"serializable":                    {isolation: "'SERIALIZABLE'"},
			"no autocommit, serializable":     {"autocommit": "0", isolation: "'SERIALIZABLE'"},
			"no autocommit, read uncommitted": {"autocommit": "0", isolation: "'READ-UNCOMMITTED'"},
			"found rows":                      {"clientFoundRows": "true"},
			"interpolation":                   {"interpolateParams": "true"},
			"double quotes quote identifiers": {"sql_mode": "'ANSI'"},
			"another character set":           {"charset": "latin1"},
			"another zone":                    {"time_zone": "'+05:00'"},
		}
	}
}

func TestApplyAndCheckWithHostileSettings(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		for name, params := range hostile(db.Engine) {
			t.Log(name)
			odd := again(t, db, params)
			apply(t.Context(), t, odd, d, schema.Tables{})
			apply(t.Context(), t, odd, d, schema.Tables{Prefix: "Odd_"})

			// Another connection sees the tables, so they are committed. It can drop them, so no transaction was left
			// open.
			must(t, schema.Check(t.Context(), db.DB.DB, d, schema.Tables{}))
			impatient := again(t, db, impatience(d))
			for _, tables := range []schema.Tables{{}, {Prefix: "Odd_"}} {
				for _, table := range []string{"lease", "lock", "permit", "version"} {
					exec(t, impatient, tables.Rewrite(d, "DROP TABLE sqllock_"+table))
				}
			}
			must(t, odd.Close())
		}
	})
}

// impatience returns settings that make a statement fail within a second if it waits for a lock.
func impatience(d schema.Dialect) map[string]string {
	switch d {
	case schema.Postgres:
		return map[string]string{"lock_timeout": "1s"}
	case schema.MySQL:
		return map[string]string{"lock_wait_timeout": "1"}
	default:
		return map[string]string{"_pragma": "busy_timeout(1000)"}
	}
}
