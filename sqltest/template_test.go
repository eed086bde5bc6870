package sqltest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/sqllock/sqllock/sqltest"
)

// copies gives a copy of a template on each engine.
var copies = map[sqltest.Engine]func(*sqltest.Template, sqltest.TB, ...sqltest.Option) *sqltest.Database{
	sqltest.EnginePostgres: (*sqltest.Template).Postgres,
	sqltest.EngineMySQL:    (*sqltest.Template).MySQL,
	sqltest.EngineMariaDB:  (*sqltest.Template).MariaDB,
	sqltest.EngineSQLite:   (*sqltest.Template).SQLite,
}

// newKey returns a key that no other run uses: on a server named by a DSN, a template stays.
func newKey(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(t.Name(), " ", os.Getpid(), " ", keys.Add(1))
}

var keys atomic.Int64

func TestAMigrationRunsOnceAndEveryTestHasACopy(t *testing.T) {
	t.Parallel()
	for engine, copyOf := range copies {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			skipUnwanted(t, engine)
			var runs atomic.Int32
			shop := sqltest.Migrated(newKey(t), func(ctx context.Context, db *sqltest.Database) error {
				runs.Add(1)
				if _, err := db.ExecContext(ctx, "CREATE TABLE goods (name varchar(20) PRIMARY KEY)"); err != nil {
					return err
				}
				_, err := db.ExecContext(ctx, "INSERT INTO goods VALUES ('tea')")
				return err
			})
			for i := range 12 {
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					db := copyOf(shop, t)
					var n int
					if err := db.GetContext(t.Context(), &n, "SELECT count(*) FROM goods"); err != nil || n != 1 {
						t.Errorf("%d goods, %v; want 1", n, err)
					}
					if _, err := db.ExecContext(t.Context(), "INSERT INTO goods VALUES ('milk')"); err != nil {
						t.Error(err)
					}
				})
			}
			t.Cleanup(func() {
				if n := runs.Load(); n != 1 {
					t.Errorf("the migration ran %d times", n)
				}
			})
		})
	}
}

func TestTheSameKeyInTwoPackagesMakesTwoTemplates(t *testing.T) {
	t.Parallel()
	for engine, copyOf := range copies {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			skipUnwanted(t, engine)
			key := newKey(t)
			mustExec(t, copyOf(sqltest.Migrated(key, sqltest.MakeGoods), t).DB, "INSERT INTO goods VALUES (1)")
			users := sqltest.Migrated(key, func(ctx context.Context, db *sqltest.Database) error {
				_, err := db.ExecContext(ctx, "CREATE TABLE users (n int)")
				return err
			})
			mustExec(t, copyOf(users, t).DB, "INSERT INTO users VALUES (1)")
		})
	}
}

func TestAFailedMigrationRunsOnceAndFailsEveryTest(t *testing.T) {
	t.Parallel()
	for engine, copyOf := range copies {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			engines[engine](t) // skips if it is not there
			runs := 0
			broken := sqltest.Migrated(newKey(t), func(context.Context, *sqltest.Database) error {
				runs++
				return errors.New("no such column: prize")
			})
			for range 3 {
				tb := newFakeTB(t.Name())
				tb.run(func() { copyOf(broken, tb) })
				tb.end()
				if !strings.Contains(tb.fatal, "no such column: prize") {
					t.Errorf("failed with %q", tb.fatal)
				}
			}
			if runs != 1 {
				t.Errorf("the migration ran %d times", runs)
			}
		})
	}
}

func TestAMigrationThatEndsItsTestIsTriedAgain(t *testing.T) {
	t.Parallel()
	for engine, copyOf := range copies {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			engines[engine](t) // skips if it is not there
			tb := newFakeTB(t.Name())
			tries := 0
			template := sqltest.Migrated(newKey(t), func(ctx context.Context, db *sqltest.Database) error {
				_, err := db.ExecContext(ctx, "CREATE TABLE half (n int)")
				if tries++; tries == 1 {
					tb.Fatalf("not today")
				}
				return err
			})
			tb.run(func() { copyOf(template, tb) })
			tb.end()
			if _, err := copyOf(template, t).ExecContext(t.Context(), "INSERT INTO half VALUES (1)"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAMigrationWhoseProcessWasKilledLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			db := sqltest.Start(t, engine).Database(t)
			temp := ownTemp(t)
			server := variables[engine] + "=" + db.DSN
			c := newChild(t, engine, temp, server, childTemplate+"="+newKey(t), childStuck+"=1")
			c.kill()
			if left := databases(t, engine, db); len(left) != 1 {
				t.Fatalf("this test wants a half-made template: %q", left)
			}
			eventually(t, "it was dropped", func() bool {
				newChild(t, engine, temp, server).end(t)
				return len(databases(t, engine, db)) == 0
			})
		})
	}
}

