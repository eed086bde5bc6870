package leasetable_test

import (
	"context"
	"slices"
	"strconv"
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

// demoted is a database whose server becomes read-only. New connections lead to the new primary.
type demoted struct {
	*scripted
	left atomic.Bool
}

// Reconnect implements store.Server.
func (d *demoted) Reconnect() { d.left.Store(true) }

func TestARenewalLeavesAServerThatBecameReadOnly(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.MySQL).Store()}
		d := &demoted{scripted: s}
		s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
			if !d.left.Load() {
				return false, 0, &dberr.Error{Err: sqllock.ErrReadOnly, OutcomeKnown: true}
			}
			return s.Store.Renew(ctx, id)
		}
		lock := take(t, keep(t, d, leasetable.WithTTL(15*time.Second)), "x")
		pass(30 * time.Second)
		release(t, lock)
	})
}

// It leaves it, too, if another error came just before, and again as long as new connections lead there.
func TestARenewalLeavesAServerThatIsReadOnlyAfterAnotherError(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.MySQL).Store()}
		d := &demoted{scripted: s}
		reconnects := 0
		broken := false
		s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
			if d.left.CompareAndSwap(true, false) {
				reconnects++
			}
			switch {
			case !broken:
				broken = true
				return false, 0, errCut
			case reconnects < 3:
				return false, 0, &dberr.Error{Err: sqllock.ErrReadOnly, OutcomeKnown: true}
			}
			return s.Store.Renew(ctx, id)
		}
		lock := take(t, keep(t, d, leasetable.WithTTL(4*time.Second)), "x")
		pass(30 * time.Second)
		release(t, lock)
	})
}

// standby is a database whose server is read-only at times, wherever new connections lead.
type standby struct {
	*scripted
	readOnly   atomic.Bool
	reconnects atomic.Int64
}

// Reconnect implements store.Server.
func (s *standby) Reconnect() { s.reconnects.Add(1) }

// Its connections are given up often at first, so that a failover is noticed at once, and then less and less often.
func TestAServerThatStaysReadOnlyIsLeftLessAndLessOften(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &standby{scripted: &scripted{Store: memory.NewServer(memory.MySQL).Store()}}
		s.open = func(ctx context.Context, row store.LeaseRow, within time.Duration) (time.Time, error) {
			if s.readOnly.Load() {
				return time.Time{}, dberr.ReadOnly("a standby")
			}
			return s.Store.OpenLease(ctx, row, within)
		}
		l := keep(t, s, leasetable.WithTTL(15*time.Second))
		for range 2 {
			s.readOnly.Store(true)
			got := make(chan *leasetable.Lease)
			const waiters = 10
			for i := range waiters {
				go func() {
					lock, err := l.Acquire(t.Context(), strconv.Itoa(i))
					if err != nil {
						t.Error(err)
					}
					got <- lock
				}()
			}
			pass(4 * time.Second)
			if n := s.reconnects.Swap(0); n < 3 {
				t.Errorf("it was left %d times in the first 4 seconds", n)
			}
			pass(time.Minute)
			s.reconnects.Store(0)
			pass(10 * time.Minute)
			if n := s.reconnects.Load(); n < 60 || n > 120 {
				t.Errorf("it was left %d times in 10 minutes", n)
			}
			s.readOnly.Store(false)
			for range waiters {
				release(t, <-got)
			}
			pass(time.Minute)
			s.reconnects.Store(0)
		}
	})
}

// Reads do not fail on an old primary that was made read-only. Nobody leads there.
func TestAnObserverLeavesAServerOnWhichNobodyLeads(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		primary := memory.NewServer(memory.MySQL)
		lock := take(t, keep(t, primary.Store(), leasetable.WithTTL(15*time.Second)), "x")
		s := &standby{scripted: &scripted{Store: memory.NewServer(memory.MySQL).Store()}}
		s.read = func(ctx context.Context, name string) (store.State, error) {
			if s.reconnects.Load() == 0 {
				return s.Store.Read(ctx, name)
			}
			return primary.Store().Read(ctx, name)
		}
		e := newElector(t, keep(t, s, leasetable.WithTTL(15*time.Second)))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var told []int64
		for leader, err := range e.Observe(ctx, time.Second) {
			if err != nil {
				t.Error(err)
			}
			told = append(told, leader.Token)
		}
		if n := s.reconnects.Load(); !slices.Equal(told, []int64{0, lock.Token()}) || n != 1 {
			t.Errorf("the observer was told %v, and left the server %d times", told, n)
		}
		release(t, lock)
	})
}
