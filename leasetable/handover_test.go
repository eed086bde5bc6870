package leasetable_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// export exports a lock, which must succeed.
func export(t *testing.T, lease *leasetable.Lease, valid time.Duration) (ticket string) {
	t.Helper()
	ticket, err := lease.Export(t.Context(), valid)
	if err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, sqllock.ErrReleased) || !strings.Contains(cause.Error(), "handed over") {
		t.Fatalf("the lock that was handed over ended with %v", cause)
	}
	return ticket
}

// takeOn adopts a ticket, which must be valid.
func takeOn(t *testing.T, l *leasetable.Locker, ticket string, opts ...sqllock.Option) *leasetable.Lease {
	t.Helper()
	lease, err := l.Adopt(t.Context(), ticket, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func mustBeUsed(t *testing.T, l *leasetable.Locker, ticket string) {
	t.Helper()
	if _, err := l.Adopt(t.Context(), ticket); !errors.Is(err, sqllock.ErrLost) {
		t.Errorf("Adopt of a ticket that is worth nothing: %v", err)
	}
}

// I12.
func TestALockIsHandedOverWithTheNextTokenAndOnce(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		from, to, other := newLocker(t, db.DB), newLocker(t, db.DB, leasetable.WithOwner("heir")), newLocker(t, db.DB)
		lease := takeWith(t, from, "x", "half done")
		ticket := export(t, lease, time.Minute)
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("Release after Export: %v", err)
		}
		if h := mustBeHeld(t, other, "x"); h.Token != 1 || h.Metadata != "half done" {
			t.Errorf("between the two the holder is %+v", h)
		}
		mustBeHeld(t, from, "x")
		if err := from.Close(); err != nil { // the ticket survives that
			t.Fatal(err)
		}
		heir := takeOn(t, to, ticket)
		if h := mustBeHeld(t, other, "x"); heir.Token() != 2 || h.Token != 2 || h.Owner != "heir" || h.Metadata != "half done" {
			t.Errorf("the next holder has token %d, and is %+v", heir.Token(), h)
		}
		mustBeUsed(t, other, ticket)
		mustBeUsed(t, to, ticket)
		eventually(t, func() bool { return count(t, db, "SELECT count(*) FROM sqllock_lease WHERE ttl_us = 60000000") == 0 })
		mustVerify(t, heir)
		mustRenew(t, heir)
		if err := errors.Join(heir.SetMetadata(t.Context(), "x"), heir.Extend(t.Context(), time.Hour)); err != nil {
			t.Error(err)
		}
		if left := heir.Remaining(); left < time.Hour {
			t.Errorf("%v are left after Extend", left)
		}
		again := takeOn(t, other, export(t, heir, time.Minute), leasetable.WithMetadata("other"))
		mustShow(t, to, "x", "other")
		if err := again.Release(t.Context()); err != nil || again.Token() != 3 {
			t.Errorf("Release of token %d: %v", again.Token(), err)
		}
		if token := take(t, to, "x").Token(); token != 4 {
			t.Errorf("at last the token is %d", token)
		}
	})
}

func TestALockOutlivesItsProcessByATicket(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		h := startHolder(t, db)
		token := h.mustHold(t)
		h.ask(t, "export")
		_, ticket, ok := strings.Cut(h.line(t), "exported: <nil> ")
		if !ok {
			t.Fatal(ticket)
		}
		h.signal(t, syscall.SIGKILL)
		l := newLocker(t, db.DB)
		ctx, cancel := context.WithTimeout(t.Context(), holderTTL*3/2)
		defer cancel()
		if _, err := l.Acquire(ctx, "x"); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("Acquire of what was handed over: %v", err)
		}
		if next := takeOn(t, l, ticket).Token(); next != token+1 {
			t.Errorf("the next holder has token %d, after %d", next, token)
		}
	})
}

func TestALockThatWasHandedOverIsNoneThatARenewalIsFor(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		var locks atomic.Int64
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour), leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
			if e.Kind == event.Renewed {
				locks.Store(int64(e.Locks))
			}
		}))
		kept, given := take(t, l, "kept"), take(t, l, "given")
		mustRenew(t, kept)
		eventually(t, func() bool { return locks.Load() == 2 })
		export(t, given, time.Hour)
		mustRenew(t, kept)
		eventually(t, func() bool { return locks.Load() == 1 })
		release(t, kept)
	})
}

func TestATicketThatNobodyAdoptsExpires(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		began := time.Now()
		ticket := export(t, take(t, l, "x"), time.Second)
		kept := export(t, take(t, l, "kept"), time.Second)
		next := take(t, other, "x")
		if next.Token() != 2 || time.Since(began) < time.Second {
			t.Errorf("after %v the next holder has token %d", time.Since(began), next.Token())
		}
		mustBeUsed(t, l, ticket)
		mustVerify(t, next)
		if token := takeOn(t, l, kept).Token(); token != 2 { // nobody else acquired the name
			t.Errorf("a ticket that has expired gives token %d", token)
		}
		forced := export(t, take(t, l, "forced"), time.Hour)
		if was, err := other.ForceRelease(t.Context(), "forced"); err != nil || !was.Held {
			t.Error(was, err)
		}
		mustBeUsed(t, l, forced)
	})
}

