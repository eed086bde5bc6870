package mysql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// MariaDB lists its locks only if it is configured to: one such server is enough for all of these tests.
func TestWhatAServerShows(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) func(sqltest.TB, ...sqltest.Option) *sqltest.Database{
		"MySQL": func(*testing.T) func(sqltest.TB, ...sqltest.Option) *sqltest.Database { return sqltest.MySQL },
		"MariaDB": func(t *testing.T) func(sqltest.TB, ...sqltest.Option) *sqltest.Database {
			t.Helper()
			return sqltest.Start(t, sqltest.EngineMariaDB, sqltest.Setting("performance-schema", "ON"),
				sqltest.Setting("performance-schema-instrument", "wait/lock/metadata/sql/mdl=ON")).Database
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := start(t)
			t.Run("of the owner and of those who wait", func(t *testing.T) {
				t.Parallel()
				locktest.Inspect(t, database{open(t)})
			})
			t.Run("while a statement has a parameter that is not UTF-8", func(t *testing.T) {
				t.Parallel()
				showsWhileNotUTF8(t, open(t))
			})
			t.Run("in a List", func(t *testing.T) {
				t.Parallel()
				showsNames(t, open(t))
			})
		})
	}
}

func showsWhileNotUTF8(t *testing.T, db *sqltest.Database) {
	t.Helper()
	l := newLocker(t, db)
	lock := mustTry(t, l, "a")
	ctx := t.Context()
	other, err := db.Connx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var id int
	if err := other.GetContext(ctx, &id, "SELECT CONNECTION_ID()"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer other.Close()
		_, _ = other.ExecContext(ctx, "SELECT SLEEP(600), ?", []byte("\x8a$\xfd")) // until it is killed
	}()
	eventually(t, "the statement runs", func() bool {
		return ask[int](t, db, "SELECT COUNT(*) FROM "+processes+" WHERE DB = DATABASE() AND STATE = 'User sleep'") == 1
	})
	if info, err := l.Inspect(ctx, "a"); err != nil || !info.Held || info.Holder.Address == "" {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	if infos, err := l.List(ctx); err != nil || len(infos) == 0 {
		t.Errorf("List = %v, %v", infos, err)
	}
	if _, err := newLocker(t, db).TryAcquire(ctx, "a"); !errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("TryAcquire = %v", err)
	}
	if _, err := db.ExecContext(ctx, fmt.Sprint("KILL ", id)); err != nil {
		t.Error(err)
	}
	<-ended
	mustRelease(t, lock)
}

func showsNames(t *testing.T, db *sqltest.Database) {
	t.Helper()
	l := newLocker(t, db, mysql.WithOwner("accounts"))
	lock := mustTry(t, l, "a")
	infos, err := l.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := serverName(t, db, "a")
	i := slices.IndexFunc(infos, func(info mysql.Info) bool { return info.ServerName == name })
	if i < 0 {
		t.Fatalf("List = %+v; the lock is not among them", infos)
	}
	if h := infos[i].Holder; h.Owner != "accounts" || h.Session != int64(holderOf(t, db, "a")) || h.Address == "" || h.Waiters != 0 {
		t.Errorf("the holder is %+v", h)
	}
	mustRelease(t, lock)
}

func TestListSaysWhatToTurnOnForAServerThatShowsNothing(t *testing.T) {
	t.Parallel()
	l := newLocker(t, sqltest.MariaDB(t))
	infos, err := l.List(t.Context())
	if !errors.Is(err, sqllock.ErrUnsupported) || !strings.Contains(err.Error(), "performance_schema=ON") {
		t.Errorf("List = %+v, %v", infos, err)
	}
}

// Such a user sees which connection holds a lock, and nothing more.
func TestAUserWithoutPrivilegesInspectsButCannotListOrTerminate(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		lock := mustTry(t, newLocker(t, db), "a")
		l := closing(t)(mysql.New(asUser(t, db)))
		want := sqllock.Holder{Session: int64(holderOf(t, db, "a"))}
		if info, err := l.Inspect(t.Context(), "a"); err != nil || !info.Held || info.Holder != want {
			t.Errorf("Inspect = %+v, %v; want %+v", info, err, want)
		}
		infos, err := l.List(t.Context())
		if op, ok := err.(*sqllock.OpError); !ok || op.Op != "list" || !strings.Contains(op.Err.Error(), "requires SELECT") { //nolint:errorlint // outermost
			t.Errorf("List = %+v, %v", infos, err)
		}
		_, held, err := l.Terminate(t.Context(), "a")
		var op *sqllock.OpError
		if held || !errors.As(err, &op) || op.Op != "terminate" || !strings.Contains(err.Error(), "CONNECTION_ADMIN") {
			t.Errorf("Terminate = %t, %v", held, err)
		}
		mustLive(t, lock)
		mustRelease(t, lock)
	})
}

// asUser creates a user with all privileges on the database but none on the server, and returns its DSN.
func asUser(t *testing.T, db *sqltest.Database) string {
	t.Helper()
	name := ask[string](t, db, "SELECT DATABASE()")
	user := "v" + name[max(0, len(name)-24):]
	statement(t, db, "CREATE USER "+user+" IDENTIFIED BY 'visitor'")
	t.Cleanup(func() { _, _ = db.Exec("DROP USER " + user) })
	statement(t, db, "GRANT ALL ON "+name+".* TO "+user)
	return database{db}.DSN(t, locktest.Access{User: user, Password: "visitor"})
}

// Nothing else could give them the name.
func TestALockerThatDoesNotMakeItsDSNRefusesAName(t *testing.T) {
	t.Parallel()
	c, err := gomysql.NewConnector(parse(t, "user@tcp(127.0.0.1:1)/database"))
	if err != nil {
		t.Fatal(err)
	}
	pool := sql.OpenDB(c)
	t.Cleanup(func() { _ = pool.Close() })
	_, errDB := mysql.FromDB(pool, mysql.WithOwner("billing"))
	_, errConnector := mysql.FromConnector(c, mysql.WithOwner("billing"))
	for _, err := range []error{errDB, errConnector} {
		if !errors.Is(err, sqllock.ErrUnsupported) || !strings.Contains(err.Error(), "program_name") {
			t.Errorf("the error is %v; it should say what to set instead", err)
		}
	}
}

func TestConnectionsHaveTheOwnersName(t *testing.T) {
	t.Parallel()
	db := sqltest.MySQL(t) // MariaDB shows attributes only with performance_schema
	mustRelease(t, mustTry(t, newLocker(t, db, mysql.WithOwner("billing,a:b")), "a"))
	if n := ask[int](t, db, `SELECT COUNT(*) FROM performance_schema.session_connect_attrs
		WHERE ATTR_NAME = 'program_name' AND ATTR_VALUE = 'sqllock/billing a b'`); n != 1 {
		t.Errorf("%d connections have the owner's name", n)
	}
}
