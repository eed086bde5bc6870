package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/sqltest"
)

// I20.
func TestAForcedReleaseIsToldAtTheNextRenewal(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		holder := newLocker(t, db.DB, leasetable.WithTTL(time.Hour), leasetable.WithOwner("it"))
		admin := newLocker(t, db.DB)
		lease, other := take(t, holder, "x"), take(t, holder, "y")
		was, err := admin.ForceRelease(t.Context(), "x")
		if err != nil || !was.Held || was.Name != "x" || was.Token != lease.Token() || was.Holder.Owner != "it" || was.Holder.Token != lease.Token() {
			t.Fatalf("ForceRelease = %+v, %v", was, err)
		}
		next := take(t, admin, "x")
		if next.Token() <= lease.Token()+1 {
			t.Errorf("token %d after %d, and a forced release", next.Token(), lease.Token())
		}
		mustRenew(t, other)
		if cause := await(t, lease); !errors.Is(cause, sqllock.ErrLost) {
			t.Errorf("the holder was told %v", cause)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release of the holder: %v", err)
		}
		if err := errors.Join(other.Context().Err(), other.Release(t.Context()), next.Release(t.Context())); err != nil {
			t.Errorf("the other locks: %v", err)
		}
		if was, err := admin.ForceRelease(t.Context(), "x"); err != nil || was.Held || was.Expired || was.Holder != (sqllock.Holder{}) {
			t.Errorf("ForceRelease of a free name = %+v, %v", was, err)
		}
		kept := take(t, admin, "z")
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if was, err := holder.ForceRelease(dead, "z"); was.Held || !errors.Is(err, context.Canceled) {
			t.Errorf("ForceRelease with a dead context: %+v, %v", was, err)
		}
		mustVerify(t, kept)
		if _, err := admin.ForceRelease(t.Context(), ""); !errors.Is(err, sqllock.ErrName) {
			t.Errorf("ForceRelease of no name: %v", err)
		}
	})
}

// An asynchronous failover can lose an acquisition and keep the lease row. The holder finds out when it has renewed on
// a new connection. I20.
func TestALockThatTheDatabaseForgotIsLost(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		kept, forgotten := take(t, l, "kept"), take(t, l, "forgotten")
		run(t, db, "UPDATE sqllock_lock SET lease_id = NULL, token = token - 1 WHERE name = ?", []byte("forgotten"))
		endConnections(t, db)
		mustRenew(t, kept) // on a new connection
		if cause := await(t, forgotten); !errors.Is(cause, sqllock.ErrLost) {
			t.Errorf("the holder was told %v", cause)
		}
		if err := errors.Join(kept.Context().Err(), kept.Release(t.Context())); err != nil {
			t.Errorf("the other lock: %v", err)
		}
	})
}

// The renewal that reports a forced release can arrive before the response to the acquisition. I20.
func TestALockThatWasFreedByForceBeforeItsAnswerCameIsNotGiven(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		admin := newLocker(t, db.DB)
		kept := take(t, l, "kept")
		release(t, take(t, l, "late"))
		passOn := p.delayAnswerTo(onWire(db, []byte("late")))
		taken := make(chan *leasetable.Lease, 1)
		go func() {
			lock, err := l.TryAcquire(context.Background(), "late")
			if err != nil {
				t.Error(err)
			}
			taken <- lock
		}()
		eventually(t, func() bool { return count(t, db, "SELECT count(*) FROM sqllock_lock WHERE lease_id IS NOT NULL") == 2 })
		was, err := admin.ForceRelease(t.Context(), "late")
		if err != nil || !was.Held {
			t.Fatal(was, err)
		}
		mustRenew(t, kept)
		mustRenew(t, kept)
		passOn()
		if lock := <-taken; lock != nil && lock.Token() <= was.Token+1 {
			t.Errorf("the lock has token %d; the forced release raised it to %d", lock.Token(), was.Token+1)
		}
	})
}