// I28.
func TestOfManyWhoAdoptATicketOneHasTheLock(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		lockers := []*leasetable.Locker{newLocker(t, db.DB), newLocker(t, db.DB), newLocker(t, db.DB)}
		ticket := export(t, take(t, lockers[0], "x"), time.Minute)
		var all sync.WaitGroup
		got := make(chan *leasetable.Lease, 12)
		for i := range cap(got) {
			all.Go(func() {
				lease, err := lockers[i%len(lockers)].Adopt(t.Context(), ticket)
				switch {
				case err == nil:
					got <- lease
				case !errors.Is(err, sqllock.ErrLost):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(got) != 1 {
			t.Fatalf("%d have the lock", len(got))
		}
		mustVerify(t, <-got)
	})
}

// A goroutine of the adopting process waits for the same name, and another one waits in the queue behind it.
func TestAnAdoptionDoesNotWaitForThoseWhoWaitForTheName(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		ticket := export(t, take(t, newLocker(t, db.DB), "x"), time.Minute)
		next := make(chan *leasetable.Lease, 2)
		for n := range cap(next) {
			go func() { next <- <-acquiring(l, "x") }()
			eventually(t, func() bool { return leasetable.Waiting(l, "x") == n })
		}
		heir := takeOn(t, l, ticket)
		eventually(t, func() bool { return leasetable.Waiting(l, "x") == 1 })
		select {
		case <-next:
			t.Fatal("two hold the lock")
		default:
		}
		token := heir.Token()
		for lease := heir; ; {
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if token == 4 {
				return
			}
			if lease = mustGet(t, next); lease.Token() <= token {
				t.Errorf("token %d after %d", lease.Token(), token)
			}
			token++
		}
	})
}

// Waiters in the queue behind the holder keep waiting when it hands the lock over to another process.
func TestThoseInLineWaitForWhoWasHandedTheLock(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, to := newLocker(t, db.DB), newLocker(t, db.DB)
		lease := take(t, l, "x")
		next := line(t, l, "x", 1)
		heir := takeOn(t, to, export(t, lease, time.Minute))
		mustVerify(t, heir)
		if err := heir.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if token := mustGet(t, next).Token(); token != 3 {
			t.Errorf("who was in line has token %d", token)
		}
	})
}

// The lock ends before another process can hold it, even if the exporting process is stopped between the two steps. I1.
func TestALockEndsBeforeItIsHandedOver(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		lease := take(t, l, "late answer")
		before := leaseOf(t, db, "late answer")
		passOn := sync.OnceFunc(p.delayAnswerTo(onWire(db, []byte("late answer"))))
		t.Cleanup(passOn)
		type result struct {
			ticket string
			err    error
		}
		exported := make(chan result, 1)
		go func() {
			ticket, err := lease.Export(context.Background(), time.Second)
			exported <- result{ticket, err}
		}()
		eventually(t, func() bool { return !bytes.Equal(leaseOf(t, db, "late answer"), before) })
		if lease.Context().Err() == nil {
			t.Error("the lock was moved, and has not ended")
		}
		other := newLocker(t, db.DB)
		next := take(t, other, "late answer") // the ticket's second has passed
		passOn()
		if r := <-exported; r.err == nil {
			mustBeUsed(t, other, r.ticket)
		} else if !errors.Is(r.err, sqllock.ErrLost) {
			t.Errorf("Export: %v", r.err)
		}
		mustVerify(t, next)
	})
}

func TestATextThatIsNoTicketIsRefused(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		ticket := export(t, take(t, l, "x"), time.Minute)
		leases := leaseRows(t, db)
		encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
		for _, text := range []string{
			"", "x", "no ticket", ticket[1:], ticket[:len(ticket)-2], strings.Repeat("A", 5000),
			encode(`{}`), encode(`{"v":2,"n":"eA","l":"AAAAAAAAAAAAAAAAAAAAAA==","t":1}`),
			encode(`{"v":1,"n":"","l":"AAAAAAAAAAAAAAAAAAAAAA==","t":1}`), encode(`{"v":1,"n":"eA==","l":"AAAA","t":1}`),
		} {
			_, err := l.Adopt(t.Context(), text)
			if !errors.Is(err, leasetable.ErrTicket) || errors.Is(err, sqllock.ErrLost) || !strings.Contains(err.Error(), "not a ticket") {
				t.Errorf("Adopt(%q): %v", text, err)
			}
		}
		if n := leaseRows(t, db); n != leases {
			t.Errorf("%d leases were opened", n-leases)
		}
		long := export(t, take(t, l, strings.Repeat("\xff", 1024)), time.Minute)
		if len(long) > 4096 || strings.Trim(long, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Errorf("a ticket of %d bytes: %s", len(long), long)
		}
		takeOn(t, l, long)
		takeOn(t, l, ticket)
	})
}
