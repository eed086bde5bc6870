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

// What a holder takes for sure, compared with what the database says of the lease: at every moment the lease lasts a sixth
// of its TTL longer. With a TTL of an hour nothing ends meanwhile, and how fast the machine is does not matter.

const marginTTL = time.Hour

// lateness is by how much an answer is late. It is more than what a sample may take, and less than what a statement may.
const lateness = 1500 * time.Millisecond

// steering is what a clock that is being set right may differ from a monotonic one meanwhile, and more.
const steering = 100 * time.Millisecond

var leftSQL = map[sqltest.Engine]string{
	sqltest.EnginePostgres: "(extract(epoch FROM l.expires_at - clock_timestamp()) * 1000000)::bigint",
	sqltest.EngineMySQL:    "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at)",
	sqltest.EngineMariaDB:  "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at)",
	sqltest.EngineSQLite:   "l.expires_at - CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
}

// mustKeepTheMargin compares what is left of a lock for its holder with what is left of its lease in the database.
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
		if took < lateness-steering-300*time.Millisecond { // otherwise an answer that counted could have been missed
			return
		}
	}
}

// belated opens a Locker whose TTL is that of this file, and returns what has the answer to a statement come late, that with
// an argument, or on SQLite a word, while it runs f.
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
		t.Cleanup(func() { _ = slow.Close() }) // whatever it says, the test is over
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
		eventually(t, func() bool { return !p.isArmed() })
		pass(lateness)
		passOn()
		return <-done
	}
}

const marginOwner = "the late one"

// untilAnswered repeats what may take too long where a machine is slow.
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
			l, late := belated(t, db, leasetable.WithOwner(marginOwner)) // which has no lease yet
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

func TestALeaseOutlastsTheTrustInTheAnswerToARenewal(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, late := belated(t, db)
		lock := take(t, l, "x")
		if err := lock.Renew(t.Context()); err != nil { // drivers prepare the statement
			t.Fatal(err)
		}
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
