package sqltest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/sqltest"
)

// childStorm makes the child a process that begins many tests, each with a copy of a template. Its value is the template's
// key. The child prints a line after each test and each table of the migration, which says what is wrong.
const childStorm = "SQLTEST_CHILD_STORM"

const (
	stormTables = 3
	stormTests  = 2
)

func stormTemplate() *sqltest.Template {
	return sqltest.Migrated(os.Getenv(childStorm), func(ctx context.Context, db *sqltest.Database) error {
		for i := range stormTables {
			if _, err := db.ExecContext(ctx, fmt.Sprintf("CREATE TABLE t%d (n int)", i)); err != nil {
				return err
			}
			if _, err := db.ExecContext(ctx, fmt.Sprintf("INSERT INTO t%d VALUES (%d)", i, i)); err != nil {
				return err
			}
			_ = json.NewEncoder(os.Stdout).Encode("")
		}
		return nil
	})
}

func stormMain(engine sqltest.Engine) {
	template := stormTemplate()
	var tests sync.WaitGroup
	for range 2 {
		tests.Go(func() {
			for range stormTests {
				tb := newFakeTB("storm")
				tb.run(func() { stormTest(tb, copies[engine](template, tb)) })
				tb.end()
				wrong := tb.ending()
				if wrong != "" { // otherwise the log only says that the server is slow
					wrong += tb.text()
				}
				_ = json.NewEncoder(os.Stdout).Encode(wrong)
			}
		})
	}
	tests.Wait()
}

// stormTest fails if the database is not what the migration has made.
func stormTest(tb sqltest.TB, db *sqltest.Database) {
	for i := range stormTables {
		var rows []int
		if err := db.Select(&rows, fmt.Sprintf("SELECT n FROM t%d", i)); err != nil || !slices.Equal(rows, []int{i}) {
			tb.Fatalf("table %d: %v, %v", i, rows, err)
		}
		if _, err := db.Exec(fmt.Sprintf("INSERT INTO t%d VALUES (%d)", i, os.Getpid())); err != nil {
			tb.Fatalf("insert: %v", err)
		}
	}
}

func TestSixteenProcessesOfWhichSomeAreKilledLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			server := sqltest.Start(t, engine)
			db := server.Database(t)
			temp := ownTemp(t)
			env := []string{variables[engine] + "=" + db.DSN, childStorm + "=" + newKey(t)}

			var processes sync.WaitGroup
			for i := range 16 {
				c, output := startChild(t, engine, temp, env...)
				killedAfter := -1 // lines
				if i%2 == 0 {
					killedAfter = rand.IntN(stormTests + stormTables)
				}
				processes.Go(func() {
					lines := bufio.NewReader(output)
					for n := 0; n != killedAfter; n++ {
						var said string
						line, err := lines.ReadBytes('\n')
						if errors.Is(err, io.EOF) {
							break
						}
						if err == nil {
							err = json.Unmarshal(line, &said)
						}
						if err != nil || said != "" {
							t.Errorf("child: %v %s", err, said)
						}
					}
					if killedAfter >= 0 {
						c.kill()
						return
					}
					_ = c.input.Close()
					if err := c.cmd.Wait(); err != nil {
						t.Errorf("child: %v", err)
					}
				})
			}
			processes.Wait()

			eventually(t, "only the template is left", func() bool {
				newChild(t, engine, temp, env[0]).end(t) // drops what the killed ones have left
				left := databases(t, engine, db)
				return len(left) == 1 && strings.HasPrefix(left[0], "sqltest_template_")
			})
			forgetTemplate(t, engine, db, databases(t, engine, db)[0])
			newChild(t, engine, temp, env[0]).end(t)
			if left := databases(t, engine, db); len(left) > 0 {
				t.Errorf("a template that has not been used for long is still there: %q", left)
			}
		})
	}
}

// forgetTemplate makes it look as if a template had not been used for long.
func forgetTemplate(t *testing.T, engine sqltest.Engine, db *sqltest.Database, name string) {
	t.Helper()
	statement := "UPDATE " + name + ".sqltest_template SET used = '2020-02-02'"
	if engine == sqltest.EnginePostgres {
		statement = "COMMENT ON DATABASE " + name + " IS 'sqltest: used 2020-02-02'"
	}
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// databases lists the databases that sqltest has made on the server of db, except db.
func databases(t *testing.T, engine sqltest.Engine, db *sqltest.Database) []string {
	t.Helper()
	query := "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'sqltest%' AND schema_name <> DATABASE()"
	if engine == sqltest.EnginePostgres {
		query = "SELECT datname FROM pg_database WHERE datname LIKE 'sqltest%' AND datname <> current_database()"
	}
	var names []string
	if err := sqlx.Select(db, &names, query); err != nil {
		t.Fatal(err)
	}
	return names
}