// A forced release does not take a name that has changed hands since it was read.
func TestAForcedReleaseTakesANameFromTheHolderThatWasSeen(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, admin := newLocker(t, db.DB), newLocker(t, db.DB)
		lease := take(t, l, "x")
		id := leaseOf(t, db, "x")
		for _, seen := range []struct {
			lease []byte
			token int64
		}{{id, lease.Token() + 1}, {[]byte("another lease"), lease.Token()}} {
			if forced, err := leasetable.Force(t.Context(), admin, "x", seen.lease, seen.token); forced || err != nil {
				t.Errorf("seen with %q and token %d: %t, %v", seen.lease, seen.token, forced, err)
			}
		}
		if forced, err := leasetable.Force(t.Context(), admin, "x", id, lease.Token()); !forced || err != nil {
			t.Errorf("as it is: %t, %v", forced, err)
		}
	})
}

func TestAForcedReleaseOfATokenLeavesLaterHoldersAlone(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, admin := newLocker(t, db.DB), newLocker(t, db.DB)
		for name, opts := range map[string][]sqllock.Option{"alone": nil, "together": {leasetable.WithShared()}} {
			lock := take(t, l, name, opts...)
			seen := tokenOf(t, admin, name)
			locktest.MustRelease(t, lock)
			later := take(t, l, name, opts...)
			var held *sqllock.HeldError
			for _, token := range []int64{0, seen} {
				_, err := admin.ForceRelease(t.Context(), name, leasetable.IfToken(token))
				if !errors.As(err, &held) || held.Holder.Token != later.Token() ||
					!strings.Contains(err.Error(), fmt.Sprintf(": the token is not %d any more: lock is held by ", token)) {
					t.Errorf("%s, with the outdated token %d: %v", name, token, err)
				}
			}
			if err := later.Verify(t.Context()); err != nil {
				t.Error(name, err)
			}
			now := tokenOf(t, admin, name)
			if was, err := admin.ForceRelease(t.Context(), name, leasetable.IfToken(now)); err != nil || !was.Held {
				t.Errorf("%s, with its token: %+v, %v", name, was, err)
			}
			if was, err := admin.ForceRelease(t.Context(), name, leasetable.IfToken(now)); err != nil || was.Held {
				t.Errorf("%s, which is free: %+v, %v", name, was, err)
			}
		}
		older := take(t, l, "two", leasetable.WithShared())
		locktest.MustRelease(t, take(t, newLocker(t, db.DB), "two", leasetable.WithShared()))
		if was, err := admin.ForceRelease(t.Context(), "two", leasetable.IfToken(older.Token())); err != nil || len(was.Holders) != 1 {
			t.Errorf("with the token of who is left: %+v, %v", was, err)
		}
	})
}

// tokenOf returns the token that the table has for a name.
func tokenOf(t *testing.T, l *leasetable.Locker, name string) int64 {
	t.Helper()
	info, err := l.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Token
}

// A renewal that reports a forced release triggers a check of every lock, and so does the next renewal.
func TestEveryForcedReleaseIsToldByOneRenewal(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		admin := newLocker(t, db.DB)
		kept := take(t, l, "kept")
		for range 2 {
			var lost []*leasetable.Lease
			for i := range 10 {
				lost = append(lost, take(t, l, fmt.Sprint(i)))
			}
			for _, lease := range lost {
				if _, err := admin.ForceRelease(t.Context(), lease.Name()); err != nil {
					t.Fatal(err)
				}
			}
			mustRenew(t, kept)
			for _, lease := range lost {
				if cause := await(t, lease); !errors.Is(cause, sqllock.ErrLost) {
					t.Errorf("the lock ended with %v", cause)
				}
				if err := lease.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
					t.Errorf("Release: %v", err)
				}
			}
		}
		if err := errors.Join(kept.Context().Err(), kept.Release(t.Context())); err != nil {
			t.Errorf("the lock that is nobody else's: %v", err)
		}
	})
}

