package leasetable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// countReads counts how often the client reads a name.
func countReads(s *scripted) *atomic.Int64 {
	reads := new(atomic.Int64)
	s.read = func(ctx context.Context, name string) (store.State, error) {
		reads.Add(1)
		return s.Store.Read(ctx, name)
	}
	return reads
}

// hour is the TTL of locks that outlast these tests.
var hour = leasetable.WithTTL(time.Hour)

// whileHeld runs a test in virtual time, on a server where somebody holds x.
func whileHeld(t *testing.T, kind memory.Kind, test func(t *testing.T, server *memory.Server, held *leasetable.Lease)) {
	t.Helper()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(kind)
		test(t, server, take(t, keep(t, server.Store(), hour), "x"))
	})
}

// slowTurn is a session that the server does not answer.
type slowTurn struct{ store.Turn }

func (slowTurn) Try(context.Context, string) (bool, error) { return false, nil }

func (slowTurn) Wait(ctx context.Context, _ string, _ time.Duration) (bool, error) {
	<-ctx.Done()
	return false, errCut
}

// A server that does not wake its waiters in time is not asked more often for that, while they wait for an answer.
func TestASlowQueueIsSeldomLookedAround(t *testing.T) {
	t.Parallel()
	whileHeld(t, memory.Postgres, func(t *testing.T, server *memory.Server, held *leasetable.Lease) {
		s := withTurns(server, func(t store.Turn) store.Turn { return slowTurn{t} })
		reads := countReads(s)
		next := acquiring(keep(t, s, hour), "x")
		const seconds = 10
		pass(seconds * time.Second)
		if n := reads.Load(); n > 2*seconds {
			t.Errorf("%d looks in %d s", n, seconds)
		}
		release(t, held)
		releaseNext(t, next)
	})
}

// countedTurn counts the waits of a session.
type countedTurn struct {
	store.Turn

	waits *atomic.Int64
}

func (t countedTurn) Wait(ctx context.Context, name string, d time.Duration) (bool, error) {
	t.waits.Add(1)
	return t.Turn.Wait(ctx, name, d)
}

// After twelve seconds of a wait, a waiter behind the head costs a slice and a look in 6.3 seconds or more. After
// twenty-five, the head costs two looks a second.
func TestALongWaitCostsLittle(t *testing.T) {
	t.Parallel()
	whileHeld(t, memory.Postgres, func(t *testing.T, server *memory.Server, held *leasetable.Lease) {
		alone := withTurns(server, func(t store.Turn) store.Turn { return t })
		headLooks := countReads(alone)
		head := acquiring(keep(t, alone, hour), "x")
		synctest.Wait()
		var waits atomic.Int64
		s := withTurns(server, func(t store.Turn) store.Turn { return countedTurn{t, &waits} })
		looks := countReads(s)
		next := acquiring(keep(t, s, hour), "x")
		pass(40 * time.Second)
		for _, count := range []*atomic.Int64{headLooks, looks, &waits} {
			count.Store(0)
		}
		pass(time.Minute)
		if waits.Load() > 10 || looks.Load() > 10 || headLooks.Load() > 150 {
			t.Errorf("in a minute %d slices, %d looks, and %d of the head", waits.Load(), looks.Load(), headLooks.Load())
		}
		release(t, held)
		select { // the one that looks first
		case lock := <-head:
			release(t, lock)
			releaseNext(t, next)
		case lock := <-next:
			release(t, lock)
			releaseNext(t, head)
		}
	})
}

// limitedTurn is a session on a connection whose reads may take five seconds.
type limitedTurn struct {
	store.Turn

	failed *atomic.Int64
}

func (t limitedTurn) Wait(ctx context.Context, name string, d time.Duration) (bool, error) {
	const limit = 5 * time.Second
	if d < limit {
		return t.Turn.Wait(ctx, name, d)
	}
	<-time.After(limit)
	t.failed.Add(1)
	return false, errCut
}

// A connection that is ended during a long slice has the next ones be short, for a minute.
func TestALongSliceThatFailsIsNotRepeated(t *testing.T) {
	t.Parallel()
	whileHeld(t, memory.MySQL, func(t *testing.T, server *memory.Server, held *leasetable.Lease) {
		head := acquiring(keep(t, server.Store(), hour), "x")
		synctest.Wait()
		var failed atomic.Int64
		leave := waitingForX(t, keep(t, withTurns(server, func(t store.Turn) store.Turn { return limitedTurn{t, &failed} }), hour))
		pass(5 * time.Minute)
		if n := failed.Load(); n < 1 || n > 5 {
			t.Errorf("%d slices failed", n)
		}
		leave()
		release(t, held)
		releaseNext(t, head)
	})
}

// A head that is cut off keeps a name that was released from another waiter for a long slice, and no longer. I36.
func TestAHeadThatIsCutOffDelaysALongWaitByOneSlice(t *testing.T) {
	t.Parallel()
	whileHeld(t, memory.Postgres, func(t *testing.T, server *memory.Server, held *leasetable.Lease) {
		var cut atomic.Bool
		s := withTurns(server, func(t store.Turn) store.Turn { return t })
		s.read = func(ctx context.Context, name string) (store.State, error) {
			if cut.Load() {
				<-ctx.Done()
				return store.State{}, &dberr.Error{Err: errCut, Transient: true}
			}
			return s.Store.Read(ctx, name)
		}
		head := acquiring(keep(t, s, hour), "x")
		synctest.Wait()
		next := acquiring(keep(t, server.Store(), hour), "x")
		pass(40 * time.Second)
		cut.Store(true)
		release(t, held)
		began := time.Now()
		releaseNext(t, next)
		if waited := time.Since(began); waited > 11*time.Second {
			t.Errorf("the next waiter had the name after %v", waited)
		}
		cut.Store(false)
		releaseNext(t, head)
	})
}

// Behind a pooler, and for more names than there are turns, waiters poll: the less often, the longer the name does not change
// hands. Who comes later does not look more often for long.
func TestANameThatIsHeldForLongIsSeldomPolled(t *testing.T) {
	t.Parallel()
	whileHeld(t, memory.SQLite, func(t *testing.T, server *memory.Server, held *leasetable.Lease) {
		s := &scripted{Store: server.Store()}
		reads := countReads(s)
		next := acquiring(keep(t, s, hour), "x")
		pass(time.Minute)
		reads.Store(0)
		const seconds = 60
		pass(seconds * time.Second)
		if n := reads.Load(); n < seconds || n > 3*seconds {
			t.Errorf("%d looks in %d s", n, seconds)
		}
		release(t, held)
		pass(time.Second)
		release(t, mustGet(t, next))
	})
}
