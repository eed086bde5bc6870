package leasetable

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// findGalera finds out whether a connection, which has its settings, leads to MariaDB, and to a node of a Galera cluster, and has
// such a node catch up with what others have committed before each statement. Otherwise a Locker
// whose connections lead to several nodes could look for what it has just taken on a node that does not
// have it yet, and believe that it was lost.
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

// isGalera asks a server. MySQL does not know the variable.
func isGalera(ctx context.Context, dc driver.Conn) (bool, error) {
	row, err := lastRow(ctx, dc, "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'")
	return len(row) == 2 && fmt.Sprintf("%s", row[1]) == "ON", err
}

// guardGalera pins a name as pinOn does, on a Galera node. There a takeover on another node does not
// wait for a lock on the row: it undoes the transaction, or not even that, for a transaction
// that is about to commit is done once more afterwards if it has written nothing that the takeover wrote.
// Of two that write the same row the second fails at its commit, so the guard writes it.
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
