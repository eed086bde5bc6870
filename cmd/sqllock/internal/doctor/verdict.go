package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/schema"
)

// verdicts run last. They try session and transaction locks, because the library knows best where it refuses them. They
// do not try a lease, because its name would stay in the tables.
var verdicts = []check{
	{"lease", lease, judgeLease},
	{"session", session, judgeSession},
	{"transaction", transaction, judgeTransaction},
}

const insteadALease = "use a lease"

func judgeLease(_ context.Context, p *patient) (Finding, error) {
	if p.Dialect == schema.SQLite {
		return p.judge(lease, "safe between the processes of this machine: rows of this file decide"), nil
	}
	return p.judge(lease, "safe: rows decide, by the clock of the server; a lease survives a restart, and has a token"), nil
}

func judgeSession(ctx context.Context, p *patient) (Finding, error) {
	if p.Dialect == schema.SQLite {
		return absent(insteadALease, "SQLite has no sessions that could hold a lock"), nil
	}
	err := p.trySession(ctx)
	var refused *refusal.Error
	switch {
	case errors.As(err, &refused) && p.pooler == poolsSessions:
		return beware("connect to the server itself for sqllock run --kind session, which refuses every pooler",
			"safe from Go with pg.WithSessionPooling, as was tried"), nil
	case errors.As(err, &refused):
		return bad(refused.Instead, "refused: %s", refused.Seen), nil
	case err != nil:
		return bad(insteadALease, "a lock could not be taken: %s", oneLine(err)), nil
	}
	return p.judge(session, "safe, as was tried: it ends with its connection, and so with a restart or a failover"), nil
}

func judgeTransaction(ctx context.Context, p *patient) (Finding, error) {
	if p.Dialect != schema.Postgres {
		return absent(insteadALease, "only PostgreSQL has locks that end with a transaction"), nil
	}
	tx, err := p.DB.BeginTx(ctx, nil)
	if err == nil {
		defer func() { _ = tx.Rollback() }() // it changed nothing
		err = pg.TryLockTx(ctx, pg.SQLTx(tx), unusedName())
	}
	var refused *refusal.Error
	switch {
	case errors.As(err, &refused):
		return bad(refused.Instead, "refused: %s", refused.Seen), nil
	case err != nil:
		return bad(insteadALease, "a lock could not be taken: %s", oneLine(err)), nil
	}
	return p.judge(transaction, "safe, as was tried (from Go: pg.LockTx): it ends with its transaction"), nil
}

// judge derives the verdict on a kind of lock from the findings that it depends on.
func (p *patient) judge(k kind, well string) Finding {
	w := worst(p.depends[k])
	if w.Level == OK {
		return fine("%s", well)
	}
	var about []string
	for _, f := range p.depends[k] {
		if f.Level == w.Level {
			about = append(about, f.ID)
		}
	}
	what := "what is said above of " + strings.Join(about, ", ")
	if w.Level == Warn {
		return beware("mind "+what, "%s", well)
	}
	return bad("mend "+what, "it does not work here")
}

// trySession acquires a session lock and releases it.
func (p *patient) trySession(ctx context.Context, opts ...pg.Option) error {
	type locker interface {
		sqllock.Locker
		Close() error
	}
	var l locker
	var err error
	if p.Dialect == schema.Postgres {
		l, err = pg.FromDB(p.DB.DB, append(opts, pg.WithLogger(nil))...)
	} else {
		l, err = mysql.FromDB(p.DB.DB, mysql.WithLogger(nil))
	}
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // it holds nothing
	lock, err := l.TryAcquire(ctx, unusedName())
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

// unusedName returns a name that nobody else uses.
func unusedName() string { return "sqllock doctor " + rand.Text() }
