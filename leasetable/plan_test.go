package leasetable_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// Only these statements may read rows that they do not ask for, whatever statistics the server has.
var readAll = map[string]bool{
	"list": true, "list_permits": true, // a range of names, and their holders
	"names_of": true, "expired": true, // no index for the condition
	"open_lease": true, "accepts": true, // the versions, which are one for each release
}

// contents describes how many rows the tables have, and the server's statistics about them.
type contents struct {
	name   string
	filled bool // the tables have many rows, or had them when they were last analyzed
	make   func(t *testing.T, db *sqltest.Database)
}

var allContents = []contents{
	{"never analyzed, empty", false, func(*testing.T, *sqltest.Database) {}},
	{"never analyzed, many rows", true, manyRows},
	{"empty", false, analyze},
	{"three rows", false, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		rows(t, db, 3)
		analyze(t, db)
	}},
	{"empty when analyzed, many rows", true, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		analyze(t, db)
		manyRows(t, db)
	}},
	{"many rows", true, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		manyRows(t, db)
		analyze(t, db)
	}},
	{"many rows when analyzed, three rows", true, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		manyRows(t, db)
		analyze(t, db)
		for _, table := range leaseTables {
			key := "name"
			if table == "sqllock_lease" {
				key = "id"
			}
			run(t, db, "DELETE FROM "+table+" WHERE "+key+" > ?", rowID(3))
		}
	}},
}

var leaseTables = []string{"sqllock_lock", "sqllock_lease", "sqllock_permit"}

// rowID returns the name, and the id of the lease, of the n-th row.
func rowID(n int) []byte { return fmt.Appendf(nil, "%016d", n) }

func manyRows(t *testing.T, db *sqltest.Database) {
	t.Helper()
	rows(t, db, 5_000)
}

// rows creates this many names, each with its own lease and permit.
func rows(t *testing.T, db *sqltest.Database, n int) {
	t.Helper()
	const most = 5000
	now := "UTC_TIMESTAMP(6)"
	if db.Engine == sqltest.EnginePostgres {
		now = "clock_timestamp()"
	}
	for at := 1; at <= n; at += most {
		var locks, leases, permits []string
		for i := at; i < min(at+most, n+1); i++ {
			id := fmt.Sprintf("'%s'", rowID(i))
			locks = append(locks, fmt.Sprintf("(%s, 1, %s, %s)", id, id, now))
			leases = append(leases, fmt.Sprintf("(%s, '', '', 1, 1, %s, %s)", id, now, now))
			permits = append(permits, fmt.Sprintf("(%s, 1, %s, 0, %s)", id, id, now))
		}
		run(t, db, "INSERT INTO sqllock_lock (name, token, lease_id, acquired_at) VALUES "+strings.Join(locks, ","))
		run(t, db, "INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at) VALUES "+strings.Join(leases, ","))
		run(t, db, "INSERT INTO sqllock_permit (name, token, lease_id, permits, acquired_at) VALUES "+strings.Join(permits, ","))
	}
}

// analyze updates the server's statistics.
func analyze(t *testing.T, db *sqltest.Database) {
	t.Helper()
	for _, table := range leaseTables {
		if db.Engine == sqltest.EnginePostgres {
			run(t, db, "VACUUM ANALYZE "+table)
		} else {
			run(t, db, "ANALYZE TABLE "+table)
		}
	}
}

// analyzeNoMore prevents the server from updating its statistics by itself.
func analyzeNoMore(t *testing.T, db *sqltest.Database) {
	t.Helper()
	for _, table := range leaseTables {
		if db.Engine == sqltest.EnginePostgres {
			run(t, db, "ALTER TABLE "+table+" SET (autovacuum_enabled = false)")
		} else {
			run(t, db, "ALTER TABLE "+table+" STATS_AUTO_RECALC = 0")
		}
	}
}

// An acquisition reads no other rows, however old the plan is: on a session of the Locker, and unless the tables seem
// to be small also on a session that may belong to a pooler.
func TestNoPlanDependsOnStatistics(t *testing.T) {
	t.Parallel()
	for _, has := range allContents {
		t.Run(has.name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, db *sqltest.Database) {
				analyzeNoMore(t, db)
				has.make(t, db)
				l := newLocker(t, db.DB)
				own, err := leasetable.Work(l).Connx(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer own.Close()
				plain, err := db.Connx(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer plain.Close()
				for st, text := range leasetable.Statements(l) {
					switch {
					case readAll[st] || strings.Contains(text, "{"): // see TestAStatementForManyReadsNoOtherRows
					case db.Engine == sqltest.EnginePostgres:
						for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
							mustLookUp(t, own, mode, "the Locker's session", st, text)
							if has.filled || strings.HasPrefix(has.name, "never") {
								mustLookUp(t, plain, mode, "any session", st, text)
							}
						}
					default:
						mustLookUpOnMySQL(t, own, st, text)
					}
				}
			})
		})
	}
}

