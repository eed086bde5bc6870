package conn

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock/internal/cluster"
)

// findGalera finds out whether a connection, which has its settings, leads to MariaDB, and whether it leads to a node
// of a Galera cluster. It makes such a node catch up with the commits of other nodes before each statement: see Galera in
// chapter 7 of docs/design.md.
func (p *Pool) findGalera(ctx context.Context, dc driverConn) error {
	version, err := lastRow(ctx, dc, "SELECT VERSION()")
	if err != nil {
		return err
	}
	if len(version) == 1 && strings.Contains(fmt.Sprintf("%s", version[0]), "MariaDB") {
		p.mariadb.Store(true)
	}
	variables := make(map[string]string)
	err = eachRow(ctx, dc, cluster.Query, nil, func(row []driver.Value) {
		if row[1] != nil {
			variables[fmt.Sprintf("%s", row[0])] = fmt.Sprintf("%s", row[1])
		}
	})
	if err != nil || cluster.Of(variables) != cluster.Galera {
		return err
	}
	p.galera.Store(true)
	const allStatements = "SET SESSION wsrep_sync_wait = 7"
	return execOn(ctx, dc, allStatements)
}
