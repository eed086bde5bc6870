package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/otellock"
	"github.com/sqllock/sqllock/sqltest"
)

type counts = map[string]float64

func TestLocksWaitsAndOutcomesAreCounted(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		c := collect(t)
		l, other := recorded(t, p, c.Hook), p.Locker(t)
		kind := "kind=" + kind(p)

		lock := acquire(t, l, "x")
		c.mustBe(t, "sqllock.locks", counts{kind: 1})
		if left := c.points(t, "sqllock.remaining")[kind]; left.value <= 0 || left.value > 15 || left.unit != "s" {
			t.Errorf("a lock with the default TTL lasts for %v", left)
		}
		if _, err := l.TryAcquire(t.Context(), "x"); !errors.Is(err, sqllock.ErrHeld) {
			t.Fatal(err)
		}
		release(t, lock)
		c.mustBe(t, "sqllock.locks", counts{})
		c.mustBe(t, "sqllock.remaining", counts{})
		c.mustBe(t, "sqllock.hold.duration", counts{"end=released " + kind: 1})

		theirs := acquire(t, other, "x")
		got := make(chan error)
		go func() {
			lock, err := l.Acquire(t.Context(), "x")
			if err == nil {
				err = lock.Release(t.Context())
			}
			got <- err
		}()
		c.mustBe(t, "sqllock.waiters", counts{kind: 1})
		release(t, theirs)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		c.mustBe(t, "sqllock.waiters", counts{})

		theirs = acquire(t, other, "x")
		if _, err := l.Acquire(t.Context(), "x", sqllock.WithWait(time.Millisecond)); !errors.Is(err, sqllock.ErrHeld) {
			t.Fatal(err)
		}
		waiting, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := l.Acquire(waiting, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		release(t, theirs)
		if _, err := l.TryAcquire(t.Context(), ""); !errors.Is(err, sqllock.ErrName) {
			t.Fatal(err)
		}
		acquired := c.points(t, "sqllock.acquire.duration")
		held := acquired["error.type=held "+kind+" outcome=held"].value
		timeouts := acquired["error.type=held "+kind+" outcome=timeout"].value // if the wait began within the millisecond
		if held+timeouts != 2 || acquired["error.type=timeout "+kind+" outcome=timeout"].value != 1 ||
			acquired[kind+" outcome=acquired"].value != 2 || acquired["error.type=name "+kind+" outcome=error"].value != 1 {
			t.Errorf("acquisitions: %v", acquired)
		}
		waits := c.points(t, "sqllock.wait.duration")
		if waited := waits[kind+" outcome=acquired"]; waited.value != 1 || waited.sum <= 0 || waited.unit != "s" {
			t.Errorf("waits: %v", waits)
		}
		c.mustBe(t, "sqllock.waiters", counts{})
		c.mustBe(t, "sqllock.lost", counts{})
	})
}

func TestALossIsCounted(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		c := collect(t)
		l := p.Leases(t, leasetable.WithHook(c.Hook), leasetable.WithTTL(10*time.Second))
		lock, err := l.Acquire(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if series := c.points(t, "sqllock.lost"); len(series) != 2 { // both are 0: so Prometheus sees them rise
			t.Errorf("before a loss: %v", series)
		}
		if _, err := p.Leases(t).ForceRelease(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		if err := lock.Renew(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			<-lock.Context().Done()
		}
		c.mustBe(t, "sqllock.lost", counts{"error.type=lost kind=lease": 1})
		c.mustBe(t, "sqllock.hold.duration", counts{"end=lost kind=lease": 1})
		c.mustBe(t, "sqllock.locks", counts{})
		if renewals := c.points(t, "sqllock.renew.duration"); renewals["kind=lease outcome=renewed"].value == 0 {
			t.Errorf("renewals: %v", renewals)
		}
	})
}

