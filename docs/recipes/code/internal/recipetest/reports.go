// Package recipetest shows that the program of a recipe keeps its promises.
package recipetest

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// Render makes the text of a report.
type Render = func(context.Context) (string, error)

// Program is a process that makes reports.
type Program struct {
	Run     func(ctx context.Context) error
	Publish func(ctx context.Context, leases *leasetable.Locker, render Render) error
}

// Everywhere runs On for each engine.
func Everywhere(t *testing.T, start func(t *testing.T, p adaptertest.Place) Program) {
	t.Helper()
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			On(t, engine, start)
		})
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		On(t, sqltest.EngineSQLite, start, sqltest.Setting("foreign_keys", "1")) // which ent requires
	})
}

// On runs the program on machines that share a database, that is, with several Lockers.
func On(t *testing.T, engine sqltest.Engine, start func(t *testing.T, p adaptertest.Place) Program, opts ...sqltest.Option) {
	t.Helper()
	p := adaptertest.At(t, engine, true, opts...)
	atOnce(t, p, start)
	oneAtATime(t, p, start(t, p))
	staleHolder(t, p, start(t, p))
}

// Pool opens the database as the pages tell. On SQLite a transaction that reads before it writes would fail if somebody
// else has written in between.
func Pool(t *testing.T, p adaptertest.Place) *sql.DB {
	t.Helper()
	if p.Engine != sqltest.EngineSQLite {
		return p.DB.DB
	}
	pool, err := sql.Open(p.DriverName(), p.DSN+"&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// Three machines that start at the same time all succeed, and leave one report.
func atOnce(t *testing.T, p adaptertest.Place, start func(t *testing.T, p adaptertest.Place) Program) {
	t.Helper()
	var all sync.WaitGroup
	for range 3 {
		program := start(t, p)
		all.Go(func() {
			if err := program.Run(t.Context()); err != nil {
				t.Errorf("one of three at once: %v", err)
			}
		})
	}
	all.Wait()
	want(t, p, "all is well")
}

// While one machine makes the report, the lock is held, so another one waits. It follows.
func oneAtATime(t *testing.T, p adaptertest.Place, program Program) {
	t.Helper()
	first, second := p.Leases(t), p.Leases(t)
	var inside, next sync.WaitGroup
	inside.Add(1)
	var running atomic.Int32
	publish := func(leases *leasetable.Locker, text string, during func(context.Context)) {
		err := program.Publish(t.Context(), leases, func(ctx context.Context) (string, error) {
			if n := running.Add(1); n != 1 {
				t.Errorf("%d machines make the report", n)
			}
			during(ctx)
			running.Add(-1)
			return text, ctx.Err()
		})
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	next.Go(func() {
		inside.Wait()
		publish(second, "second", func(context.Context) {})
	})
	publish(first, "first", func(ctx context.Context) {
		if _, err := second.TryAcquire(ctx, "report"); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("while a report is made: %v", err)
		}
		inside.Done()
	})
	next.Wait()
	want(t, p, "second")
}

// A machine that has lost the lock without noticing it writes nothing over the report of the next holder.
func staleHolder(t *testing.T, p adaptertest.Place, program Program) {
	t.Helper()
	stale, other := p.Leases(t), p.Leases(t)
	err := program.Publish(t.Context(), stale, func(ctx context.Context) (string, error) {
		if _, err := other.ForceRelease(ctx, "report"); err != nil {
			return "", err
		}
		return "old", program.Publish(ctx, other, func(context.Context) (string, error) { return "new", nil })
	})
	if !errors.Is(err, sqllock.ErrLost) {
		t.Errorf("a machine that has lost the lock: %v", err)
	}
	want(t, p, "new")
}

func want(t *testing.T, p adaptertest.Place, text string) {
	t.Helper()
	var is []string
	if err := p.SelectContext(t.Context(), &is, "SELECT text FROM reports"); err != nil || len(is) != 1 || is[0] != text {
		t.Errorf("the reports are %q, %v; want %q", is, err, text)
	}
}
