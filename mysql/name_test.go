package mysql_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// Other programs lock with these names, so they must not change.
func TestServerNamesDoNotChange(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ database, name, want string }{
		{"app", "a", "sqllock_40d925ae299cc44baafe3ebe0eab50554c311c5c09e05aab"},
		{"", "a", "sqllock_47267874f63a0e13d844da304d92420eba5a6ebade0ea046"},
		{"app", "migrations", "sqllock_2f2eef3177f79e62a7ff86a9e451e48adff1d0037fc7165b"},
		{"app", "a\x00b", "sqllock_5d69e6c9d5d3a58c5ad0fd287707ff16d72223da82d9d56a"},
		{"App", "🔒", "sqllock_1bb4c794c4a5bc0705ddc9734a5eda73bdc3347733e19bd2"},
	} {
		got := mysql.ServerName(test.database, test.name)
		if got != test.want {
			t.Errorf("ServerName(%q, %q) = %q; want %q", test.database, test.name, got, test.want)
		}
		if len(got) > 64 {
			t.Errorf("%q is longer than MySQL allows", got)
		}
	}
}

func TestAnotherProgramMayTakeTheSameLock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		l := newLocker(t, db)
		name := serverName(t, db, "shared")
		session, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if _, err := session.ExecContext(t.Context(), "DO GET_LOCK(?, 0)", name); err != nil {
			t.Fatal(err)
		}
		mustBeHeld(t, l, "shared")
		if _, err := session.ExecContext(t.Context(), "DO RELEASE_LOCK(?)", name); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, mustTry(t, l, "shared"))
	})
}

// docs/coming-from.md has the name for GET_LOCK as SQL, for other clients and for programs in other languages.
func TestSQLComputesTheSameServerNames(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^SELECT GET_LOCK\((.*'migrations'.*), 10\);$`).FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no such statement")
	}
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		for _, name := range []string{"migrations", "é", "🔒", "a b"} {
			text := strings.Replace(string(found[1]), "'migrations'", "'"+name+"'", 1)
			if got := ask[string](t, db, "SELECT "+text); got != serverName(t, db, name) {
				t.Errorf("the name of %q is %s; want %s", name, got, serverName(t, db, name))
			}
		}
	})
}

func TestTheConnectionsCharsetDoesNotChangeALock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		config, err := gomysql.ParseDSN(db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		config.DBName = "sqltest_café_" + strconv.Itoa(os.Getpid())
		statement(t, db, "CREATE DATABASE `"+config.DBName+"`")
		defer statement(t, db, "DROP DATABASE `"+config.DBName+"`")
		plain := closing(t)(mysql.New(config.FormatDSN()))
		config.Params = map[string]string{"charset": "latin1"}
		latin1 := closing(t)(mysql.New(config.FormatDSN()))
		lock := mustTry(t, plain, "x")
		mustBeHeld(t, latin1, "x")
		mustRelease(t, lock)
	})
}

func TestServerWideNamesAreTheSameInEveryDatabase(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		config, err := gomysql.ParseDSN(db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		config.DBName = "mysql" // every server has it
		here, there := newLocker(t, db, mysql.WithServerWideNames()), closing(t)(mysql.New(config.FormatDSN(), mysql.WithServerWideNames()))
		name := t.Name() // other tests use this server, too
		lock := mustTry(t, here, name)
		mustBeHeld(t, there, name)
		if id := ask[int64](t, db, "SELECT IS_USED_LOCK(?)", mysql.ServerName("", name)); id == 0 {
			t.Error("the lock has another name")
		}
		inDatabase := mustTry(t, newLocker(t, db), name)
		mustRelease(t, inDatabase)
		mustRelease(t, lock)
	})
}
