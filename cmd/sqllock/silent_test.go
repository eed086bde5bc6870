package main

import (
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// MySQL's driver minds no context while a transaction ends.
func TestTheDoctorEndsIfTheServerFallsSilent(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		call(t, on(t, db.url), 0, nil, "schema", "apply")
		url, network := behind(t, db)
		network.HoldAnswer("commit").Skip(2) // a setting that the doctor asks for, and READ COMMITTED
		silent := wellAt(db.Engine)
		silent.code, silent.lease = exitMind, warn
		silent.unwell = levels{"tables": warn}
		if db.Engine == sqltest.EngineMariaDB {
			silent.unwell["holders"] = warn
		}
		silent.says = append(silent.says, "there was no answer within 10s")
		mustFind(t, url, silent)
	})
}

func TestACheckOfTheTablesEndsIfTheServerFallsSilent(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		call(t, on(t, db.url), 0, nil, "schema", "apply")
		for statement, skip := range map[string]int{"select": 0, "commit": 1} { // READ COMMITTED comes before
			t.Run(statement, func(t *testing.T) {
				t.Parallel()
				url, network := behind(t, db)
				network.HoldAnswer(statement).Skip(skip)
				call(t, on(t, url), exitUnavailable, []string{"the database did not answer within 15s: "}, "schema", "check")
			})
		}
	})
}
