package pg_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// Other programs lock with these keys, so they must not change.
func TestKeysDoNotChange(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int64{
		"a":          2184762219389102997,
		"migrations": -7929163484602217465,
		"a\x00b":     6327817840259683129,
		"é":          6517383395807613529,
		"🔒":          -1747943948624270860,
		"\xff":       -2289234791679548615,
	} {
		if got := pg.Key(name); got != want {
			t.Errorf("Key(%q) = %d; want %d", name, got, want)
		}
	}
}

func TestAnotherProgramMayTakeTheSameLock(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	l := newLocker(t, db)
	session, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.ExecContext(t.Context(), "SELECT pg_advisory_lock($1)", pg.Key("shared")); err != nil {
		t.Fatal(err)
	}
	mustBeHeld(t, l, "shared")
	if _, err := session.ExecContext(t.Context(), "SELECT pg_advisory_unlock($1)", pg.Key("shared")); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, mustTry(t, l, "shared"))
}

// docs/coming-from.md has the key of a name as SQL, for psql and for programs in other languages.
func TestSQLComputesTheSameKeys(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	page, err := os.ReadFile("../docs/coming-from.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^SELECT pg_advisory_lock\((.*'migrations'.*)\);$`).FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no such statement")
	}
	for _, name := range []string{"migrations", "é", "🔒", "a b", `a\b`} {
		text := strings.Replace(string(found[1]), "'migrations'", "'"+name+"'", 1)
		if got := ask[int64](t, db, "SELECT "+text); got != pg.Key(name) {
			t.Errorf("the key of %q is %d; want %d", name, got, pg.Key(name))
		}
	}
}

// Both names would be the same lock: the second wait would be one for the first.
func TestAcquireAllOfSeveralNamesWithOneKeyIsAnError(t *testing.T) {
	t.Parallel()
	l := closing(t)(pg.New("postgres://127.0.0.1:1/nowhere"))
	for _, opt := range []sqllock.Option{pg.WithKey(7), pg.WithPair(1, 2)} {
		if _, err := sqllock.AcquireAll(t.Context(), l, []string{"a", "b"}, opt); !errors.Is(err, sqllock.ErrUnsupported) {
			t.Errorf("AcquireAll: %v", err)
		}
	}
}
