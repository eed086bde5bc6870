package conn

import (
	"slices"

	"github.com/sqllock/sqllock/schema"
)

// silentPostgres and silentMySQL let a connection be silent for a day, where the server or the DSN has it ended sooner. A
// connection that neither its process nor TCP ends still ends some day. PostgreSQL 12 and 13 have no such limit.
const (
	silentPostgres = "CASE WHEN pg_catalog.current_setting('idle_session_timeout', true)::interval BETWEEN '1ms' AND '1d' " +
		"THEN pg_catalog.set_config('idle_session_timeout', '1d', false) END"
	silentMySQL = ", wait_timeout = CAST(GREATEST(@@wait_timeout, 86400) AS UNSIGNED)"
)

// settings returns the statements that settle a connection of p, and the columns for lookUpByIndex. The connection for
// renewals is silent between two of them. If the server ended it, the next renewal would come on another connection: its
// lease would take no more names, and look for what a failover forgot (I20, I23).
func (p *Pool) settings() (texts, columns []string) {
	texts = settings[p.dialect]
	switch {
	case !p.loan.renews():
	case p.dialect == schema.Postgres:
		columns = []string{silentPostgres}
	case p.dialect == schema.MySQL:
		texts = slices.Clone(texts)
		texts[0] += silentMySQL
	}
	return texts, columns
}
