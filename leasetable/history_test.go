package leasetable_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// contenderEnv makes this test binary a child of a history: a process that acquires locks, and writes while it holds
// them, on the database that the variable names ("driver ttl dsn").
const contenderEnv = "SQLLOCK_TEST_CONTENDER"

const historyTTL = 1500 * time.Millisecond

func contend() int {
	_ = mysql.SetLogger(&mysql.NopLogger{}) // otherwise it logs every ended connection
	driverName, rest, _ := strings.Cut(os.Getenv(contenderEnv), " ")
	ttl, dsn, _ := strings.Cut(rest, " ")
	if err := contendOn(driverName, ttl, dsn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func contendOn(driverName, ttlText, dsn string) error {
	ttl, err := time.ParseDuration(ttlText)
	if err != nil {
		return err
	}
	db, err := sqlx.Open(driverName, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	l, err := fromDB(db, leasetable.WithTTL(ttl))
	if err != nil {
		return err
	}
	defer l.Close()
	return history.ServeWriters(context.Background(), newMover(l), &register{db: db}, os.Stdin, os.Stdout)
}

// mover is a Locker for a history.
type mover struct {
	sqllock.Locker
	leases *leasetable.Locker
}

func newMover(l *leasetable.Locker) mover { return mover{sqllock.AnyKind(l), l} }

var _ history.Mover = mover{}

func (m mover) Adopt(ctx context.Context, ticket string) (sqllock.Lock, error) {
	lease, err := m.leases.Adopt(ctx, ticket)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

func (m mover) Highest(ctx context.Context, name string) (int64, error) {
	info, err := m.leases.Inspect(ctx, name)
	return info.Token, err
}

func TestNoLeaseIsHeldTwiceAndNoStaleHolderWrites(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	// One history after the other, because each keeps several processes busy.
	t.Run("SQLite", func(t *testing.T) {
		c := newContest(t, withTables(t, sqltest.SQLite(t)))
		c.opts.Server = ""
		c.opts.Kills, c.opts.Stops = 3, 3
		c.run(t)
	})
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB} { //nolint:paralleltest // see above
		t.Run(string(engine), func(t *testing.T) {
			server := sqltest.Start(t, engine)
			c := newContest(t, withTables(t, server.Database(t)))
			c.opts.Kills, c.opts.Stops, c.opts.Cuts = 2, 3, 1
			c.add("ends of connections", 2, c.endConnections)
			end, other := server.Kill, server.Stop // alternating
			c.add("restarts", 1, func(context.Context, string) error {
				end()
				server.Start()
				end, other = other, end
				return nil
			})
			c.run(t)
		})
	}
}

// contest is a history on one database, with a register.
type contest struct {
	db     *sqltest.Database
	locker *leasetable.Locker
	opts   history.Options
}

// newContest creates a contest whose nemesis also checks the tables and forces releases.
func newContest(t *testing.T, db *sqltest.Database) *contest {
	t.Helper()
	names := []string{"a", "b", "c", "d"}
	newRegister(t, db, names...)
	c := &contest{db: db, locker: newLocker(t, db.DB, leasetable.WithTTL(historyTTL))}
	c.opts = history.Options{
		TTL: historyTTL, Processes: 4, Workers: 1, Names: names, Writes: true, Moves: true,
		Child: func(address string) []string {
			dsn := db.DSN
			if address != "" {
				dsn = strings.Replace(dsn, addressOf(db), address, 1)
			}
			return c.contender(dsn)
		},
	}
	if db.Engine != sqltest.EngineSQLite {
		c.opts.Server = addressOf(db)
	}
	c.add("purges", 2, func(ctx context.Context, _ string) error {
		return insist(ctx, func() error { _, err := c.locker.Purge(ctx, 0); return err })
	})
	c.opts.Others = append(c.opts.Others, history.Harm{
		What: "forced releases", Times: 2, Forgive: true,
		Do: func(ctx context.Context, name string) error {
			return insist(ctx, func() error { _, err := c.locker.ForceRelease(ctx, name); return err })
		},
	})
	return c
}

// contender returns the environment of a child.
func (c *contest) contender(dsn string) []string {
	return []string{fmt.Sprintf("%s=%s %v %s", contenderEnv, c.db.DriverName(), c.opts.TTL, dsn)}
}

func (c *contest) add(what string, times int, do func(ctx context.Context, name string) error) {
	c.opts.Others = append(c.opts.Others, history.Harm{What: what, Times: times, Do: do})
}

// run runs the history, and checks the journal.
func (c *contest) run(t *testing.T) {
	t.Helper()
	h := history.Run(t, sqllock.AnyKind(c.locker), c.opts, porcupine.Ok)
	journal := (&register{db: open(t, c.db.DriverName(), c.db.DSN)}).journal(t) // a new pool, without ended connections
	for i, line := range journal {
		if name, guarded := strings.CutPrefix(line.Name, guardedKey); guarded {
			journal[i].Limit = h.Limit(name, line.Token)
		}
	}
	if err := history.CheckJournal(journal); err != nil {
		t.Error(err)
	}
	lines := make(map[string]int)
	for _, line := range journal {
		kind, _, _ := strings.Cut(line.Name, " ")
		lines[kind]++
	}
	t.Logf("%s: lines of the journal: %v", c.db.Server, lines)
	if c.opts.Limits == nil && (lines["guarded"] == 0 || lines["fenced"] == 0) { // with limits, too few hold a name alone for long enough
		t.Error("nobody wrote: nothing was shown")
	}
}

// insist repeats an operation that fails because its connection was ended, or because the machine is busy.
func insist(ctx context.Context, do func() error) error {
	for {
		if err := do(); !sqllock.IsRetryable(err) || ctx.Err() != nil {
			return err
		}
	}
}

// mustVerify verifies a lock that is held.
func mustVerify(t *testing.T, lease *leasetable.Lease) {
	t.Helper()
	if err := insist(bounded(t), func() error { return lease.Verify(t.Context()) }); err != nil {
		t.Fatal(err)
	}
}

// mustRenew renews a lock that is held.
func mustRenew(t *testing.T, lease *leasetable.Lease) {
	t.Helper()
	if err := insist(bounded(t), func() error { return lease.Renew(t.Context()) }); err != nil {
		t.Fatal(err)
	}
}

// endConnections makes the server end about half of all connections to the database.
func (c *contest) endConnections(ctx context.Context, _ string) error {
	db, err := sqlx.Open(c.db.DriverName(), c.db.DSN)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // so that this connection is not one of them
	list, end := "SELECT id FROM "+processes+" WHERE db = DATABASE() AND id <> CONNECTION_ID()", "KILL %d"
	if c.db.Engine == sqltest.EnginePostgres {
		list, end = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()", "SELECT pg_terminate_backend(%d)"
	}
	var ids []int64
	if err := db.SelectContext(ctx, &ids, list); err != nil {
		return err
	}
	for _, id := range ids {
		if rand.IntN(2) == 0 {
			_, _ = db.ExecContext(ctx, fmt.Sprintf(end, id)) // it may be gone
		}
	}
	return nil
}
