package sqltest_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sqllock/sqllock/sqltest"
)

// fiftyMigrations are fifty files that make twenty tables, with indexes, foreign keys and some rows.
func fiftyMigrations(engine sqltest.Engine) fstest.MapFS {
	key := "int PRIMARY KEY"
	files := fstest.MapFS{}
	add := func(format string, args ...any) {
		files[fmt.Sprintf("%03d.sql", len(files))] = &fstest.MapFile{Data: fmt.Appendf(nil, format, args...)}
	}
	for i := range 20 {
		reference := ""
		if i > 0 && engine != sqltest.EngineSQLite {
			reference = fmt.Sprintf(", FOREIGN KEY (parent) REFERENCES t%d (id)", i-1)
		}
		add("CREATE TABLE t%d (id %s, parent int, name varchar(100) NOT NULL, made timestamp NULL%s)", i, key, reference)
		add("CREATE INDEX i%d ON t%d (name, made)", i, i)
	}
	for i := range 10 {
		add("INSERT INTO t%d VALUES (1, NULL, 'one', NULL), (2, NULL, 'two', NULL)", i)
	}
	return files
}

// BenchmarkMigrated measures how long a test waits for its database, at its beginning and at its end, while it does
// something with it in between. The row "empty" is the same with an empty database. "bare" is what a database costs without
// this package: CREATE DATABASE and DROP DATABASE alone, on PostgreSQL with the same TEMPLATE. The metrics are the median
// wait in milliseconds, and the ninth decile.
func BenchmarkMigrated(b *testing.B) {
	for engine, copyOf := range copies {
		shop := sqltest.SQLFiles(fiftyMigrations(engine))
		if engine != sqltest.EngineSQLite {
			b.Run(string(engine)+"/bare", func(b *testing.B) { benchmarkBare(b, engine, shop) })
		}
		b.Run(string(engine)+"/empty", func(b *testing.B) {
			benchmarkTests(b, engines[engine], "SELECT 1")
		})
		b.Run(string(engine)+"/migrated", func(b *testing.B) {
			benchmarkTests(b, func(tb sqltest.TB, _ ...sqltest.Option) *sqltest.Database { return copyOf(shop, tb) }, "INSERT INTO t3 VALUES (7, 1, 'seven', NULL)")
		})
	}
}

func benchmarkTests(b *testing.B, open func(sqltest.TB, ...sqltest.Option) *sqltest.Database, statement string) {
	b.Helper()
	holder := newFakeTB("first") // makes the template
	holder.run(func() { open(holder) })
	if holder.skipped != "" {
		b.Skip(holder.skipped)
	}
	defer holder.end()
	var waits []time.Duration
	for b.Loop() {
		tb := newFakeTB("one of many")
		begin := time.Now()
		var db *sqltest.Database
		tb.run(func() { db = open(tb) })
		wait := time.Since(begin)
		if tb.fatal != "" {
			b.Fatal(tb.fatal)
		}
		for range 20 {
			if _, err := db.Exec(statement); err != nil && tb.failed {
				b.Fatal(err)
			}
		}
		begin = time.Now()
		tb.end()
		waits = append(waits, wait+time.Since(begin))
	}
	report(b, waits)
}

// benchmarkBare makes and drops a database by two statements on one connection: a copy on PostgreSQL, elsewhere an empty one.
func benchmarkBare(b *testing.B, engine sqltest.Engine, shop *sqltest.Template) {
	b.Helper()
	db := engines[engine](b)
	if _, err := db.Exec("DROP DATABASE IF EXISTS bare"); err != nil {
		b.Fatal(err)
	}
	create := "CREATE DATABASE bare"
	if engine == sqltest.EnginePostgres {
		source := shop.Postgres(b)
		var name string
		if err := source.Get(&name, "SELECT current_database()"); err != nil {
			b.Fatal(err)
		}
		_ = source.Close() // a database that has sessions cannot be copied
		create += " TEMPLATE " + name
	}
	var waits []time.Duration
	for b.Loop() {
		begin := time.Now()
		for _, statement := range []string{create, "DROP DATABASE bare"} {
			if _, err := db.Exec(statement); err != nil {
				b.Fatal(err)
			}
		}
		waits = append(waits, time.Since(begin))
	}
	report(b, waits)
}

func report(b *testing.B, waits []time.Duration) {
	b.Helper()
	slices.Sort(waits)
	b.ReportMetric(waits[len(waits)/2].Seconds()*1000, "median-ms")
	b.ReportMetric(waits[len(waits)*9/10].Seconds()*1000, "p90-ms")
}
