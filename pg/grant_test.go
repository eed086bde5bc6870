package pg_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// A timeout that comes just after the grant of the key does not take the lock away again: the statement says that it has
// the key, and the session holds the key once, and nothing else. After one that comes just after the grant of the gate it
// holds nothing. I47.
func TestAGrantThatComesWithTheTimeoutIsKept(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), sqltest.Postgres(t).DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	mustExec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	held := func() (n int) {
		t.Helper()
		err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	seat := func() (key string) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), pg.Seat, "-42", "").Scan(&key, new(bool), new(int), new(any)); err != nil {
			t.Fatal(err)
		}
		return key
	}
	without := func() string { return "" }
	wait := func(text, seat, wantTaken, wantGated string) {
		t.Helper()
		mustExec(pg.WaitBegin, "-42", "1000", "", "1000", seat)
		mustExec(text)
		var taken, gated string
		if err := conn.QueryRow(t.Context(), pg.WaitEnd).Scan(&taken, &gated, new(string), new(bool), new(int), new(any)); err != nil {
			t.Fatal(err)
		}
		if taken != wantTaken || gated != wantGated {
			t.Errorf("taken: %s, at the gate: %s", taken, gated)
		}
	}
	mustExec("CREATE FUNCTION pg_temp.late() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE lock_not_available; END $$")
	for _, kind := range []int64{0, pg.KindShared, pg.KindPair, pg.KindShared + pg.KindPair} {
		for _, gated := range []bool{false, true} {
			before, handler, _ := strings.Cut(pg.WaitText(pg.KindTry+kind, gated), "EXCEPTION")
			for _, late := range []string{"lock_not_available", "deadlock_detected"} {
				for _, text := range []string{before + "EXCEPTION" + handler, before + "RAISE " + late + "; EXCEPTION" + handler} {
					for _, seat := range []func() string{without, seat} {
						if gated {
							mustExec(takeGate(kind))
						}
						wait(text, seat(), "yes", "false")
						if n := held(); n != 1 {
							t.Errorf("kind %d: the session holds %d keys", kind, n)
						}
						mustExec(pg.Many, []int64{kind}, []int64{-42})
						if n := held(); n != 0 {
							t.Errorf("kind %d: after one release it holds %d keys", kind, n)
						}
					}
				}
			}
		}
		first, rest, _ := strings.Cut(pg.WaitText(pg.KindTry+kind, false), ";")
		for _, seat := range []func() string{without, seat} {
			wait(first+", pg_temp.late();"+rest, seat(), "no", "false")
			if n := held(); n != 0 {
				t.Errorf("kind %d: a session that was granted the gate late holds %d keys", kind, n)
			}
		}
	}
}

// takeGate returns the statement that takes the gate of the key -42.
func takeGate(kind int64) string {
	shared, args := "", "gate"
	if kind&pg.KindShared != 0 {
		shared = "_shared"
	}
	if kind&pg.KindPair != 0 {
		args = "(gate >> 32)::int, (gate << 32 >> 32)::int"
	}
	return fmt.Sprintf("SELECT pg_advisory_lock%s(%s) FROM hashtextextended('-42', 1) gate", shared, args)
}