// A transaction that nobody ends keeps a SQLite file from being written.
func TestRenewalsThatFailAndAnExpiryAreCounted(t *testing.T) {
	t.Parallel()
	c := collect(t)
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	l := p.Leases(t, leasetable.WithHook(c.Hook), leasetable.WithTTL(15*time.Second))
	lock, err := l.Acquire(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	blocker, err := p.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Close()
	if _, err := blocker.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	<-lock.Context().Done()
	c.mustBe(t, "sqllock.lost", counts{"error.type=expired kind=lease": 1})
	c.mustBe(t, "sqllock.hold.duration", counts{"end=expired kind=lease": 1})
	until(t, func() string { return fmt.Sprintf("renewals: %v", c.points(t, "sqllock.renew.duration")) }, func() bool {
		failed := 0.0
		for attrs, p := range c.points(t, "sqllock.renew.duration") {
			if strings.Contains(attrs, "outcome=error") {
				failed += p.value
			}
		}
		return failed > 0
	})
	if _, err := blocker.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}

func TestALockerThatIsClosedHoldsNothing(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		c := collect(t)
		l, closer := open(t, p, c.Hook)
		acquire(t, l, "x")
		c.mustBe(t, "sqllock.locks", counts{"kind=" + kind(p): 1})
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
		c.mustBe(t, "sqllock.locks", counts{})
		c.mustBe(t, "sqllock.remaining", counts{})
		c.mustBe(t, "sqllock.hold.duration", counts{"end=closed kind=" + kind(p): 1})
	})
}

func TestTheLeastTimeOfAllLockersRemains(t *testing.T) {
	t.Parallel()
	c := collect(t)
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	between := func(least, most time.Duration) {
		t.Helper()
		if left := c.points(t, "sqllock.remaining")["kind=lease"].value; left <= least.Seconds() || left > most.Seconds() {
			t.Errorf("remaining is %v; want %v to %v", left, least, most)
		}
	}
	long := sqllock.AnyKind(p.Leases(t, leasetable.WithHook(c.Hook), leasetable.WithTTL(24*time.Hour)))
	short := sqllock.AnyKind(p.Leases(t, leasetable.WithHook(c.Hook), leasetable.WithTTL(time.Hour)))
	acquire(t, long, "long")
	between(time.Hour, 24*time.Hour)
	for range 2 { // a Locker that holds nothing is forgotten, and comes back
		lock := acquire(t, short, "short")
		between(time.Minute, time.Hour)
		release(t, lock)
		between(time.Hour, 24*time.Hour)
	}
}

// holdsNothing is event.Holds of a Locker that has released its lock.
type holdsNothing struct{ _ *int }

func (*holdsNothing) Remaining() (left time.Duration, held bool) { return 0, false }

func TestLockersThatHoldNothingAreForgottenThoughNobodyCollects(t *testing.T) {
	t.Parallel()
	r, err := otellock.New()
	if err != nil {
		t.Fatal(err)
	}
	record := func(holds *holdsNothing) {
		r.Hook(t.Context(), sqllock.Event{Kind: event.Acquired, Locker: event.Locker{Holds: holds}})
	}
	old := new(holdsNothing)
	kept := weak.Make(old)
	record(old)
	for range 20 {
		record(new(holdsNothing))
	}
	runtime.GC()
	if kept.Value() != nil {
		t.Error("the first Locker is still known")
	}
	runtime.KeepAlive(r)
}

func TestNamesAreAttributesOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	before := func(name string) string { return strings.Split(name, "/")[0] }
	for want, opts := range map[string][]otellock.Option{
		"":               nil,
		" name=order":    {otellock.WithNames(before)},
		" name=order/17": {otellock.WithNames(func(name string) string { return name })},
		" name=o\uFFFDr": {otellock.WithNames(func(string) string { return "o\xff\xfer" })},
	} {
		c := collect(t, opts...)
		l := sqllock.AnyKind(p.Leases(t, leasetable.WithHook(c.Hook)))
		release(t, acquire(t, l, "order/17"))
		c.mustBe(t, "sqllock.hold.duration", counts{"end=released kind=lease" + want: 1})
		c.mustBe(t, "sqllock.acquire.duration", counts{"kind=lease" + want + " outcome=acquired": 1})
		if locks := c.points(t, "sqllock.locks"); len(locks) != 1 || fmt.Sprint(locks["kind=lease"+want]) != "{0 0 {lock}}" {
			t.Errorf("locks: %v", locks)
		}
	}
}

func TestTheDatabaseIsAnAttributeOfDurations(t *testing.T) {
	t.Parallel()
	var systems []string
	c := collect(t)
	p := adaptertest.At(t, sqltest.EngineMariaDB, true)
	l := recorded(t, p, func(ctx context.Context, e sqllock.Event) {
		if e.Kind == event.Acquired {
			systems = append(systems, e.Locker.System)
		}
		c.Hook(ctx, e)
	})
	release(t, acquire(t, l, "x"))
	if fmt.Sprint(systems) != "[mariadb]" || fmt.Sprint(c.systems(t, "sqllock.acquire.duration")) != "[mariadb]" {
		t.Errorf("the database is %v, and %v in the metric", systems, c.systems(t, "sqllock.acquire.duration"))
	}
}