func TestALookAtALockThatFailsIsRepeatedWithTheNextRenewal(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		kept, lost := take(t, l, "kept"), take(t, l, "unanswered")
		if _, err := newLocker(t, db.DB).ForceRelease(t.Context(), "unanswered"); err != nil {
			t.Fatal(err)
		}
		p.loseAnswerTo(fmt.Sprintf("%x", "unanswered")) // names are sent in hex
		mustRenew(t, kept)
		eventually(t, func() bool { return p.answersLost() == 1 })
		eventually(t, func() bool { return kept.Renew(t.Context()) == nil && lost.Context().Err() != nil })
		if cause := context.Cause(lost.Context()); !errors.Is(cause, sqllock.ErrLost) {
			t.Errorf("the lock ended with %v", cause)
		}
	})
}

// processes is the table of sessions on MySQL and MariaDB. MySQL's information_schema.PROCESSLIST fails while the
// statement of any session has a parameter that is not UTF-8, such as the id of a lease.
const processes = "/*!80022 performance_schema.processlist */ /*M! information_schema.PROCESSLIST */"

// endConnections ends every other connection to the database.
func endConnections(t *testing.T, db *sqltest.Database) {
	t.Helper()
	if db.Engine == sqltest.EnginePostgres {
		count(t, db, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		return
	}
	kill(t, db, "TRUE")
}

// kill makes MySQL or MariaDB end the other connections to the database that match a condition.
func kill(t *testing.T, db *sqltest.Database, where string) {
	t.Helper()
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var ids []int64
	if err := conn.SelectContext(t.Context(), &ids,
		"SELECT ID FROM "+processes+" WHERE DB = DATABASE() AND ID <> CONNECTION_ID() AND "+where); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		_, _ = conn.ExecContext(t.Context(), fmt.Sprint("KILL ", id)) // it may have ended by itself
	}
}

func TestListShowsEveryNameWithAPrefix(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithOwner("it"), leasetable.WithTTL(time.Hour))
		if err := takeAll(t, l, "a/", 1001).Release(t.Context()); err != nil { // more than one page
			t.Fatal(err)
		}
		const names = 1004
		for _, name := range []string{"a/", "a/z", "a/\xff\xff", "a0"} {
			take(t, l, name)
		}
		expireLease(t, db, "none") // deletes nothing
		infos, err := l.List(t.Context(), "a/")
		if err != nil || len(infos) != names {
			t.Fatalf("%d names, %v; want %d", len(infos), err, names)
		}
		for i, info := range infos {
			held := i == 0 || i >= names-2
			if info.Held != held || (info.Holder.Owner == "it") != held || info.Token != 1 || !strings.HasPrefix(info.Name, "a/") {
				t.Errorf("name %d is %+v", i, info)
			}
		}
		if infos, err := l.List(t.Context(), "b"); err != nil || len(infos) != 0 {
			t.Errorf("names of another prefix: %v, %v", infos, err)
		}
		run(t, db, "UPDATE sqllock_lease SET expires_at = "+longAgo[db.Engine])
		if infos, err := l.List(t.Context(), "a0"); err != nil || len(infos) != 1 || infos[0].Held || infos[0].Holder.Owner != "it" {
			t.Errorf("a name whose lease has expired: %+v, %v", infos, err)
		}
	})
}

// An operator who keeps everybody from a name may write this by hand.
func TestANameThatIsKeptForEverIsShown(t *testing.T) {
	t.Parallel()
	db := tables.Postgres(t)
	l := newLocker(t, db.DB)
	if err := take(t, l, "a").Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, db, "UPDATE sqllock_lock SET hold_until = 'infinity'")
	infos, err := l.List(t.Context(), "")
	if err != nil || len(infos) != 1 || !infos[0].Held || time.Until(infos[0].Holder.Until) < 100*365*24*time.Hour {
		t.Errorf("List = %+v, %v", infos, err)
	}
	if _, err := l.TryAcquire(t.Context(), "a"); !errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("TryAcquire: %v", err)
	}
	if was, err := l.ForceRelease(t.Context(), "a"); err != nil || !was.Held {
		t.Errorf("ForceRelease = %+v, %v", was, err)
	}
	take(t, l, "a")
}

