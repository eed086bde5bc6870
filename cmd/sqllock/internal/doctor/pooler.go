package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/pg"
)

// pooling is how a connection pooler shares the server's sessions.
type pooling int

const (
	noPooler pooling = iota
	poolsSessions
	poolsTransactions
	poolsStatements
)

func postgresPooler(ctx context.Context, p *patient) (Finding, error) {
	if p.engine != "" {
		return Finding{}, nil // its session numbers cannot be compared
	}
	if f, err := p.pgpool(ctx); err != nil || f.Level != "" {
		return f, err
	}
	between, err := BehindPooler(ctx, p.DB)
	switch {
	case err != nil:
		return Finding{}, err
	case !between:
		return fine("none: the connection leads to the server itself"), nil
	}
	if p.pooler, err = p.pooling(ctx); err != nil {
		return beware("connect to the server itself for session locks",
			"there is one, and it cannot be found out what it does: %s", oneLine(err)), nil
	}
	const direct = "connect to the server itself for session locks, or use leases"
	switch p.pooler {
	case poolsSessions:
		return beware(direct+"; in Go, pg.WithSessionPooling",
			"one that pools sessions is in between, and frees the locks of those who leave"), nil
	case poolsTransactions:
		return beware(direct+" or transaction locks; what a Go program prepares itself needs default_query_exec_mode=exec in its URL, "+
			"or a pooler that keeps prepared statements",
			"one that pools transactions is in between: a session, and its locks, is now one's and then another's"), nil
	}
	return beware(direct+"; a lease cannot guard a transaction here",
		"one that pools statements is in between: there are no transactions"), nil
}

// pgpool recognises pgpool-II, which reports the session of the server as the server does. pgpool-II answers these
// queries itself, but only in the simple protocol; otherwise it passes them on.
func (p *patient) pgpool(ctx context.Context) (Finding, error) {
	var version string
	err := p.DB.QueryRowContext(ctx, "SHOW pool_version", pgx.QueryExecModeSimpleProtocol).Scan(&version)
	const noSuchSetting = "42704"
	var answer *pgconn.PgError
	switch {
	case errors.As(err, &answer) && answer.Code == noSuchSetting:
		return Finding{}, nil
	case err != nil:
		return Finding{}, err
	}
	rows, err := p.DB.QueryContext(ctx, "SHOW pool_status", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return Finding{}, err
	}
	defer func() { _ = rows.Close() }() // Err has reported it
	mode := ""
	for rows.Next() {
		var item, value, about string
		if err := rows.Scan(&item, &value, &about); err != nil {
			return Finding{}, err
		}
		if item == "backend_clustering_mode" {
			mode = cmp.Or(pgpoolModes[value], value)
		}
	}
	return judgePgpool(version, mode), rows.Err()
}

// pgpoolModes are the values of backend_clustering_mode, as pgpool-II numbers them.
var pgpoolModes = map[string]string{
	"1": "streaming_replication", "2": "native_replication", "3": "logical_replication", "4": "slony", "5": "raw", "6": "snapshot_isolation",
}

func judgePgpool(version, mode string) Finding {
	var f Finding
	switch mode {
	case "raw", "slony":
		f = bad("connect to PostgreSQL itself, or set backend_clustering_mode = 'streaming_replication'",
			"pgpool-II %s in %s mode is in between: it leaves statements uncommitted, and says that they are done", version, mode)
		f.also = every
	case "native_replication", "snapshot_isolation":
		f = bad("connect to one PostgreSQL itself, always the same one",
			"pgpool-II %s in %s mode is in between: it has each server decide for itself who holds a lock, by its own clock", version, mode)
		f.also = every
	default:
		f = beware("connect to the primary itself for session locks",
			"pgpool-II %s in %s mode is in between: it says where statements go, and keeps the sessions of those who leave", version, cmp.Or(mode, "an unknown"))
		f.also = session
	}
	return f
}

// BehindPooler compares the session number that the connection got when it was opened with that of the session that
// answers a query. They differ behind a pooler.
func BehindPooler(ctx context.Context, db *sqlx.DB) (between bool, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	err = conn.Raw(func(dc any) error {
		sc, ok := dc.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the driver is not pgx, but %T", dc)
		}
		var pid uint32
		err := sc.Conn().QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid)
		between = pid != sc.Conn().PgConn().PID()
		return err
	})
	return between, err
}

// pooling finds out what a pooler pools. It acquires a lock as if the pooler pooled sessions, which fails with
// ErrRefused if it does not.
func (p *patient) pooling(ctx context.Context) (pooling, error) {
	tx, err := p.DB.BeginTx(ctx, nil)
	switch {
	case err != nil && strings.Contains(err.Error(), "statement pooling"): // the text of PgBouncer
		return poolsStatements, nil
	case err != nil:
		return noPooler, err
	}
	if err := tx.Rollback(); err != nil {
		return noPooler, err
	}
	err = p.trySession(ctx, pg.WithSessionPooling())
	switch {
	case errors.Is(err, sqllock.ErrRefused):
		return poolsTransactions, nil
	case err != nil:
		return noPooler, err
	}
	return poolsSessions, nil
}
