package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// sequencesEnv says how many sequences to compare on each database.
const sequencesEnv = "SQLLOCK_TEST_SEQUENCES"

const (
	sequences     = 3000
	comparingTime = 5 * time.Second // with fewer sequences on a slow machine
	workers       = 4
	stepsEach     = 14
)

// A simulation is worth as much as its database. This test runs random sequences of steps, with a transaction that keeps
// a row locked, on a real database and on package memory.
func TestTheDatabaseInMemoryIsLikeTheRealOnes(t *testing.T) {
	t.Parallel()
	onEvery(t, compare)
}

// onEvery runs a test on a database of each kind, with the tables.
func onEvery(t *testing.T, test func(t *testing.T, kind memory.Kind, db *sqltest.Database)) {
	t.Helper()
	for kind, open := range map[*memory.Kind]func(sqltest.TB, ...sqltest.Option) *sqltest.Database{
		&memory.Postgres: sqltest.Postgres, &memory.MySQL: sqltest.MySQL, &memory.MariaDB: sqltest.MariaDB, &memory.SQLite: sqltest.SQLite,
	} {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			if err := schema.Apply(t.Context(), db.DB.DB, dialect(t, db), schema.Tables{}); err != nil {
				t.Fatal(err)
			}
			test(t, *kind, db)
		})
	}
}

