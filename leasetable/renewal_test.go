package leasetable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Callers that ask for a renewal while one is under way share the next one, and only that: it tells what happened before
// they asked. I20, I38.
func TestAThousandCallersOfRenewShareTheNextOne(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		sent := 0
		s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
			sent++ // one at a time
			pass(25 * time.Millisecond)
			return s.Store.Renew(ctx, id)
		}
		lock := take(t, keep(t, s, leasetable.WithTTL(15*time.Second)), "x")
		renewed := make(chan error)
		renew := func() { renewed <- lock.Renew(t.Context()) }
		go renew()
		pass(10 * time.Millisecond)
		for range 999 {
			go renew()
		}
		for range 1000 {
			if err := <-renewed; err != nil {
				t.Fatal(err)
			}
		}
		if sent != 2 {
			t.Errorf("%d renewals were sent, not 2", sent)
		}
		release(t, lock)
	})
}

// withRenewalsThatHang returns a database that answers no renewal, and counts them.
func withRenewalsThatHang() (s *scripted, sent *atomic.Int64) {
	s, sent = &scripted{Store: memory.NewServer(memory.Postgres).Store()}, new(atomic.Int64)
	s.renew = func(ctx context.Context, _ []byte) (bool, int64, error) {
		sent.Add(1)
		<-ctx.Done()
		return false, 0, errCut
	}
	return s, sent
}

// Callers share the failure of a renewal, too: it takes the time of two attempts, and not of a hundred.
func TestCallersOfRenewShareItsFailure(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s, _ := withRenewalsThatHang()
		lock := take(t, keep(t, s, leasetable.WithTTL(time.Hour)), "x")
		began := time.Now()
		renewed := make(chan error)
		for range 100 {
			go func() { renewed <- lock.Renew(t.Context()) }()
		}
		for range 100 {
			if err := <-renewed; !errors.Is(err, errCut) {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > 2*dberr.AttemptTimeout {
			t.Errorf("it took %v", took)
		}
		release(t, lock)
	})
}

// Who leaves before the renewal is sent sends none.
func TestWhoLeavesBeforeItsRenewalIsSentSendsNone(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s, sent := withRenewalsThatHang()
		lock := take(t, keep(t, s, leasetable.WithTTL(time.Hour)), "x")
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if lock.Renew(ctx) == nil {
				t.Error("renewed")
			}
			cancel()
		}
		if sent.Load() != 1 {
			t.Errorf("%d renewals were sent, not 1", sent.Load())
		}
		release(t, lock)
	})
}

// A renewal that hangs leaves the connection for renewals to a lease with a shorter TTL in time.
func TestARenewalThatHangsLeavesTimeToALeaseWithAShorterTTL(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		pace := time.Duration(0)
		var stuck []byte // the lease of an hour
		s.open = func(ctx context.Context, l store.LeaseRow, within time.Duration) (time.Time, error) {
			if l.TTL == time.Hour {
				stuck = l.ID
			}
			sent, err := s.Store.OpenLease(ctx, l, within)
			pass(pace)
			return sent, err
		}
		hangs := make(chan time.Duration, 1)
		s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
			if !bytes.Equal(id, stuck) {
				pass(pace)
				return s.Store.Renew(ctx, id)
			}
			began := time.Now()
			<-ctx.Done()
			hangs <- time.Since(began)
			return false, 0, errCut
		}
		l := keep(t, s)
		long := take(t, l, "long", sqllock.WithTTL(time.Hour))
		_ = long.Renew(t.Context())
		if hung := <-hangs; hung != dberr.AttemptTimeout {
			t.Errorf("the only lease waits for its renewal for %v, not %v", hung, dberr.AttemptTimeout)
		}
		short := take(t, l, "short", sqllock.WithTTL(4*time.Second))
		_ = long.Renew(t.Context())
		if hung := <-hangs; hung != time.Second {
			t.Errorf("beside a TTL of 4 s a renewal is waited for for %v, not 1 s", hung)
		}
		pace = 50 * time.Millisecond
		locks := []*leasetable.Lease{long, short}
		for i := range 20 { // so many renewals may be ahead in the queue
			locks = append(locks, take(t, l, fmt.Sprint(i), sqllock.WithTTL(2*time.Hour+time.Duration(i)*time.Minute)))
		}
		_ = long.Renew(t.Context())
		if hung := <-hangs; hung <= 20*pace || hung > 4*time.Second/3 {
			t.Errorf("beside twenty leases a renewal is waited for for %v", hung)
		}
		release(t, locks...)
	})
}

// A lease of one name is not searched for forgotten names: it ends with its lock. I23.
func TestADedicatedLeaseIsNotSearched(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &searched{Store: memory.NewServer(memory.Postgres).Store()}
		l := keep(t, s, leasetable.WithTTL(15*time.Second))
		ticket, err := take(t, l, "x").Export(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		adopted, err := l.Adopt(t.Context(), ticket)
		if err != nil {
			t.Fatal(err)
		}
		reconnect := func() int64 {
			before := s.searches.Load()
			s.connection.Add(1)
			pass(10 * time.Second)
			return s.searches.Load() - before
		}
		pass(10 * time.Second) // the lease that x was on before has ended
		if n := reconnect(); n != 0 {
			t.Errorf("the lease of the adopted lock was searched, %d times", n)
		}
		other := take(t, l, "y")
		if n := reconnect(); n == 0 {
			t.Error("the other lease was not searched")
		}
		release(t, adopted, other)
	})
}

// searched counts searches for forgotten names.
type searched struct {
	*memory.Store
	connection, searches atomic.Int64
	exits                bool // the first search ends its goroutine
}

// RenewalConnection implements store.Server.
func (s *searched) RenewalConnection() int64 { return s.connection.Load() }

// NamesOf implements store.Store.
func (s *searched) NamesOf(ctx context.Context, id []byte, after string, limit int) ([]store.State, error) {
	if s.searches.Add(1) == 1 && s.exits {
		runtime.Goexit()
	}
	return s.Store.NamesOf(ctx, id, after, limit)
}