// mustLookUp makes PostgreSQL plan a statement, and checks that it reads no other rows.
func mustLookUp(t *testing.T, conn *sqlx.Conn, mode, whose, st, text string) {
	t.Helper()
	ctx := t.Context()
	must := func(statement string) {
		t.Helper()
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			t.Fatalf("%s: %v", st, err)
		}
	}
	must("SET plan_cache_mode = " + mode)
	must("PREPARE p AS " + text)
	defer must("DEALLOCATE p")
	var types []string
	if err := conn.SelectContext(ctx, &types, "SELECT unnest(parameter_types)::text FROM pg_prepared_statements WHERE name = 'p'"); err != nil {
		t.Fatal(err)
	}
	args := make([]string, len(types))
	for i, kind := range types {
		switch {
		case kind == "bytea":
			args[i] = fmt.Sprintf(`'\x%x'`, rowID(2))
		case kind == "text" && i == 0:
			args[i] = fmt.Sprintf(`'{"\\x%x","\\x%x"}'`, rowID(2), rowID(1))
		case kind == "text" && i == 2:
			args[i] = "'{1,1}'"
		case kind == "text":
			args[i] = "NULL"
		default:
			args[i] = "1"
		}
	}
	execute := "EXECUTE p"
	if len(args) > 0 {
		execute += "(" + strings.Join(args, ", ") + ")"
	}
	var answer string
	if err := conn.GetContext(ctx, &answer, "EXPLAIN (FORMAT JSON, COSTS OFF) "+execute); err != nil {
		t.Fatalf("%s: %v", st, err)
	}
	var plans []struct{ Plan plan }
	if err := json.Unmarshal([]byte(answer), &plans); err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		if how := p.Plan.readsMore(); how != "" {
			t.Errorf("%s, %s, %s: %s", st, whose, mode, how)
		}
	}
}

type plan struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Index    string `json:"Index Name"`
	Cond     string `json:"Index Cond"`
	Plans    []plan
}

// equal matches a condition for one row, or a few.
var equal = regexp.MustCompile(`\b(name|id) = `)

// readsMore describes how a plan reads rows that it does not ask for, or returns "".
func (p plan) readsMore() string {
	switch {
	case p.Type == "Seq Scan":
		return "it reads all of " + p.Relation
	case p.Index != "" && !equal.MatchString(p.Cond):
		return fmt.Sprintf("it reads %s by %q", p.Index, p.Cond)
	}
	for _, child := range p.Plans {
		if how := child.readsMore(); how != "" {
			return how
		}
	}
	return ""
}

var (
	preface     = regexp.MustCompile(`(?m)^(--|SET STATEMENT|/\*M! SET STATEMENT).*\n`)
	placeholder = regexp.MustCompile(`(UNHEX\(|CONCAT\()?\?`)
)

// mustLookUpOnMySQL makes MySQL or MariaDB plan a statement, which they do at each execution, and checks the plan.
func mustLookUpOnMySQL(t *testing.T, conn *sqlx.Conn, st, text string) {
	t.Helper()
	text = preface.ReplaceAllString(text, "")
	var args []any
	for _, mark := range placeholder.FindAllString(text, -1) {
		if mark == "?" {
			args = append(args, 1)
		} else {
			args = append(args, fmt.Sprintf("%x", rowID(2)))
		}
	}
	found, err := conn.QueryxContext(t.Context(), "EXPLAIN FORMAT=TRADITIONAL "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", st, err)
	}
	defer found.Close()
	for found.Next() {
		step := make(map[string]any)
		if err := found.MapScan(step); err != nil {
			t.Fatal(err)
		}
		said := func(what string) string { return fmt.Sprintf("%s", step[what]) }
		if _, ok := step["type"]; !ok {
			t.Fatalf("%s is not explained: %v", st, step)
		}
		inserts, derived := said("select_type") == "INSERT", strings.HasPrefix(said("table"), "<")
		if how := said("type"); (how == "ALL" || how == "index") && !inserts && !derived {
			t.Errorf("%s finds the rows of %s by %q", st, said("table"), how)
		}
	}
	if err := found.Err(); err != nil {
		t.Fatalf("%s: %v", st, err)
	}
}

// Cached plans were made while the table was empty, and expected to stay empty.
func TestWhoTakesNewNamesReadsNoOthers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		make func(t *testing.T, db *sqltest.Database) *leasetable.Locker
	}{
		{"on a session of the Locker's, after the empty table was analyzed", func(t *testing.T, db *sqltest.Database) *leasetable.Locker {
			t.Helper()
			analyze(t, db)
			return newLocker(t, db.DB)
		}},
		// Each statement is planned anew there, according to the size of the table. While the table is small, the plan
		// may read all of it.
		{"on a session that may be a pooler's, of a large table", func(t *testing.T, db *sqltest.Database) *leasetable.Locker {
			t.Helper()
			run(t, db, "INSERT INTO sqllock_lock (name, token, acquired_at) SELECT ('filling ' || n)::bytea, 1, now() FROM generate_series(1, 50000) n")
			counted, _ := counting(t, db) // hides the driver's connection
			return newLocker(t, counted)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			db := withTables(t, sqltest.Postgres(t))
			analyzeNoMore(t, db)
			l := test.make(t, db)
			const names, together = 1600, 16
			var all sync.WaitGroup
			for g := range together {
				all.Go(func() {
					for i := g; i < names; i += together {
						lock, err := locktest.TryFree(t.Context(), l, fmt.Sprint("name ", i))
						if err == nil {
							err = lock.Release(t.Context())
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if err := l.Close(); err != nil { // so that the server adds up the statistics of its sessions
				t.Error(err)
			}
			var read struct {
				Inserted int
				Scanned  int
				Indexed  int
			}
			eventually(t, func() bool {
				err := db.GetContext(t.Context(), &read, `SELECT n_tup_ins AS inserted, seq_tup_read AS scanned,
						(SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid) AS indexed
					FROM pg_stat_user_tables t WHERE relname = 'sqllock_lock'`)
				return err == nil && read.Inserted%50000 >= names
			})
			if read.Scanned > 0 || read.Indexed > 100*names {
				t.Errorf("to take and free %d names, %d rows were read one after the other, and %d by the index", names, read.Scanned, read.Indexed)
			}
		})
	}
}
