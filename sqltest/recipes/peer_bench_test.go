package recipes_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/peterldowns/pgtestdb"

	"github.com/sqllock/sqllock/sqltest"
)

// fiftyMigrations are fifty files that make twenty tables.
func fiftyMigrations() fstest.MapFS {
	files := fstest.MapFS{}
	add := func(format string, args ...any) {
		files[fmt.Sprintf("%03d.sql", len(files))] = &fstest.MapFile{Data: fmt.Appendf(nil, format, args...)}
	}
	for i := range 20 {
		add("CREATE TABLE t%d (id int PRIMARY KEY, parent int REFERENCES t%d (id), name varchar(100) NOT NULL, made timestamp)", i, max(0, i-1))
		add("CREATE INDEX i%d ON t%d (name, made)", i, i)
	}
	for i := range 10 {
		add("INSERT INTO t%d VALUES (1, NULL, 'one', NULL), (2, NULL, 'two', NULL)", i)
	}
	return files
}

// migrator runs the same files for pgtestdb.
type migrator struct{ files fstest.MapFS }

func (migrator) Hash() (string, error) { return "fifty", nil }

func (m migrator) Migrate(ctx context.Context, db *sql.DB, _ pgtestdb.Config) error {
	for i := range len(m.files) {
		if _, err := db.ExecContext(ctx, string(m.files[fmt.Sprintf("%03d.sql", i)].Data)); err != nil {
			return err
		}
	}
	return nil
}

// waiter is a test of the benchmark.
type waiter struct {
	*testing.B
	cleanups []func()
}

func (w *waiter) Cleanup(f func())    { w.cleanups = append(w.cleanups, f) }
func (w *waiter) Logf(string, ...any) {}

func (w *waiter) end() {
	for _, cleanup := range slices.Backward(w.cleanups) {
		cleanup()
	}
}

// BenchmarkPeer measures how long a test waits for its database, at its beginning and at its end, while it runs twenty
// statements in between. The metrics are the median and the ninth decile, in milliseconds.
func BenchmarkPeer(b *testing.B) {
	files := fiftyMigrations()
	template := sqltest.SQLFiles(files)
	held := template.Postgres(b)
	config, err := pgx.ParseConfig(held.DSN)
	if err != nil {
		b.Fatal(err)
	}
	conf := pgtestdb.Config{
		DriverName: "pgx", User: config.User, Password: config.Password, Host: config.Host, Port: strconv.Itoa(int(config.Port)),
		Database: "postgres", Options: "sslmode=disable", ForceTerminateConnections: true,
	}
	b.Run("bare", func(b *testing.B) {
		source := template.Postgres(b)
		var name string
		if err := source.Get(&name, "SELECT current_database()"); err != nil {
			b.Fatal(err)
		}
		_ = source.Close()
		var waits []time.Duration
		for b.Loop() {
			begin := time.Now()
			for _, statement := range []string{"CREATE DATABASE bare TEMPLATE " + name, "DROP DATABASE bare"} {
				if _, err := held.Exec(statement); err != nil {
					b.Fatal(err)
				}
			}
			waits = append(waits, time.Since(begin))
		}
		report(b, waits)
	})
	b.Run("sqltest", func(b *testing.B) {
		measure(b, func(w *waiter) *sql.DB { return template.Postgres(w).DB.DB })
	})
	b.Run("pgtestdb", func(b *testing.B) {
		measure(b, func(w *waiter) *sql.DB { return pgtestdb.New(w, conf, migrator{files}) })
	})
}

func measure(b *testing.B, open func(*waiter) *sql.DB) {
	b.Helper()
	first := &waiter{B: b} // makes the template
	open(first)
	first.end()
	var waits []time.Duration
	for b.Loop() {
		w := &waiter{B: b}
		begin := time.Now()
		db := open(w)
		wait := time.Since(begin)
		for i := range 20 {
			if _, err := db.Exec("INSERT INTO t3 VALUES ($1, 1, 'more', NULL)", i+3); err != nil {
				b.Fatal(err)
			}
		}
		begin = time.Now()
		w.end()
		waits = append(waits, wait+time.Since(begin))
	}
	report(b, waits)
}

func report(b *testing.B, waits []time.Duration) {
	b.Helper()
	slices.Sort(waits)
	b.ReportMetric(waits[len(waits)/2].Seconds()*1000, "median-ms")
	b.ReportMetric(waits[len(waits)*9/10].Seconds()*1000, "p90-ms")
}