func TestListShowsWhoseStateOrOwnerIsAskedFor(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		it := newLocker(t, db.DB, leasetable.WithOwner("it"), leasetable.WithTTL(time.Hour))
		other := newLocker(t, db.DB, leasetable.WithOwner("other"), leasetable.WithTTL(time.Hour))
		dead := newLocker(t, db.DB, leasetable.WithOwner("it"), leasetable.WithTTL(2*time.Hour))
		lost := newLocker(t, db.DB, leasetable.WithTTL(3*time.Hour))
		if err := takeAll(t, it, "free", 1001).Release(t.Context()); err != nil { // more than one page
			t.Fatal(err)
		}
		take(t, it, "held by it")
		take(t, other, "held by other")
		take(t, dead, "of the dead")
		take(t, lost, "of the lost")
		expireLease(t, db, "of the lost")
		run(t, db, "UPDATE sqllock_lease SET expires_at = "+longAgo[db.Engine]+" WHERE ttl_us = 7200000000")
		lock := locktest.MustTry(t, it, "kept", leasetable.WithHoldAtLeast(time.Hour))
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			prefix string
			only   []leasetable.ListOption
			want   string
		}{
			{"", []leasetable.ListOption{leasetable.OnlyHeld()}, "held by it, held by other, kept"},
			{"", []leasetable.ListOption{leasetable.OnlyExpired()}, "of the dead"},
			{"", []leasetable.ListOption{leasetable.Only(func(i leasetable.Info) bool { return i.Expired || i.Name == "kept" })}, "kept, of the dead"},
			{"", []leasetable.ListOption{leasetable.OnlyOwner("it")}, "held by it, of the dead"},
			{"", []leasetable.ListOption{leasetable.OnlyOwner("it"), leasetable.OnlyHeld()}, "held by it"},
			{"", []leasetable.ListOption{leasetable.OnlyOwner("")}, "kept"},
			{"", []leasetable.ListOption{leasetable.OnlyOwner("nobody")}, ""},
			{"held", nil, "held by it, held by other"},
			{"of", []leasetable.ListOption{leasetable.OnlyHeld()}, ""},
		} {
			infos, err := it.List(t.Context(), test.prefix, test.only...)
			if err != nil {
				t.Fatal(err)
			}
			names := make([]string, len(infos))
			for i, info := range infos {
				names[i] = info.Name
				if info.Held == info.Expired {
					t.Errorf("%+v is held, or it has expired", info)
				}
			}
			if got := strings.Join(names, ", "); got != test.want {
				t.Errorf("%q: %s; want %s", test.prefix, got, test.want)
			}
		}
		if infos, err := it.List(t.Context(), "free 1"); err != nil || len(infos) != 112 || infos[0].Held || infos[0].Expired {
			t.Errorf("free names: %d, %v", len(infos), err)
		}
	})
}

var longAgo = map[sqltest.Engine]string{
	sqltest.EnginePostgres: "now() - interval '1 day'", sqltest.EngineSQLite: "CAST(unixepoch('subsec') * 1000000 AS INTEGER) - 86400000000",
	sqltest.EngineMySQL: "UTC_TIMESTAMP() - INTERVAL 1 DAY", sqltest.EngineMariaDB: "UTC_TIMESTAMP() - INTERVAL 1 DAY",
}

// I12.
func TestPurgeDeletesLeasesThatAreLongDead(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		dead := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		first := take(t, dead, "x")
		run(t, db, "UPDATE sqllock_lease SET expires_at = "+longAgo[db.Engine])
		l := newLocker(t, db.DB)
		live := take(t, l, "y")
		if n, err := l.Purge(t.Context(), 48*time.Hour); n != 0 || err != nil {
			t.Errorf("Purge of what has been dead for two days: %d, %v", n, err)
		}
		if n, err := l.Purge(t.Context(), time.Hour); n != 1 || err != nil {
			t.Errorf("Purge = %d, %v", n, err)
		}
		if n := leaseRows(t, db); n != 1 {
			t.Errorf("%d leases are left", n)
		}
		if token := take(t, l, "x").Token(); token <= first.Token() {
			t.Errorf("token %d after %d", token, first.Token())
		}
		mustVerify(t, live)
	})
}

