package leasetable

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// findGalera finds out whether a connection, which has its settings, leads to MariaDB, and whether it leads to a node
// of a Galera cluster. It makes such a node catch up with the commits of other nodes before each statement. Otherwise
// a Locker whose connections lead to several nodes could read a name that it has just acquired on a node that does
// not have the commit yet, and believe that the name was lost.
func (p *pool) findGalera(ctx context.Context, dc driver.Conn) error {
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

// guardGalera pins a name as pinOn does, on a Galera node. There a takeover on another node does not wait for a row
// lock. It undoes the transaction, or not even that: a transaction that is about to commit is replayed afterwards if
// it has written nothing that the takeover wrote. Of two transactions that write the same row, the second one fails
// at its commit, so the guard writes the row.
func (le *Lease) guardGalera(ctx context.Context, tx Tx, ls *lease) (found bool, err error) {
	s := ls.store
	for _, by := range []int64{1, -1} {
		token := le.token + max(-by, 0)
		result, err := tx.exec(ctx, s.texts[guardGalera], s.wire([]any{by, []byte(le.Name()), ls.id, token}))
		if err != nil {
			return false, classify(err)
		}
		if rows, err := result.RowsAffected(); err != nil || rows == 0 {
			return false, classify(err)
		}
	}
	return true, nil
}
