package sqltest_test

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

// drivers are the packages that a build tag leaves out.
var drivers = map[string]string{
	"sqltest_no_postgres": "github.com/jackc/pgx/v5",
	"sqltest_no_mysql":    "github.com/go-sql-driver/mysql",
	"sqltest_no_sqlite":   "modernc.org/sqlite",
}

func TestADriverThatIsNotWantedIsNotLinked(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	all := slices.Sorted(maps.Keys(drivers))
	for _, tags := range [][]string{{}, {all[0]}, {all[1]}, {all[2]}, all} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", strings.Join(tags, ","), ".").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", tags, err, out)
		}
		for tag, driver := range drivers {
			if is := slices.Contains(strings.Split(string(out), "\n"), driver); is == slices.Contains(tags, tag) {
				t.Errorf("with the tags %v, %s: linked is %t", tags, driver, is)
			}
		}
	}
}

const without = `package without

import (
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

func TestSQLite(t *testing.T)  { sqltest.SQLite(t) }
func TestMySQL(t *testing.T)   { sqltest.MySQL(t) }
func TestMariaDB(t *testing.T) { sqltest.Start(t, sqltest.EngineMariaDB) }
`

func TestATestOfADriverThatWasLeftOutSaysSo(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	// In a folder of this module that ./... does not name.
	dir, err := os.MkdirTemp(".", "_without-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.WriteFile(dir+"/without_test.go", []byte(without), 0o600); err != nil {
		t.Fatal(err)
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-tags", "sqltest_no_mysql,sqltest_no_sqlite,sqltest_no_postgres", "./"+dir)
	test.Env = append(os.Environ(), "CGO_ENABLED=0") // as the packages below it are built for other tests
	out, err := test.CombinedOutput()
	if err == nil {
		t.Errorf("no failure: %s", out)
	}
	for _, part := range []string{"has no sqlite: build it without the tag sqltest_no_sqlite", "has no mysql:", "has no mariadb: build it without the tag sqltest_no_mysql"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%q is not in: %s", part, out)
		}
	}
}
