package store

import "github.com/sqllock/sqllock/schema"

func (s *Database) System() string {
	switch {
	case s.dialect == schema.Postgres:
		return "postgresql"
	case s.OnMariaDB():
		return "mariadb"
	}
	return string(s.dialect)
}

func (s *Database) OneWriter() bool { return s.dialect == schema.SQLite }

// MaxTurns implements Server. The nodes of a Galera cluster have a queue each.
func (s *Database) MaxTurns() int {
	if s.dialect == schema.SQLite || s.BehindPooler() || s.OnGalera() {
		return 0
	}
	return s.Pools.MaxTurns()
}

func (s *Database) Saturated() bool { return s.rowWaits.saturated() }
