package conn

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
)

// findGalera finds out whether a connection, which has its settings, leads to MariaDB, and whether it leads to a node
// of a Galera cluster. It makes such a node catch up with the commits of other nodes before each statement. Otherwise
// a Locker whose connections lead to several nodes could read a name that it has just acquired on a node that does
// not have the commit yet, and believe that the name was lost.
func (p *Pool) findGalera(ctx context.Context, dc driver.Conn) error {
	maria, err := isMariaDB(ctx, dc)
	if err != nil {
		return err
	}
	if maria {
		p.mariadb.Store(true)
	}
	galera, err := isGalera(ctx, dc)
	if err != nil || !galera {
		return err
	}
	p.galera.Store(true)
	const allStatements = "SET SESSION wsrep_sync_wait = 7"
	return execOn(ctx, dc, allStatements)
}

// isGalera asks a server whether it is a Galera node. MySQL does not know the variable.
func isGalera(ctx context.Context, dc driver.Conn) (bool, error) {
	row, err := lastRow(ctx, dc, "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'")
	return len(row) == 2 && fmt.Sprintf("%s", row[1]) == "ON", err
}

// isMariaDB reports whether a server is MariaDB, by its version. A MariaDB server that a proxy presents as MySQL is
// treated as MySQL.
func isMariaDB(ctx context.Context, dc driver.Conn) (bool, error) {
	row, err := lastRow(ctx, dc, "SELECT VERSION()")
	return len(row) == 1 && strings.Contains(fmt.Sprintf("%s", row[0]), "MariaDB"), err
}
