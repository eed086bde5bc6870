package leasetable_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// beIdle waits until drivers check a connection before its next use, which they do after a second.
func beIdle() { <-time.After(1500 * time.Millisecond) }

func TestAPauseCostsNoRoundTrip(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		use := func() (requests int) {
			before := p.Requests()
			release(t, take(t, l, "x"))
			return p.Requests() - before
		}
		const afterIdle = 2500 * time.Millisecond
		costs := func(f func() int, pause func(), within time.Duration) int {
			for {
				for range 3 { // then all statements are prepared
					f()
				}
				began := time.Now()
				pause()
				if n := f(); time.Since(began) < within { // after a second a statement may be sent again
					return n
				}
			}
		}
		at := costs(use, func() {}, time.Second)
		if after := costs(use, beIdle, afterIdle); at != 2 || after != at {
			t.Errorf("to take and free a name takes %d round trips, and %d after a pause", at, after)
		}
		lease := take(t, l, "y")
		renew := func() (requests int) {
			before := p.Requests()
			mustRenew(t, lease)
			return p.Requests() - before
		}
		if n := costs(renew, beIdle, afterIdle); n != 1 {
			t.Errorf("a renewal after a pause takes %d round trips", n)
		}
	})
}

// Otherwise each renewal of a lease with a long TTL would come on another connection, as after a failover.
func TestALeaseIsRenewedOnOneConnectionWhereIdleOnesEnd(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		setting := "wait_timeout=1"
		if db.Engine == sqltest.EnginePostgres {
			locktest.NeedSessionTimeout(t, db.DB.DB)
			setting = "idle_session_timeout=1s"
		}
		l := newLocker(t, open(t, db.DriverName(), with(db, setting)), leasetable.WithTTL(time.Hour))
		first := take(t, l, "a")
		<-time.After(3 * time.Second) // the server ends other connections meanwhile
		if err := insist(t.Context(), func() error { return first.Renew(t.Context()) }); err != nil {
			t.Fatal(err)
		}
		second := take(t, l, "b")
		if !bytes.Equal(leaseOf(t, db, "a"), leaseOf(t, db, "b")) {
			t.Error("the lease takes no more names, as if the database had failed over")
		}
		release(t, first, second)
	})
}

func TestAConnectionThatEndedInAPauseIsReplaced(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for how, end := range map[string]func(*testing.T, *proxy, *sqltest.Database){
		"the network ended it": func(_ *testing.T, p *proxy, db *sqltest.Database) { p.switchTo(addressOf(db)) },
		"the server ended it":  func(t *testing.T, _ *proxy, db *sqltest.Database) { endConnections(t, db) },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, db *sqltest.Database) {
				p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
				for range 3 {
					release(t, take(t, l, "x"))
				}
				end(t, p, db)
				beIdle()
				lock, err := l.TryAcquire(t.Context(), "x")
				if err != nil {
					t.Fatal(err)
				}
				if token := lock.Token(); token != 4 {
					t.Errorf("the fourth holder has the token %d", token)
				}
			})
		})
	}
}

// A statement that was certainly not sent cannot have run.
func TestAStatementThatCouldNotBeSentIsSentOnAnotherConnection(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.Postgres(t))
	l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
	release(t, take(t, l, "x"))
	takeBoth := func(names ...string) {
		t.Helper()
		if took, err := leasetable.TakeMany(t.Context(), l, names); err != nil || len(took) != len(names) {
			t.Errorf("took %v, %v", took, err)
		}
	}
	takeBoth("a", "b")
	breakOff := func() {
		t.Helper()
		if err := leasetable.BreakOff(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	breakOff()
	lock, err := l.TryAcquire(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if token := lock.Token(); token != 2 {
		t.Errorf("the second holder has the token %d", token)
	}
	takeBoth("c", "d") // then the statement is prepared on the other connection, too
	breakOff()
	takeBoth("e", "f")
}
