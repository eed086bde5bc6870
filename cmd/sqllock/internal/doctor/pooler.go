package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/pg"
)

// pooling is how a connection pooler in between shares the sessions of the server.
type pooling int

const (
	noPooler pooling = iota
	poolsSessions
	poolsTransactions
	poolsStatements
)

func postgresPooler(ctx context.Context, p *patient) (Finding, error) {
	if p.engine != "" {
		return Finding{}, nil // it numbers its sessions in its own way
	}
	between, err := p.isBetween(ctx)
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
		return beware(direct+" or transaction locks",
			"one that pools transactions is in between: a session, and its locks, is now one's and then another's"), nil
	}
	return beware(direct+"; a lease cannot guard a transaction here",
		"one that pools statements is in between: there are no transactions"), nil
}

// isBetween compares the session that a connection was told of when it was opened with the one
// that answers.
func (p *patient) isBetween(ctx context.Context) (between bool, err error) {
	conn, err := p.DB.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }() // into the pool
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

// pooling finds out what a pooler pools: a lock is taken as if it pooled sessions, which is
// refused if it does not.
func (p *patient) pooling(ctx context.Context) (pooling, error) {
	tx, err := p.DB.BeginTx(ctx, nil)
	switch {
	case err != nil && strings.Contains(err.Error(), "statement pooling"): // as PgBouncer says it
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

func postgresPrepared(_ context.Context, p *patient) (Finding, error) {
	if p.Prepares && (p.pooler == poolsTransactions || p.pooler == poolsStatements) {
		return beware("add default_query_exec_mode=exec to the URL (?… or &…)",
			"statements that are prepared in one session are not known in the next, unless the pooler takes care of that"), nil
	}
	return Finding{}, nil
}
