package conn

import (
	"context"
	"fmt"
	"strings"
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
	galera, err := lastRow(ctx, dc, "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'") // MySQL does not know it
	if err != nil || len(galera) != 2 || fmt.Sprintf("%s", galera[1]) != "ON" {
		return err
	}
	p.galera.Store(true)
	const allStatements = "SET SESSION wsrep_sync_wait = 7"
	return execOn(ctx, dc, allStatements)
}
