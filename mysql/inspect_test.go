package mysql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// onEachThatShows runs a test on MySQL, and on a MariaDB that was told to show its locks.
func onEachThatShows(t *testing.T, test func(t *testing.T, db *sqltest.Database)) {
	t.Helper()
	t.Run("MySQL", func(t *testing.T) {
		t.Parallel()
		test(t, sqltest.MySQL(t))
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		srv := sqltest.Start(t, sqltest.EngineMariaDB, "performance-schema=ON",
			"performance-schema-instrument=wait/lock/metadata/sql/mdl=ON")
		test(t, srv.Database(t))
	})
}

func TestInspectSaysTheOwnerAndHowManyWait(t *testing.T) {
	t.Parallel()
	onEachThatShows(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		l := newLocker(t, db, mysql.WithOwner("accounts"))
		lock := mustTry(t, l, "a")
		ctx, cancel := bounded(t)
		defer cancel()
		one := waitFor(ctx, t, db, newLocker(t, db), "a")
		two := waitFor(ctx, t, db, newLocker(t, db), "a")
		var seen sqllock.Holder
		eventually(t, "both waiters are seen", func() bool { // each leaves the queue for a moment now and then
			var err error
			if seen, _, err = l.Inspect(ctx, "a"); err != nil {
				t.Fatal(err)
			}
			return seen.Waiters == 2
		})
		if seen.Owner != "accounts" || seen.Session != int64(holderOf(t, db, "a")) || seen.Address == "" {
			t.Errorf("the holder is %v", seen)
		}
		mustRelease(t, lock)
		for range 2 {
			select {
			case out := <-one:
				mustRelease(t, out.lock)
			case out := <-two:
				mustRelease(t, out.lock)
			}
		}
	})
}

func TestTheHolderIsSeenWhileAStatementHasAParameterThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	onEachThatShows(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		l := newLocker(t, db)
		lock := mustTry(t, l, "a")
		ctx, cancel := bounded(t)
		defer cancel()
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
		if seen, held, err := l.Inspect(ctx, "a"); err != nil || !held || seen.Address == "" {
			t.Errorf("Inspect = %v, %t, %v", seen, held, err)
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
	})
}

func TestListShowsTheNamesOfTheServer(t *testing.T) {
	t.Parallel()
	onEachThatShows(t, func(t *testing.T, db *sqltest.Database) {
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
	})
}

func TestListSaysWhatToTurnOnForAServerThatShowsNothing(t *testing.T) {
	t.Parallel()
	l := newLocker(t, sqltest.MariaDB(t))
	infos, err := l.List(t.Context())
	if !errors.Is(err, sqllock.ErrUnsupported) || !strings.Contains(err.Error(), "performance_schema=ON") {
		t.Errorf("List = %+v, %v", infos, err)
	}
}

func TestTerminateFreesTheLockForAWaiterAndTellsItsHolder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		holder, l := newLocker(t, db), newLocker(t, db)
		lock := mustTry(t, holder, "a")
		session := int64(holderOf(t, db, "a"))
		ctx, cancel := bounded(t)
		defer cancel()
		waiting := waitFor(ctx, t, db, newLocker(t, db), "a")
		ended, held, err := l.Terminate(ctx, "a")
		if err != nil || !held || ended.Session != session {
			t.Fatalf("Terminate = %+v, %t, %v; want connection %d", ended, held, err, session)
		}
		mustBeLost(t, lock)
		out := <-waiting
		if out.err != nil {
			t.Fatal(out.err)
		}
		mustRelease(t, out.lock)
		mustRelease(t, mustTry(t, holder, "a"))
	})
}

func TestTerminateOfAFreeLockEndsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		lock := mustTry(t, newLocker(t, db), "other")
		if ended, held, err := newLocker(t, db).Terminate(t.Context(), "a"); err != nil || held || ended != (sqllock.Holder{}) {
			t.Errorf("Terminate = %+v, %t, %v", ended, held, err)
		}
		mustRelease(t, lock)
	})
}

func TestALockerDoesNotTerminateItself(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		l := newLocker(t, db)
		lock := mustTry(t, l, "a")
		if _, held, err := l.Terminate(t.Context(), "a"); err == nil || held || !strings.Contains(err.Error(), "Release") {
			t.Errorf("Terminate = %t, %v", held, err)
		}
		mustLive(t, lock)
		mustRelease(t, lock)
	})
}

// Such a user sees which connection holds a lock, and no more.
func TestAUserWithoutPrivilegesInspectsButCannotListOrTerminate(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		lock := mustTry(t, newLocker(t, db), "a")
		l := closing(t)(mysql.New(asUser(t, db)))
		want := sqllock.Holder{Session: int64(holderOf(t, db, "a"))}
		if seen, held, err := l.Inspect(t.Context(), "a"); err != nil || !held || seen != want {
			t.Errorf("Inspect = %+v, %t, %v; want %+v", seen, held, err, want)
		}
		if infos, err := l.List(t.Context()); err == nil || !strings.Contains(err.Error(), "takes SELECT") {
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

// asUser makes a user that may do anything in the database, but nothing with the server, and
// returns its DSN.
func asUser(t *testing.T, db *sqltest.Database) string {
	t.Helper()
	database := ask[string](t, db, "SELECT DATABASE()")
	user := "v" + database[max(0, len(database)-24):]
	statement(t, db, "CREATE USER "+user+" IDENTIFIED BY 'visitor'")
	t.Cleanup(func() { _, _ = db.Exec("DROP USER " + user) })
	statement(t, db, "GRANT ALL ON "+database+".* TO "+user)
	config, err := gomysql.ParseDSN(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	config.User, config.Passwd = user, "visitor"
	return config.FormatDSN()
}
