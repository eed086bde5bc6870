package pg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/oddserver"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// row is the message of a row with these values, as the server sends it.
func row(values ...string) string {
	body := string([]byte{0, byte(len(values))})
	for _, v := range values {
		body += string([]byte{0, 0, 0, byte(len(v))}) + v
	}
	return "D" + string([]byte{0, 0, 0, byte(len(body) + 4)}) + body
}

// I41, I42. Something in between that mixes up answers, or lies, must neither end the program nor give it a lock.
func TestAnAnswerToAnotherStatementIsAnError(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	const none = "D\x00\x00\x00\x06\x00\x00"
	for name, answers := range map[string]struct{ said, instead string }{
		"nothing for a lock":     {row("\x00"), none},
		"NULL for a lock":        {row("\x00"), "D\x00\x00\x00\x0a\x00\x01\xff\xff\xff\xff"},
		"no bytes for a lock":    {row("\x00"), row("")},
		"a text for a lock":      {row("\x00"), row("f")},
		"another row for a lock": {row("\x00"), row("\x01", "f")},
		"no row for a lock":      {row("\x00"), ""},
		"two rows for a lock":    {row("\x00"), row("\x01") + row("\x01")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			holder := closing(t)(pg.New(db.DSN))
			if _, err := holder.TryAcquire(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			p := oddserver.NewProxy(t, db)
			l := closing(t)(pg.New(database{db}.DSN(t, locktest.Access{Address: p.Address})))
			other, err := l.TryAcquire(t.Context(), "b")
			if err != nil {
				t.Fatal(err)
			}
			p.Rename(answers.said, answers.instead)
			if lock, err := l.TryAcquire(t.Context(), "a"); lock != nil || err == nil {
				t.Errorf("%v, %v", lock, err)
			}
			if <-other.Context().Done(); !errors.Is(context.Cause(other.Context()), sqllock.ErrLost) {
				t.Error(context.Cause(other.Context()))
			}
		})
	}
}

// I42.
func TestAHeartbeatWithAnotherAnswerEndsTheSession(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for name, instead := range map[string]string{"nothing": row(), "half of it": row("f")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			p := oddserver.NewProxy(t, db)
			l := closing(t)(pg.New(database{db}.DSN(t, locktest.Access{Address: p.Address}), pg.WithHeartbeat(time.Millisecond)))
			lock, err := l.TryAcquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			pid := ask[string](t, db, "SELECT pid::text FROM pg_stat_activity WHERE application_name LIKE 'sqllock/%' AND datname = current_database()")
			p.Rename(row("f", pid), instead)
			<-lock.Context().Done()
			if cause := context.Cause(lock.Context()); !errors.Is(cause, sqllock.ErrLost) {
				t.Error(cause)
			}
		})
	}
}
