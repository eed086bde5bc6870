package pg_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// A timeout that comes just after the grant does not take the lock away again: the statement says that it has the key,
// and the session holds the key once, and no gate. I47.
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
	for kind, wait := range pg.Waits() {
		before, after, _ := strings.Cut(wait, "EXCEPTION WHEN lock_not_available") // after the grant of the key
		late := before + "RAISE lock_not_available;\nEXCEPTION WHEN lock_not_available" + after
		mustExec(pg.WaitBegin, "-42", "1000", "")
		mustExec(late)
		var taken, gated string
		if err := conn.QueryRow(t.Context(), pg.WaitEnd).Scan(&taken, &gated); err != nil {
			t.Fatal(err)
		}
		if taken != "yes" || gated != "false" {
			t.Errorf("kind %d: taken: %s, at the gate: %s", kind, taken, gated)
		}
		held := func() (n int) {
			t.Helper()
			err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()").Scan(&n)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := held(); n != 1 {
			t.Errorf("kind %d: the session holds %d keys", kind, n)
		}
		mustExec(pg.Many, []int64{kind - pg.KindTry}, []int64{-42})
		if n := held(); n != 0 {
			t.Errorf("kind %d: after one release it holds %d keys", kind, n)
		}
	}
}