// Two purges list the same leases, and one of them comes later to each.
func TestAPurgeGoesOnThoughAnotherDeletesWhatItHasFound(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		for i := range 1200 {
			if _, err := s.OpenLease(t.Context(), store.LeaseRow{ID: fmt.Appendf(nil, "%016d", i), TTL: time.Minute}, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		server.SetClock(time.Hour)
		ended := 0
		s.end = func(ctx context.Context, id []byte) (bool, error) {
			ended++
			expired, err := s.Store.Expire(ctx, id)
			return expired && ended > 600, err // before that another purge was faster
		}
		n, err := keep(t, s).Purge(t.Context(), 0)
		if rows, _ := server.Leases(); rows > 0 || n != 600 || err != nil {
			t.Errorf("%d, %v, and %d leases are left", n, err, rows)
		}
	})
}

// The names of a holder that closes its Locker refer to a deleted lease. So do those of a dead holder after a purge.
func TestNamesWhoseLeaseIsGoneAreFree(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		admin := newLocker(t, db.DB)
		is := func(name string, held, expired bool) {
			t.Helper()
			info, err := admin.Inspect(t.Context(), name)
			if err != nil || info.Held != held || info.Expired != expired || (info.Holder != sqllock.Holder{}) != (held || expired) || info.Taken.IsZero() {
				t.Errorf("Inspect of %s = %+v, %v; want it held %t and expired %t", name, info, err, held, expired)
			}
			infos, err := admin.List(t.Context(), name, leasetable.OnlyExpired())
			if err != nil || (len(infos) == 1) != expired {
				t.Errorf("expired names: %+v, %v; want it there: %t", infos, err, expired)
			}
		}
		closed, dead := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB, leasetable.WithTTL(2*time.Hour))
		take(t, closed, "of the closed")
		take(t, dead, "of the dead")
		is("of the closed", true, false)
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
		is("of the closed", false, false)

		run(t, db, "UPDATE sqllock_lease SET expires_at = "+longAgo[db.Engine]+" WHERE ttl_us = 7200000000")
		is("of the dead", false, true)
		if n, err := admin.Purge(t.Context(), time.Hour); n != 1 || err != nil {
			t.Errorf("Purge = %d, %v", n, err)
		}
		is("of the dead", false, false)

		lease := take(t, admin, "forced")
		if _, err := admin.ForceRelease(t.Context(), "forced"); err != nil {
			t.Fatal(err)
		}
		is("forced", false, false)
		if info, err := admin.Inspect(t.Context(), "forced"); err != nil || info.Token != lease.Token()+1 {
			t.Errorf("a name that was released by force: %+v, %v", info, err)
		}
	})
}

func TestInfoSaysOfOneNameWhatListSaysOfAll(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		for range 2 {
			take(t, l, "shared", leasetable.WithShared())
		}
		take(t, l, "limited", leasetable.WithLimit(3))
		before := take(t, l, "alone", leasetable.WithShared())
		if err := before.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		take(t, l, "alone", leasetable.WithMetadata("noted"))
		kept := take(t, l, "kept", leasetable.WithHoldAtLeast(time.Hour))
		free := take(t, l, "free")
		if err := errors.Join(kept.Release(t.Context()), free.Release(t.Context())); err != nil {
			t.Fatal(err)
		}
		run(t, db, "UPDATE sqllock_lock SET waiter_since = 1, waiter_until = (SELECT max(expires_at) FROM sqllock_lease)")
		all, err := l.List(t.Context(), "")
		if err != nil || len(all) != 5 {
			t.Fatalf("List = %+v, %v", all, err)
		}
		for _, want := range all {
			if got, err := l.Inspect(t.Context(), want.Name); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("Inspect of %s = %+v, %v; List has %+v", want.Name, got, err, want)
			}
		}
		if got, err := l.Inspect(t.Context(), "limite"); err != nil || !reflect.DeepEqual(got, leasetable.Info{Name: "limite"}) {
			t.Errorf("Info of a name that was never taken = %+v, %v", got, err)
		}
		if _, err := l.Inspect(t.Context(), ""); !errors.Is(err, sqllock.ErrName) {
			t.Errorf("Info of no name: %v", err)
		}
	})
}