// On a node of a cluster, locks and sessions of other nodes cannot be seen.
func TestNothingIsSweptOnANodeOfACluster(t *testing.T) {
	t.Parallel()
	member := []sqltest.Option{
		sqltest.Setting("plugin-load-add", "group_replication.so"), sqltest.Setting("loose-group-replication-start-on-boot", "OFF"),
		sqltest.Setting("loose-group-replication-group-name", "8a94f357-aab4-11df-86ab-c80aa9429562"),
	}
	for name, c := range map[string]struct {
		settings []sqltest.Option
		left     int
	}{"alone": {nil, 0}, "in a group": {member, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Start(t, sqltest.EngineMySQL, c.settings...).Database(t)
			mustExec(t, db.DB, "CREATE DATABASE sqltest_0_abcdefghij_1") // of a process that is dead, or connected to another node
			newChild(t, sqltest.EngineMySQL, ownTemp(t), "SQLTEST_MYSQL="+db.DSN).end(t)
			if left := databases(t, sqltest.EngineMySQL, db); len(left) != c.left {
				t.Errorf("left: %q; want %d", left, c.left)
			}
		})
	}
}

func TestSQLFilesRunInOrderAndAgainWhenOneHasChanged(t *testing.T) {
	t.Parallel()
	for engine, copyOf := range copies {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			seed := "INSERT INTO goods VALUES (%d); UPDATE goods SET n = n + 1;"
			files := fstest.MapFS{
				"m/001_goods.sql":      {Data: []byte("CREATE TABLE goods (n int);\nCREATE INDEX by_n ON goods (n);")},
				"m/002_seed.sql":       {Data: fmt.Appendf(nil, seed, 1)},
				"m/002_seed.down.sql":  {Data: []byte("DROP TABLE goods")},
				"m/readme.txt":         {Data: []byte(newKey(t))},
				"m/010_after_all.sql":  {Data: []byte("UPDATE goods SET n = n * 10;")},
				"m/more/001_other.sql": {Data: []byte("CREATE TABLE other (n int)")},
			}
			count := func(want int) {
				t.Helper()
				var n int
				if err := copyOf(sqltest.SQLFiles(files), t).GetContext(t.Context(), &n, "SELECT n FROM goods"); err != nil || n != want {
					t.Errorf("%d, %v; want %d", n, err, want)
				}
			}
			count(20)
			count(20)
			files["m/002_seed.sql"] = &fstest.MapFile{Data: fmt.Appendf(nil, seed, 3)}
			count(40)
		})
	}
}

func TestAnErrorInAFileNamesTheFile(t *testing.T) {
	t.Parallel()
	for engine, copyOf := range copies {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			engines[engine](t) // skips if it is not there
			for name, files := range map[string]fstest.MapFS{
				"2.sql":    {"1.sql": {Data: []byte("CREATE TABLE a (n int)")}, "2.sql": {Data: []byte("SELECT 1; INSERT INTO nowhere VALUES (1)")}},
				"no .sql ": {"1.txt": {Data: []byte(newKey(t))}},
			} {
				tb := newFakeTB(t.Name())
				tb.run(func() { copyOf(sqltest.SQLFiles(files), tb) })
				tb.end()
				if !strings.Contains(tb.fatal, name) {
					t.Errorf("%q is not in %q", name, tb.fatal)
				}
			}
		})
	}
}

func TestTheFilesOfSQLiteTemplatesEndWithTheRun(t *testing.T) {
	t.Parallel()
	skipUnwanted(t, sqltest.EngineSQLite)
	temp := ownTemp(t)
	c := newChild(t, sqltest.EngineSQLite, temp, childTemplate+"=1")
	found, err := filepath.Glob(filepath.Join(temp, "sqltest-*", "sqlite-*", "sqltest_template_*"))
	if err != nil || len(found) == 0 {
		t.Errorf("no template is shared: %q, %v", found, err)
	}
	c.kill()
	expectNothingLeft(t, temp, "")
}

func TestTheSQLiteFileOfAKilledTestIsDeleted(t *testing.T) {
	t.Parallel()
	skipUnwanted(t, sqltest.EngineSQLite)
	temp := ownTemp(t)
	c := newChild(t, sqltest.EngineSQLite, temp, "SQLTEST_KEEP=")
	files := func() (found []string) {
		_ = filepath.WalkDir(temp, func(path string, _ fs.DirEntry, _ error) error {
			if filepath.Base(path) == "test.db" {
				found = append(found, path)
			}
			return nil
		})
		return found
	}
	if len(files()) != 1 {
		t.Errorf("the files of the child: %q", files())
	}
	c.kill()
	eventually(t, "no file is left", func() bool { return len(files()) == 0 })
	expectNothingLeft(t, temp, "")
}

// skipUnwanted skips a test on an engine that is left out on purpose.
func skipUnwanted(t *testing.T, engine sqltest.Engine) {
	t.Helper()
	if name := "SQLTEST_" + strings.ToUpper(string(engine)); os.Getenv(name) == "skip" {
		t.Skip(name + "=skip")
	}
}
