package pg_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestInspectSaysTheOwnerAndHowManyWait(t *testing.T) {
	t.Parallel()
	locktest.Inspect(t, newDatabase(t))
}

func TestListShowsEveryAdvisoryLockOfTheDatabase(t *testing.T) {
	t.Parallel()
	db, elsewhere := sqltest.Postgres(t), sqltest.Postgres(t)
	l := newLocker(t, db, pg.WithOwner("accounts"))
	if infos, err := l.List(t.Context()); err != nil || len(infos) != 0 {
		t.Errorf("List of no locks = %+v, %v", infos, err)
	}
	mustTry(t, l, "a")
	mustTry(t, newLocker(t, elsewhere), "b")
	session, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.ExecContext(t.Context(),
		"SELECT pg_advisory_lock_shared(-2), pg_advisory_lock(-3, 7), pg_advisory_lock(1)"); err != nil {
		t.Fatal(err)
	}
	infos, err := l.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pair := func(one, two int32) int64 { return int64(one)<<32 | int64(uint32(two)) }
	other := ask[int64](t, db, "SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' "+
		"AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
	want := []string{
		fmt.Sprint(pair(-3, 7), true, false, other), fmt.Sprint(-2, false, true, other), fmt.Sprint(1, false, false, other),
		fmt.Sprint(pg.Key("a"), false, false, holderOf(t, db, "a")),
	}
	var got []string
	for _, info := range infos {
		got = append(got, fmt.Sprint(info.Key, info.Pair, info.Shared, info.Holder.Session))
		if info.Key == pg.Key("a") && (info.Holder.Owner != "accounts" || info.Holder.Since.IsZero() || info.Holder.Address == "") {
			t.Errorf("the holder of our lock is %+v", info.Holder)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("List = %v; want %v", got, want)
	}
}

// Such a role can see the holder of a lock, but neither its address nor its start time, and may not end its session.
func TestARoleWithoutPrivilegesInspectsAndListsButCannotTerminate(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	lock := mustTry(t, newLocker(t, db, pg.WithOwner("accounts")), "a")
	l := closing(t)(pg.New(asRole(t, db)))
	want := sqllock.Holder{Owner: "accounts", Session: int64(holderOf(t, db, "a"))}
	if info, err := l.Inspect(t.Context(), "a"); err != nil || !reflect.DeepEqual(info, pg.Info{Name: "a", Key: pg.Key("a"), Held: true, Holder: want, Holders: []sqllock.Holder{want}}) {
		t.Errorf("Inspect = %+v, %v; want %+v", info, err, want)
	}
	if infos, err := l.List(t.Context()); err != nil || len(infos) != 1 || !reflect.DeepEqual(infos[0], pg.Info{Key: pg.Key("a"), Held: true, Holder: want, Holders: []sqllock.Holder{want}}) {
		t.Errorf("List = %+v, %v", infos, err)
	}
	_, held, err := l.Terminate(t.Context(), "a")
	var op *sqllock.OpError
	if held || !errors.As(err, &op) || op.Op != "terminate" || !strings.Contains(err.Error(), "pg_signal_backend") {
		t.Errorf("Terminate = %t, %v", held, err)
	}
	mustLive(t, lock)
	mustRelease(t, lock)
}

// asRole creates a role that may connect and nothing else, and returns its DSN.
func asRole(t *testing.T, db *sqltest.Database) string {
	t.Helper()
	role := ask[string](t, db, "SELECT current_database()::text") + "_visitor"
	statement(t, db, "CREATE ROLE "+role+" LOGIN PASSWORD 'visitor'")
	t.Cleanup(func() { _, _ = db.Exec("DROP ROLE " + role) })
	return database{db}.DSN(t, locktest.Access{User: role, Password: "visitor"})
}
