package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/schema"
)

func notTested(engine, version string) Finding {
	return beware("try leases before you rely on them; do not use session or transaction locks",
		"%s, which sqllock is not tested with: %s", engine, version)
}

// use compares how much of a resource is in use with its limit.
func use(what, setting string, used, limit int) Finding {
	if used*5 >= limit*4 {
		return beware("raise "+setting, "%d of %d %s are in use", used, limit, what)
	}
	return fine("%d of %d %s are in use", used, limit, what)
}

// clock compares the server's clock with this machine's. The server read its clock at some time between the request and
// the arrival of the answer.
func clock(ctx context.Context, p *patient) (Finding, error) {
	var ahead, bound time.Duration
	for try := range 3 {
		asked := time.Now()
		now, err := p.Now(ctx)
		if err != nil {
			return Finding{}, err
		}
		half := time.Since(asked) / 2
		if try == 0 || half < bound {
			ahead, bound = now.Sub(asked.Add(half)), half
		}
	}
	const much = time.Second
	side := "ahead of"
	if ahead < 0 {
		side = "behind"
	}
	text := fmt.Sprintf("the server's is %v %s this machine's (± %v)", rounded(ahead.Abs()), side, rounded(bound))
	if ahead.Abs()-bound > much {
		return beware("set both clocks by NTP", "%s: leases mind only when the server's is set, what is done at a time of day minds both", text), nil
	}
	return fine("%s", text), nil
}

// rounded rounds a duration for people.
func rounded(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

func tables(ctx context.Context, p *patient) (Finding, error) {
	if p.pooler == poolsStatements {
		return beware("run sqllock schema check on the server itself", "not looked at, for that takes a transaction"), nil
	}
	err := schema.Check(ctx, p.DB.DB, p.Dialect, p.Tables)
	if errors.Is(err, sqllock.ErrSchema) {
		p.noTables = true
		text := oneLine(err)
		advice := strings.LastIndex(text, ": ") // schema puts the advice last
		return bad(text[advice+2:], "%s", text[:advice]), nil
	}
	return fine("there, and as this release needs them"), err
}

// writes are the operations that leases need, in a form that changes nothing.
var writes = []string{
	"UPDATE sqllock_lock SET token = token WHERE 1 = 0",
	"INSERT INTO sqllock_lock SELECT * FROM sqllock_lock WHERE 1 = 0",
	"UPDATE sqllock_lease SET renewals = renewals WHERE 1 = 0",
	"INSERT INTO sqllock_lease SELECT * FROM sqllock_lease WHERE 1 = 0",
	"DELETE FROM sqllock_lease WHERE 1 = 0",
	"UPDATE sqllock_permit SET token = token WHERE 1 = 0",
	"INSERT INTO sqllock_permit SELECT * FROM sqllock_permit WHERE 1 = 0",
	"DELETE FROM sqllock_permit WHERE 1 = 0",
}

func write(ctx context.Context, p *patient) (Finding, error) {
	if p.noTables {
		return Finding{}, nil
	}
	for _, statement := range writes {
		statement = p.Tables.Rewrite(p.Dialect, statement)
		var err error
		if p.Dialect == schema.Postgres {
			err = p.writeAlone(ctx, statement)
		} else {
			_, err = p.DB.ExecContext(ctx, statement)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return Finding{}, err
		case errors.Is(err, errUncommitted):
			return bad("connect to PostgreSQL itself", "%s", oneLine(err)), nil
		case err != nil:
			return bad("let this user SELECT, INSERT, UPDATE and DELETE in the tables, on a server that can be written to",
				"leases cannot be written: %s", oneLine(err)), nil
		}
	}
	return fine("this user may read and write the tables"), nil
}

var errUncommitted = errors.New("what is between here and PostgreSQL leaves statements uncommitted: one that was alone left a transaction open")

// writeAlone runs one of the writes as leases do, with an argument, and checks that it was committed.
func (p *patient) writeAlone(ctx context.Context, statement string) error {
	conn, err := p.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // returns it to the pool, or discards it if a transaction is open
	if _, err := conn.ExecContext(ctx, strings.Replace(statement, "1 = 0", "$1", 1), false); err != nil {
		return err
	}
	return conn.Raw(func(dc any) error {
		if sc, ok := dc.(*stdlib.Conn); ok && sc.Conn().PgConn().TxStatus() != 'I' {
			return errUncommitted
		}
		return nil
	})
}

// create reports whether this user may create tables. That matters only if they are missing.
func (p *patient) create(may bool) Finding {
	switch {
	case may:
		return fine("this user may create tables")
	case p.noTables:
		return beware("have sqllock schema apply run by one who may", "this user may not create tables")
	}
	return fine("this user may not create tables, and need not: they are there")
}
