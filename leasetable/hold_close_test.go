package leasetable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// keptFor is a minimum hold, and leasedFor the TTL of a lease that lasts for less.
const (
	keptFor   = time.Hour
	leasedFor = time.Minute
)

// interrupted is a release that is not answered until its context ends.
func interrupted(ctx context.Context, _ *store.Request) (store.Result, error) {
	<-ctx.Done()
	return store.Result{}, errCut
}

func mustNotBeFree(t *testing.T, l *leasetable.Locker) {
	t.Helper()
	if _, err := l.TryAcquire(t.Context(), "x"); !errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("TryAcquire of a name that is to be kept: %v", err)
	}
}

// I22.
func TestANameIsKeptThoughCloseInterruptsItsRelease(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		s.release, s.again = interrupted, interrupted
		l, other := keep(t, s, leasetable.WithTTL(leasedFor)), keep(t, server.Store())
		released := releaseSoon(t, take(t, l, "x", leasetable.WithHoldAtLeast(keptFor)))
		held := take(t, l, "held until Close", leasetable.WithHoldAtLeast(keptFor))
		synctest.Wait() // the release is under way
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-released; !errors.Is(err, sqllock.ErrClosed) {
			t.Errorf("Release: %v", err)
		}
		if all, _ := server.Leases(); all != 0 {
			t.Errorf("%d leases are left", all)
		}
		release(t, take(t, other, held.Name())) // it was not released
		mustNotBeFree(t, other)
		pass(keptFor - time.Second)
		mustNotBeFree(t, other)
		pass(time.Second)
		release(t, take(t, other, "x"))
	})
}

// asked is a store that is asked, while a lease is locked, whether it has no connection left.
type asked struct {
	*scripted
	ask func() bool
}

func (s *asked) Limited() bool { return s.ask() }

// Close comes to the lease when the release, which it has interrupted, is over, or before: the order is left to chance. I22.
func TestANameIsKeptThoughItsInterruptedReleaseIsOverBeforeCloseComesToItsLease(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			server := memory.NewServer(memory.Postgres)
			locked, goOn := make(chan struct{}), make(chan struct{})
			s := &asked{&scripted{Store: server.Store()}, func() bool { return false }}
			l, other := keep(t, s, leasetable.WithTTL(leasedFor)), keep(t, server.Store())
			lock := take(t, l, "x", leasetable.WithHoldAtLeast(keptFor))
			another := take(t, l, "on another lease")
			if err := another.Extend(t.Context(), leasedFor); err != nil {
				t.Fatal(err)
			}
			s.ask = func() bool {
				s.ask = func() bool { return false }
				close(locked)
				<-goOn
				return false
			}
			anotherReleased := releaseSoon(t, another)
			<-locked
			s.release, s.again = interrupted, interrupted
			released, closed := releaseSoon(t, lock), make(chan error)
			synctest.Wait() // the release is under way
			go func() { closed <- l.Close() }()
			if err := <-released; !errors.Is(err, sqllock.ErrClosed) {
				t.Errorf("Release: %v", err)
			}
			close(goOn)
			if err := errors.Join(<-anotherReleased, <-closed); err != nil {
				t.Error(err)
			}
			mustNotBeFree(t, other)
			pass(keptFor)
			release(t, take(t, other, "x"))
		})
	}
}

// The release is not confirmed, and repeated in the background. I22.
func TestANameIsKeptThoughCloseComesBeforeItsReleaseIsConfirmed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		lost := func(context.Context, *store.Request) (store.Result, error) { return store.Result{}, errSilent }
		s.release, s.again = lost, lost
		s.byLease = func(ctx context.Context, _ string, _ []byte, _ time.Duration) (int64, error) {
			<-ctx.Done()
			return 0, errSilent
		}
		l, other := keep(t, s, leasetable.WithTTL(leasedFor)), keep(t, server.Store())
		lock := take(t, l, "x", leasetable.WithHoldAtLeast(keptFor))
		if err := lock.Release(t.Context()); !errors.Is(err, errCut) {
			t.Errorf("Release: %v", err)
		}
		synctest.Wait() // it is repeated
		s.byLease = nil
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		mustNotBeFree(t, other)
		pass(keptFor - 10*time.Second)
		mustNotBeFree(t, other)
	})
}

// I22.
func TestANameWhoseReleaseCloseCannotSendIsFreeWhenItsLeaseExpires(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		s.release, s.again = interrupted, interrupted
		s.byLease = func(ctx context.Context, _ string, _ []byte, _ time.Duration) (int64, error) {
			<-ctx.Done()
			return 0, errSilent
		}
		l, other := keep(t, s, leasetable.WithTTL(leasedFor)), keep(t, server.Store())
		released := releaseSoon(t, take(t, l, "x", leasetable.WithHoldAtLeast(keptFor)))
		synctest.Wait() // the release is under way
		began := time.Now()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		if err := <-released; !errors.Is(err, sqllock.ErrClosed) {
			t.Errorf("Release: %v", err)
		}
		mustNotBeFree(t, other)
		pass(leasedFor - 10*time.Second)
		mustNotBeFree(t, other)
		pass(10 * time.Second)
		release(t, take(t, other, "x"))
	})
}
