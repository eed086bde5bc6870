package examples_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

func TestTheREADMEsGoCodeIsTheCompiledCode(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../adapter/*/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range append(files, "examples_test.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(blocks) < 4 {
		t.Fatalf("the README has %d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(code.String(), string(block[1])) {
			t.Errorf("not in examples_test.go here, or in that of an adapter:\n%s", block[1])
		}
	}
}

func TestTheProgramsOfTheStartAreTheCompiledOnes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/start.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"start/main.go", "lease/main.go"} {
		program, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, code, _ := strings.Cut(string(program), "\n") // without the comment on the package
		if !strings.Contains(string(page), "```go\n"+code+"```") {
			t.Errorf("docs/start.md does not have the program %s", file)
		}
	}
}

func TestTheREADMEIsShort(t *testing.T) {
	t.Parallel()
	const limit = 300
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(readme), "\n"); lines > limit {
		t.Errorf("the README has %d lines; the limit is %d: what is for operators belongs in docs", lines, limit)
	}
}

// onEach runs a test on PostgreSQL and on MySQL, in an empty database that has the lease tables.
func onEach(t *testing.T, test func(t *testing.T, db *sqltest.Database)) {
	t.Helper()
	for name, open := range map[string]func(sqltest.TB, ...sqltest.Option) *sqltest.Database{"PostgreSQL": sqltest.Postgres, "MySQL": sqltest.MySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			d, err := schema.DialectOf(db.DriverName())
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Apply(t.Context(), db.DB.DB, d, schema.Tables{}); err != nil {
				t.Fatal(err)
			}
			test(t, db)
		})
	}
}

// leasesOf opens a Locker of leases, like another process.
func leasesOf(t *testing.T, db *sqltest.Database) *leasetable.Locker {
	t.Helper()
	locker, err := leasetable.FromDB(db.DB.DB)
	return closing(t, locker, err)
}

// sessionsOf opens a Locker of session locks, like another process.
func sessionsOf(t *testing.T, db *sqltest.Database) sqllock.Locker {
	t.Helper()
	if db.Engine == sqltest.EngineMySQL {
		locker, err := mysql.FromDB(db.DB.DB)
		return closing(t, locker, err)
	}
	locker, err := pg.FromDB(db.DB.DB)
	return closing(t, locker, err)
}

// closing closes a Locker, if it was opened, at the end of the test.
func closing[L io.Closer](t *testing.T, locker L, err error) L {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locker.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return locker
}

func exec(t *testing.T, db *sqltest.Database, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAServerMigratesBeforeItServes(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	var did []string
	err := start(t.Context(), db.DB.DB,
		func(context.Context) error { did = append(did, "migrate"); return nil },
		func(context.Context) error { did = append(did, "serve"); return nil })
	if err != nil || !slices.Equal(did, []string{"migrate", "serve"}) {
		t.Errorf("start did %v: %v", did, err)
	}
}

func TestOneServerMigratesAtATime(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		other := sessionsOf(t, db)
		err := migrateOnce(t.Context(), sessionsOf(t, db), func(ctx context.Context) error {
			_, err := other.TryAcquire(ctx, "migrations")
			return err
		})
		if !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("during a migration another one: %v", err)
		}
	})
}

func TestACronJobIsSkippedWhenItIsHeld(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		leases, other := leasesOf(t, db), leasesOf(t, db)
		runs := 0
		report := func(ctx context.Context) error { runs++; return ctx.Err() }
		err := nightly(t.Context(), leases, func(ctx context.Context) error {
			return errors.Join(report(ctx), nightly(ctx, other, report))
		})
		if err != nil || runs != 1 {
			t.Errorf("while one machine runs it, it ran %d times: %v", runs, err)
		}
		if err := nightly(t.Context(), other, report); err != nil || runs != 1 {
			t.Errorf("with a machine whose clock is late, it ran %d times: %v", runs, err)
		}
	})
}

func TestAJobHasATokenAndAGuardedTransaction(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		exec(t, db, "CREATE TABLE reports (published INT NOT NULL)", "INSERT INTO reports VALUES (0)")
		published := func() (n int) {
			if err := db.GetContext(t.Context(), &n, "SELECT published FROM reports"); err != nil {
				t.Fatal(err)
			}
			return n
		}
		leases, operator := leasesOf(t, db), leasesOf(t, db)

		err := publish(t.Context(), leases, db.DB.DB, func(ctx context.Context, _ int64) error {
			_, err := operator.ForceRelease(ctx, "the report")
			return err
		})
		if !errors.Is(err, sqllock.ErrLost) || published() != 0 {
			t.Errorf("a job that lost its lease: %v; it published %d", err, published())
		}

		var tokens []int64
		for range 2 {
			err := publish(t.Context(), leases, db.DB.DB, func(_ context.Context, token int64) error {
				tokens = append(tokens, token)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if tokens[1] <= tokens[0] || published() != 1 {
			t.Errorf("the tokens are %v; published is %d", tokens, published())
		}
	})
}

func TestAFunctionTakesAnyKindOfLock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		leases, sessions := leasesOf(t, db), sessionsOf(t, db)
		for kind, locks := range map[string]sqllock.Locker{"session": sessions, "lease": sqllock.AnyKind(leases)} {
			err := (&indexer{locks}).rebuild(t.Context(), "users", func(ctx context.Context) error {
				_, err := locks.TryAcquire(ctx, "index/users")
				return err
			})
			if !errors.Is(err, sqllock.ErrHeld) {
				t.Errorf("%s: while an index is rebuilt: %v", kind, err)
			}
		}
		err := rebuildWith(t.Context(), leases, "users", func(ctx context.Context, lease *leasetable.Lease) error {
			return lease.Verify(ctx)
		})
		if err != nil {
			t.Errorf("a generic function, with a lease: %v", err)
		}
		err = rebuildWith(t.Context(), sessions, "users", func(_ context.Context, lock sqllock.Lock) error {
			return lock.Context().Err()
		})
		if err != nil {
			t.Errorf("a generic function, with a session lock: %v", err)
		}
	})
}

func TestALockGoesFromOneProcessToAnother(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		leases, other := leasesOf(t, db), leasesOf(t, db)
		lease, err := leases.TryAcquire(t.Context(), "the move")
		if err != nil {
			t.Fatal(err)
		}
		if err := stall(t.Context(), lease, func() error { return nil }); err != nil {
			t.Error(err)
		}
		err = handOver(t.Context(), lease, func(ticket string) error {
			return goOn(t.Context(), other, ticket, func(ctx context.Context) error {
				info, err := leases.Inspect(ctx, "the move")
				if !info.Held || info.Holder.Metadata != "half done" {
					t.Errorf("the lock that was handed over: %+v", info)
				}
				return err
			})
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestOneProcessLeads(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		leases, other := leasesOf(t, db), leasesOf(t, db)
		err := elect(t.Context(), leases, func(ctx context.Context, lease *leasetable.Lease) error {
			watching, cancel := context.WithCancel(ctx)
			defer cancel()
			err := watch(watching, other, func(leader sqllock.Holder) {
				if leader.Token != lease.Token() {
					t.Errorf("the leader is told as %v; it has token %d", leader, lease.Token())
				}
				cancel()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("watch: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestAnOrderIsShippedOnceAtATime(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	exec(t, db, "CREATE TABLE orders (id text, shipped timestamptz)")
	other := sessionsOf(t, db)
	conn, err := pgx.Connect(t.Context(), db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		if err := ship(t.Context(), tx, "17"); err != nil {
			return err
		}
		if _, err := other.TryAcquire(t.Context(), "orders/17"); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("while an order is shipped: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
