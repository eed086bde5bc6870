package sqltest_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/sqltest"
)

func TestTheStatementWhoseAnswerIsDroppedHasRun(t *testing.T) {
	t.Parallel()
	onNetworks(t, func(t *testing.T, db *sqltest.Database, network *sqltest.Network, far *sqlx.DB) {
		far.SetMaxOpenConns(1)
		prepared, err := far.PreparexContext(t.Context(), insert(db))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = prepared.Close() }()
		for n, run := range []func(n int) error{
			func(n int) error {
				_, err := far.ExecContext(t.Context(), insert(db), n, "not prepared by us")
				return err
			},
			func(n int) error { _, err := prepared.ExecContext(t.Context(), n, "prepared"); return err },
			func(n int) error { _, err := prepared.ExecContext(t.Context(), n, "prepared again"); return err },
		} {
			mustExec(t, far, insert(db), 10+n, "warm") // the driver may know the statement by now
			lost := network.DropAnswer("insert INTO goods")
			if err := run(n + 1); err == nil {
				t.Errorf("statement %d: no error", n)
			}
			mustCome(t, lost.Answered())
			if got := goods(t, db); got != 2*(n+1)+1 {
				t.Errorf("%d rows after statement %d", got, n)
			}
		}
		lost := network.DropAnswer("some argument").Skip(1)
		mustExec(t, far, insert(db), 20, "some argument")
		if _, err := far.ExecContext(t.Context(), insert(db), 21, "some argument"); err == nil {
			t.Error("the answer to an argument was not dropped")
		}
		mustCome(t, lost.Answered())

		lost = network.DropAnswer("commit")
		tx, err := far.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, tx, insert(db), 30, "in a transaction")
		if err := tx.Commit(); err == nil {
			t.Error("a commit without an answer: no error")
		}
		mustCome(t, lost.Answered())
		if got := goods(t, db); got != 10 {
			t.Errorf("%d rows; want 10", got)
		}
	})
}

func TestAnAnswerThatIsHeldComesLaterOrNever(t *testing.T) {
	t.Parallel()
	onNetworks(t, func(t *testing.T, db *sqltest.Database, network *sqltest.Network, far *sqlx.DB) {
		for n, end := range []func(*sqltest.Answer){(*sqltest.Answer).Pass, (*sqltest.Answer).Drop} {
			held := network.HoldAnswer("INSERT INTO goods")
			done := make(chan error, 1)
			go func() {
				_, err := far.ExecContext(t.Context(), insert(db), n+1, "held")
				done <- err
			}()
			mustCome(t, held.Asked())
			mustCome(t, held.Answered())
			if got := goods(t, db); got != n+2 {
				t.Errorf("%d rows", got)
			}
			if len(done) > 0 {
				t.Errorf("the statement has ended with %v", <-done)
			}
			end(held)
			if err := <-done; (err != nil) != (n == 1) {
				t.Errorf("in the end: %v", err)
			}
		}
		network.HoldAnswer("INSERT INTO goods").Pass() // nobody has asked
		mustExec(t, far, insert(db), 9, "not held")
	})
}

func TestATestHearsWhyAnAnswerWasNotFound(t *testing.T) {
	t.Parallel()
	db := sqltest.MySQL(t)
	tb := newFakeTB(t.Name())
	network := db.Network(tb)
	network.DropAnswer("SELECT")
	far, err := sql.Open("mysql", network.DSN+"&tls=skip-verify")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = far.Close() }()
	if _, err := far.ExecContext(t.Context(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	tb.end()
	if !strings.Contains(tb.text(), "without TLS") {
		t.Errorf("it hears %q", tb.text())
	}
}
