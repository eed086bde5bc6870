package leasetable_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// These tests compare how long a holder trusts its lease with how long the lease lasts in the database. At every moment
// the lease must last a sixth of its TTL longer. With a TTL of an hour nothing ends meanwhile, and the speed of the
// machine does not matter.

const marginTTL = time.Hour

// lateness is the delay of a response. It is longer than a sample may take, and shorter than the timeout of a
// statement.
const lateness = 1500 * time.Millisecond

// steering is more than the difference that can arise between a clock that is being adjusted and a monotonic clock.
const steering = 100 * time.Millisecond

var leftSQL = map[sqltest.Engine]string{
	sqltest.EnginePostgres: "(extract(epoch FROM l.expires_at - clock_timestamp()) * 1000000)::bigint",
	sqltest.EngineMySQL:    "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at)",
	sqltest.EngineMariaDB:  "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at)",
	sqltest.EngineSQLite:   "l.expires_at - CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
}

// mustKeepTheMargin compares the remaining time of a lock for its holder with that of its lease in the database.
func mustKeepTheMargin(t *testing.T, db *sqltest.Database, lock *leasetable.Lease) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	query := db.Rebind("SELECT " + leftSQL[db.Engine] + " FROM sqllock_lock k JOIN sqllock_lease l ON l.id = k.lease_id WHERE k.name = ?")
	for {
		began := time.Now()
		sure := lock.Remaining()
		var us int64
		if err := db.GetContext(ctx, &us, query, []byte(lock.Name())); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		left := time.Duration(us) * time.Microsecond
		if more := left - sure + took; more < marginTTL/6-steering {
			t.Fatalf("the lease lasts %v longer than its holder trusts it; want %v", more, marginTTL/6)
		}
		if took < lateness-steering-300*time.Millisecond { // a slower sample could miss a late response that was counted
			return
		}
	}
}

// belated opens a Locker with the TTL of this file. The returned function late delays the response to a statement while
// it runs f: the statement with this argument, or on SQLite the one with this word.
func belated(t *testing.T, db *sqltest.Database, opts ...leasetable.Option) (l *leasetable.Locker, late func(argument []byte, word string, f func() error) error) {
	t.Helper()
	opts = append(opts, leasetable.WithTTL(marginTTL))
	if db.Engine == sqltest.EngineSQLite {
		plain, err := connector.Of(db.DB.DB)
		if err != nil {
			t.Fatal(err)
		}
		s := newLags(plain)
		slow := sqlx.NewDb(sql.OpenDB(s), "sqlite")
		t.Cleanup(func() { _ = slow.Close() }) // the test is over, so an error does not matter
		return newLocker(t, slow, opts...), func(_ []byte, word string, f func() error) error {
			s.delay(word, lag{answer: lateness}, lag{})
			return f()
		}
	}
	p, l := newLockerThrough(t, db, opts...)
	return l, func(argument []byte, _ string, f func() error) error {
		shown := string(argument)
		if !strings.HasPrefix(shown, marginOwner) {
			shown = onWire(db, argument)
		}
		passOn := p.delayAnswerTo(shown)
		done := make(chan error, 1)
		go func() { done <- f() }()
		select {
		case <-p.armed.Asked():
			pass(lateness)
		case err := <-done: // the statement was not sent
			passOn()
			if err == nil {
				err = errors.New("the statement whose answer was to be late was not seen")
			}
			return err
		}
		passOn()
		return <-done
	}
}

const marginOwner = "the late one"

// untilAnswered repeats f, which may time out on a slow machine.
func untilAnswered(t *testing.T, f func() error) {
	t.Helper()
	eventually(t, func() bool {
		err := f()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !sqllock.IsRetryable(err) {
			t.Fatal(err)
		}
		return err == nil
	})
}

func TestALeaseOutlastsTheTrustInItsFirstAnswer(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		var lock *leasetable.Lease
		untilAnswered(t, func() error {
			l, late := belated(t, db, leasetable.WithOwner(marginOwner)) // it has no lease yet
			return late([]byte(marginOwner), granting, func() error {
				got, err := l.TryAcquire(t.Context(), "x")
				if err == nil {
					lock = got
				}
				return err
			})
		})
		mustKeepTheMargin(t, db, lock)
	})
}

// I3.
func TestALeaseOutlastsTheTrustInTheAnswerToARenewal(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, late := belated(t, db)
		lock := take(t, l, "x")
		mustRenew(t, lock) // makes drivers prepare the statement
		var id []byte
		if err := db.Get(&id, "SELECT lease_id FROM sqllock_lock"); err != nil {
			t.Fatal(err)
		}
		untilAnswered(t, func() error {
			return late(id, renewing, func() error { return lock.Renew(t.Context()) })
		})
		mustKeepTheMargin(t, db, lock)
	})
}
