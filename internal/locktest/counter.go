package locktest

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqllock/sqllock"
)

// Counter makes several Lockers increment a number that only the lock guards: separate statements read and write it.
// First it shows that updates are lost without the lock.
func Counter(t *testing.T, db *sql.DB, newLocker func(t *testing.T) Locker) {
	t.Helper()
	const lockers, rounds = 8, 30
	c := counter{db}
	c.exec(t, "CREATE TABLE counter (n INT NOT NULL)")
	c.exec(t, "INSERT INTO counter (n) VALUES (0)")

	ctx, stop := context.WithCancel(bounded(t)) // until one of them fails
	defer stop()
	var read atomic.Int32
	inParallel(t, 2, func(context.Context, int) error {
		err := c.increment(ctx, func() {
			read.Add(1)
			Poll(ctx, func() bool { return read.Load() == 2 })
		})
		if err != nil {
			stop()
		}
		return err
	})
	if n := c.value(t); n != 1 {
		t.Fatalf("two increments without a lock made %d; the test proves nothing", n)
	}
	c.exec(t, "UPDATE counter SET n = 0")

	s := suite{newLocker: newLocker}
	all := make([]Locker, lockers)
	for i := range all {
		all[i] = s.locker(t)
	}
	var done sync.WaitGroup
	for _, l := range all {
		done.Go(func() {
			for range rounds {
				err := sqllock.Do(t.Context(), l, t.Name(), func(ctx context.Context) error {
					return c.increment(ctx, func() {})
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	if n := c.value(t); n != lockers*rounds {
		t.Errorf("%d Lockers with %d increments each made %d", lockers, rounds, n)
	}
}

type counter struct{ db *sql.DB }

func (c counter) increment(ctx context.Context, between func()) error {
	var n int
	if err := c.db.QueryRowContext(ctx, "SELECT n FROM counter").Scan(&n); err != nil {
		return err
	}
	between()
	_, err := c.db.ExecContext(ctx, fmt.Sprintf("UPDATE counter SET n = %d", n+1)) // placeholders differ between drivers
	return err
}

func (c counter) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := c.db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func (c counter) value(t *testing.T) (n int) {
	t.Helper()
	if err := c.db.QueryRowContext(t.Context(), "SELECT n FROM counter").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
