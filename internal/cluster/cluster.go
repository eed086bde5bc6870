// Package cluster knows whether a server of MySQL or MariaDB is one of several on which clients may be at the same time.
// What GET_LOCK locks is known to one of them only.
package cluster

import (
	"context"
	"database/sql"
	"strings"
)

// Kind is a kind of cluster.
type Kind string

// The kinds of cluster that are recognised.
const (
	None             Kind = ""
	Galera           Kind = "Galera"
	GroupReplication Kind = "Group Replication"
)

// Variables has the names of the variables that Of needs, for the list of an IN in SQL. Query reads them.
const (
	Variables = "'wsrep_provider', 'wsrep_on', 'group_replication_group_name'"
	Query     = "SHOW GLOBAL VARIABLES WHERE Variable_name IN (" + Variables + ")"
)

// querier is a *sql.DB or a *sql.Conn.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Read runs a query for names and values, such as Query. It returns the values by the names in lower case; NULL is "".
func Read(ctx context.Context, db querier, query string) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	values := make(map[string]string)
	for rows.Next() {
		var name string
		var value sql.NullString
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		values[strings.ToLower(name)] = value.String
	}
	return values, rows.Err()
}

// Of returns the kind of cluster that a server with these global variables belongs to, or None.
func Of(variables map[string]string) Kind {
	switch {
	case galera(variables["wsrep_provider"], variables["wsrep_on"]):
		return Galera
	case variables["group_replication_group_name"] != "":
		return GroupReplication
	}
	return None
}

// galera reports whether a server is a Galera node. Its documents say that wsrep_on of Percona XtraDB Cluster belongs to
// a session alone: there SHOW GLOBAL VARIABLES has no row of it, and the provider tells.
func galera(provider, on string) bool {
	return provider != "" && !strings.EqualFold(provider, "none") && on != "0" && !strings.EqualFold(on, "OFF")
}
