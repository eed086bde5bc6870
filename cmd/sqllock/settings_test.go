package main

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

func TestCommandsWorkAsEverWhateverTheSettings(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		settings := []string{
			"default_query_exec_mode=exec&bytea_output=escape&standard_conforming_strings=off&DateStyle=SQL, DMY",
			"default_query_exec_mode=simple_protocol&bytea_output=escape&TimeZone=Asia/Karachi&application_name=mine",
		}
		if db.Engine != sqltest.EnginePostgres {
			everyMode := locktest.OddMySQL(t, db.DB.DB).Alone[0]
			settings = []string{
				everyMode + "&columnsWithAlias=true&SQL_SELECT_LIMIT=1&autocommit=0&collation_connection=utf16_bin&time_zone='+05:00'",
				everyMode + "&charset=latin1&clientFoundRows=true&interpolateParams=true&completion_type=1",
			}
		}
		for _, setting := range settings {
			e := on(t, locktest.WithSetting(db.url, setting))
			call(t, e, 0, nil, "schema", "apply")
			call(t, e, 0, nil, "schema", "check")
			mustFind(t, e["SQLLOCK_DB"], wellAt(db.Engine))
			holder := held(t, e, "a")
			call(t, e, 75, []string{`lock "a" is held by`}, "run", "--wait", "0", "a", "--", "true")
			if out := call(t, e, 0, nil, "ls", "--kind", "lease", "--json"); !strings.Contains(out, `"a"`) {
				t.Errorf("%s: listed: %s", setting, out)
			}
			holder.letGo()
			holder = held(t, e, "--kind", "session", "b")
			call(t, e, 75, []string{`lock "b" is held by`}, "run", "--kind", "session", "--wait", "0", "b", "--", "true")
			holder.letGo()
		}
	})
}
