package examples_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
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
	code, err := os.ReadFile("examples_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(blocks) < 4 {
		t.Fatalf("the README has %d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(string(code), string(block[1])) {
			t.Errorf("not in examples_test.go:\n%s", block[1])
		}
	}
}

func TestTheExamplesDoWhatTheySay(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	if err := schema.Apply(t.Context(), db.DB.DB, schema.Postgres, schema.Tables{}); err != nil {
		t.Fatal(err)
	}
	other, err := pg.New(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	err = migrateOnce(t.Context(), db.DB.DB, func(ctx context.Context, _ *sql.DB) error {
		_, err := other.TryAcquire(ctx, "migrations")
		return err
	})
	if !errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("during a migration another one: %v", err)
	}

	leases, err := leasetable.New(db.DB)
	if err != nil {
		t.Fatal(err)
	}
	defer leases.Close()
	for _, locker := range []sqllock.Locker{leases, other} {
		runs := 0
		job := func(ctx context.Context) error {
			runs++
			return nightly(ctx, locker, func(context.Context) error { runs++; return nil })
		}
		if err := nightly(t.Context(), locker, job); err != nil || runs != 1 {
			t.Errorf("the job ran %d times: %v", runs, err)
		}
	}

	var tokens []int64
	for range 2 {
		err := write(t.Context(), db.DB, func(token int64) error { tokens = append(tokens, token); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if tokens[1] <= tokens[0] {
		t.Errorf("the tokens are %v", tokens)
	}

	if _, err := db.ExecContext(t.Context(), "CREATE TABLE reports (done int); INSERT INTO reports VALUES (0)"); err != nil {
		t.Fatal(err)
	}
	lock, err := leases.TryAcquire(t.Context(), "the report")
	if err != nil {
		t.Fatal(err)
	}
	if err := guarded(t.Context(), db.DB, lock.(*leasetable.Lease)); err != nil {
		t.Error(err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := guarded(t.Context(), db.DB, lock.(*leasetable.Lease)); !errors.Is(err, sqllock.ErrReleased) {
		t.Errorf("after its release: %v", err)
	}

	lock, err = leases.TryAcquire(t.Context(), "the move")
	if err != nil {
		t.Fatal(err)
	}
	if err := stall(t.Context(), lock.(*leasetable.Lease), func() error { return nil }); err != nil {
		t.Error(err)
	}
	err = handOver(t.Context(), lock.(*leasetable.Lease), func(ticket string) error {
		return goOn(t.Context(), leases, ticket, func(ctx context.Context) error {
			who, held, err := leases.Inspect(ctx, "the move")
			if !held || who.Metadata != "half done" {
				t.Errorf("the lock that was handed over: %v, %t", who, held)
			}
			return err
		})
	})
	if err != nil {
		t.Error(err)
	}

	err = elect(t.Context(), leases, func(ctx context.Context, token int64) error {
		watching, cancel := context.WithCancel(ctx)
		err := watch(watching, leases, func(leader sqllock.Holder) {
			if leader.Token != token {
				t.Errorf("the leader is told as %v; it has token %d", leader, token)
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

	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id text, shipped timestamptz)"); err != nil {
		t.Fatal(err)
	}
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
