package store

import "github.com/sqllock/sqllock/schema"

// serverFacts says what the server, and the connections to it, can do.
type serverFacts struct{ *database }

func (s serverFacts) System() string {
	switch {
	case s.dialect == schema.Postgres:
		return "postgresql"
	case s.OnMariaDB():
		return "mariadb"
	}
	return string(s.dialect)
}

func (s serverFacts) OneWriter() bool { return s.dialect == schema.SQLite }

// MaxTurns implements Server. The nodes of a Galera cluster have a queue each.
func (s serverFacts) MaxTurns() int {
	if s.dialect == schema.SQLite || s.BehindPooler() || s.OnGalera() {
		return 0
	}
	return s.Pools.MaxTurns()
}

func (s serverFacts) Saturated() bool { return s.rowWaits.saturated() }