func dialect(t *testing.T, db *sqltest.Database) schema.Dialect {
	t.Helper()
	d, err := schema.DialectOf(db.DriverName())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// openStore opens a store on a database.
func openStore(db *sqltest.Database, d schema.Dialect) (*store.Database, error) {
	c, err := connector.Of(db.DB.DB)
	if err != nil {
		return nil, err
	}
	return store.New(c, d, schema.Tables{}, store.Options{Durable: true, Most: conn.DefaultLimit})
}

func compare(t *testing.T, kind memory.Kind, db *sqltest.Database) {
	t.Helper()
	d := dialect(t, db)
	most, until := int64(sequences), time.Now().Add(comparingTime)
	if n, err := strconv.ParseInt(os.Getenv(sequencesEnv), 10, 64); err == nil {
		most, until = n, time.Now().Add(365*24*time.Hour)
	}
	began := time.Now()
	var count, waited, repeated atomic.Int64
	var all sync.WaitGroup
	at := workers
	if kind.OneWriter {
		at = 1
	}
	for range at {
		all.Go(func() {
			server, err := openStore(db, d)
			if err != nil {
				t.Error(err)
				return
			}
			defer server.Close()
			for !t.Failed() && time.Now().Before(until) {
				seed := count.Add(1)
				if seed > most {
					return
				}
				p := pair{kind: kind, server: memory.NewServer(kind), real: server, db: db.DB.DB, waited: &waited, repeated: &repeated}
				p.memory = p.server.Store()
				if err := p.run(t.Context(), uint64(seed)); err != nil && !errors.Is(err, errGivenUp) {
					t.Errorf("seed %d: %v\n%s", seed, err, strings.Join(p.history, "\n"))
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d sequences in %v; %d steps waited for a row, %d were repeated",
		min(count.Load(), most), time.Since(began).Round(time.Millisecond), waited.Load(), repeated.Load())
}

// pair is a database in memory, and a real one.
type pair struct {
	kind   memory.Kind
	server *memory.Server
	memory *memory.Store
	real   *store.Database
	db     *sql.DB
	waited *atomic.Int64
	// repeated counts the steps that the server undid.
	repeated *atomic.Int64
	history  []string
}

// run runs a sequence on both. It returns an error if their outcomes differ.
func (p *pair) run(ctx context.Context, seed uint64) error {
	w := newWorld(seed, fmt.Sprintf("s%d", seed))
	w.leavesOut = p.kind.Refuses
	for _, st := range w.opening() {
		if _, err := p.both(ctx, st, nil); err != nil {
			return err
		}
	}
	var open *both
	for range stepsEach {
		switch {
		case open == nil && !p.kind.OneWriter && w.draw.IntN(6) == 0:
			var err error
			if open, err = p.begin(ctx, w); err != nil {
				return err
			}
		case open != nil && w.draw.IntN(4) == 0:
			if err := p.end(open); err != nil {
				return err
			}
			open = nil
		}
		used, err := p.both(ctx, w.next(), open)
		if used {
			open = nil
		}
		if err != nil {
			return err
		}
	}
	if open != nil {
		return p.end(open)
	}
	return nil
}

// errGivenUp ends a sequence that says nothing, because a wait for a row has taken too long.
var errGivenUp = errors.New("the machine is slow")

// result is the outcome of a step.
type result struct {
	text string
	err  error
}

func start(ctx context.Context, st step, s store.Store) <-chan result {
	done := make(chan result, 1)
	go func() {
		text, err := st.run(ctx, s)
		done <- result{text, err}
	}()
	return done
}

// both runs a step on both, while a transaction is open. If the step waits for a row in memory, the transaction ends,
// which both reports.
func (p *pair) both(ctx context.Context, st step, open *both) (ended bool, err error) {
	p.history = append(p.history, st.text)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	inMemory := start(ctx, st, p.memory)
	var want result
	for waits := false; !waits; {
		select {
		case want = <-inMemory:
			got := <-start(ctx, st, p.real)
			// On PostgreSQL an insertion waits for 5 ms, also for the one that makes the table longer: nothing was done.
			for try := 0; try < 10 && p.kind.Async && outcome(got.err) == "conflict" && want.err == nil; try++ {
				p.history = append(p.history, "  repeated")
				p.repeated.Add(1)
				got = <-start(ctx, st, p.real)
			}
			return false, p.same(want, got)
		case <-time.After(time.Millisecond):
			waits = p.server.Waiting() > 0
		}
	}
	p.waited.Add(1)
	p.history = append(p.history, "  it waits; the transaction ends")
	inReal := start(ctx, st, p.real)
	if err := p.end(open); err != nil {
		return true, err
	}
	want, got := <-inMemory, <-inReal
	if outcome(want.err) == "conflict" || outcome(got.err) == "conflict" { // it has waited for too long: the machine is slow
		return true, errGivenUp
	}
	return true, p.same(want, got)
}

func (p *pair) same(want, got result) error {
	a, b := want.text+outcome(want.err), got.text+outcome(got.err)
	p.history = append(p.history, "  "+b)
	if a != b {
		return fmt.Errorf("in memory:\n  %s\non the server:\n  %s", a, b)
	}
	return nil
}

// both is a transaction on both databases.
type both struct {
	memory *memory.Tx
	real   *sql.Tx
}

// begin begins a transaction that pins a name, or a permit, or locks the row of a name.
func (p *pair) begin(ctx context.Context, w *world) (*both, error) {
	server, err := p.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, err
	}
	b := &both{p.server.Begin(), server}
	h := w.held()
	h.Permit = w.draw.IntN(3) == 0
	if w.draw.IntN(2) == 0 {
		p.history = append(p.history, "a transaction locks "+h.Name)
		if err := b.memory.Lock(ctx, h.Name); err != nil {
			return nil, err
		}
		query, arg := "SELECT 1 FROM sqllock_lock WHERE name = ? FOR UPDATE", any([]byte(h.Name))
		if p.kind.Async {
			query = strings.Replace(query, "?", "$1", 1)
		}
		rows, err := server.QueryContext(ctx, query, arg)
		if err != nil {
			return nil, err
		}
		return b, errors.Join(rows.Close(), rows.Err())
	}
	p.history = append(p.history, fmt.Sprintf("a transaction is guarded by %+v", h))
	want, wantErr := p.memory.Pin(ctx, store.Transaction{Scan: func(ctx context.Context, query string, args []any, to any) error {
		return b.memory.QueryRow(ctx, query, args...).Scan(to)
	}}, h)
	got, gotErr := p.real.Pin(ctx, store.Transaction{Scan: func(ctx context.Context, query string, args []any, to any) error {
		return server.QueryRowContext(ctx, query, args...).Scan(to)
	}}, h)
	return b, p.same(result{fmt.Sprint(want), wantErr}, result{fmt.Sprint(got), gotErr})
}

// end commits the transaction on both.
func (p *pair) end(b *both) error {
	p.history = append(p.history, "the transaction ends")
	if err := b.memory.Commit(); err != nil {
		return err
	}
	return b.real.Commit()
}
