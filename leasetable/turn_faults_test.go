package leasetable_test

import (
	"context"
	"errors"
	"sync/atomic"
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

// Wherever a waiter is in its wait when it is stopped, cut off or killed, another one gets the name. No lease expires during
// the test, except that of a waiter which has the name and does not know. I35, I36.
func TestAWaiterThatIsGoneDelaysNobody(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	const long = time.Hour
	for point, p := range map[string]struct {
		meet func(*gone, *testing.T) (next *leasetable.Lease)
		ttl  time.Duration // of the waiter's leases
	}{
		"in the queue":                     {(*gone).inTheQueue, long},
		"as the head":                      {(*gone).asTheHead, long},
		"with the turn just granted":       {(*gone).granted, long},
		"with a claim that is carried out": {(*gone).claimed, 4 * time.Second},
		"after it has left the wait":       {(*gone).left, long},
		"noted in the row":                 {(*gone).noted, long},
	} {
		for fault, f := range map[string]struct {
			begin     func(*sqltest.Network)
			comesBack bool
		}{
			"stopped": {(*sqltest.Network).Cut, true},    // for the server a connection that is silent; it goes on later
			"cut off": {(*sqltest.Network).Forget, true}, // it goes on with new connections
			"killed":  {(*sqltest.Network).Refuse, false},
		} {
			t.Run(fault+" "+point, func(t *testing.T) {
				t.Parallel()
				onServers(t, func(t *testing.T, db *sqltest.Database) {
					g := &gone{db: db, near: newLocker(t, db.DB, leasetable.WithTTL(long)), other: newLocker(t, db.DB, leasetable.WithTTL(long))}
					g.network, g.far = newLockerThrough(t, db, leasetable.WithTTL(p.ttl))
					g.fail = func() { f.begin(g.network.Network) }
					defer g.network.Heal() // so that far can be closed
					next := p.meet(g, t)
					defer g.leave()
					g.followed(t, next, f.comesBack)
				})
			})
		}
	}
}

// gone is a waiter for "x" that will be gone, and others.
type gone struct {
	db          *sqltest.Database
	near, other *leasetable.Locker
	far         *leasetable.Locker // of the waiter
	network     *proxy             // of far
	fail        func()             // begins the fault

	leave    context.CancelFunc // ends the wait
	acquired chan error         // receives the outcome of the wait
	answer   *sqltest.Answer    // held back from the waiter; may be nil
	follower atomic.Bool        // another one holds the name
}

// followed ends the fault while next is held. The waiter gets the name afterwards.
func (g *gone) followed(t *testing.T, next *leasetable.Lease, comesBack bool) {
	t.Helper()
	g.follower.Store(true)
	if before := g.network.Requests(); comesBack {
		g.network.Heal()
		if g.answer != nil {
			g.answer.Pass()
		}
		eventually(t, func() bool { return g.network.Requests() > before || len(g.acquired) > 0 })
	} else {
		g.leave()
	}
	mustVerify(t, next)
	g.follower.Store(false)
	release(t, next)
	if err := receive(t, g.acquired); err != nil && (comesBack || !errors.Is(err, context.Canceled)) {
		t.Errorf("who was gone: %v", err)
	}
}

// start makes the waiter wait.
func (g *gone) start(t *testing.T) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	acquired := make(chan error, 1)
	g.leave, g.acquired = leave, acquired
	go func() {
		lock, err := g.far.Acquire(ctx, "x")
		if err == nil {
			if g.follower.Load() {
				t.Error("two hold the name")
			}
			_ = lock.Release(context.Background()) // a short lease may be over on a busy machine
		}
		acquired <- err
	}()
}

// standing returns how many sessions stand in the server's queue.
func (g *gone) standing(t *testing.T) int {
	t.Helper()
	if g.db.Engine == sqltest.EnginePostgres {
		return count(t, g.db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	}
	return count(t, g.db, "SELECT count(*) FROM "+processes+" WHERE DB = DATABASE() AND STATE = 'User lock'")
}

// queue makes the waiter stand in the server's queue, between the head and the next one.
func (g *gone) queue(t *testing.T) (held *leasetable.Lease, head, next <-chan *leasetable.Lease) {
	t.Helper()
	held = take(t, newLocker(t, g.db.DB, leasetable.WithTTL(time.Hour)), "x")
	head = acquiring(g.near, "x")
	eventually(t, func() bool { return leasetable.HasTurn(g.near, "x") })
	waits, tries := "get_lock", 1
	if g.db.Engine == sqltest.EnginePostgres {
		waits, tries = "pg_advisory_lock(", 0
	}
	g.answer = g.network.HoldAnswer(waits).Skip(tries)
	g.start(t)
	receive(t, g.answer.Asked())
	next = acquiring(g.other, "x")
	eventually(t, func() bool {
		if isClosed(g.answer.Answered()) { // the slice was over before
			g.answer.Pass()
			g.answer = g.network.HoldAnswer(waits)
		}
		return isClosed(g.answer.Asked()) && g.standing(t) == 2
	})
	return held, head, next
}

func (g *gone) inTheQueue(t *testing.T) *leasetable.Lease {
	held, head, next := g.queue(t)
	g.fail()
	release(t, held)
	releaseNext(t, head)
	return mustGet(t, next)
}

func (g *gone) granted(t *testing.T) *leasetable.Lease {
	held, head, next := g.queue(t)
	release(t, held)
	releaseNext(t, head)
	receive(t, g.answer.Answered())
	g.fail()
	return mustGet(t, next)
}

// left has the server grant the turn to who has left.
func (g *gone) left(t *testing.T) *leasetable.Lease {
	held, head, next := g.queue(t)
	g.leave()
	if err := receive(t, g.acquired); !errors.Is(err, context.Canceled) {
		t.Errorf("the waiter says: %v", err)
	}
	g.fail()
	release(t, held)
	releaseNext(t, head)
	lock := mustGet(t, next)
	g.start(t)
	return lock
}

func (g *gone) asTheHead(t *testing.T) *leasetable.Lease {
	held, next := g.lead(t)
	g.look(t)
	g.fail()
	release(t, held)
	return mustGet(t, next)
}

// claimed gives the name to the waiter, which does not know.
func (g *gone) claimed(t *testing.T) *leasetable.Lease {
	held, next := g.lead(t)
	g.answer = g.network.HoldAnswer("released_at")
	release(t, held)
	receive(t, g.answer.Answered())
	if n := count(t, g.db, "SELECT token FROM sqllock_lock WHERE lease_id IS NOT NULL"); n != 2 {
		t.Errorf("the token is %d", n)
	}
	g.fail()
	return mustGet(t, next)
}

// noted has the holder, which is told of the waiter, want the name again.
func (g *gone) noted(t *testing.T) *leasetable.Lease {
	held := take(t, g.near, "x")
	g.start(t)
	eventually(t, func() bool { return wanted(t, g.db) })
	g.look(t)
	g.fail()
	release(t, held)
	return take(t, g.near, "x")
}

// look holds back from the waiter that the name is held, so that none of its claims is under way.
func (g *gone) look(t *testing.T) {
	t.Helper()
	g.answer = g.network.HoldAnswer("remaining_us")
	receive(t, g.answer.Answered())
}

// lead makes the waiter the head, and another one stand behind it.
func (g *gone) lead(t *testing.T) (held *leasetable.Lease, next <-chan *leasetable.Lease) {
	t.Helper()
	held = take(t, g.near, "x")
	g.start(t)
	eventually(t, func() bool { return leasetable.HasTurn(g.far, "x") })
	next = acquiring(g.other, "x")
	eventually(t, func() bool { return g.standing(t) == 1 })
	return held, next
}

// Until a claim whose answer is lost is given up its lease is renewed, and nobody has the name. I15.
func TestAClaimWaitsForItsAnswerNoLongerThanALeaseLasts(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for ttl, want := range map[time.Duration]time.Duration{
		time.Second:     3 * time.Second, // one attempt
		4 * time.Second: 4 * time.Second,
		time.Hour:       10 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			db, l := newLagging(t, leasetable.WithTTL(ttl))
			db.delay(taking, lag{lost: true})
			_, err := l.TryAcquire(t.Context(), "x")
			if waited := time.Since(db.sentAt(t, taking, 0)); waited != want || !sqllock.IsRetryable(err) {
				t.Errorf("with a TTL of %v it was given up after %v; want %v: %v", ttl, waited, want, err)
			}
		})
	}
}

// deafTurn is a session whose pings fail late, whatever their contexts say.
type deafTurn struct{ store.Turn }

func (deafTurn) Ping(context.Context) error {
	pass(8 * time.Second)
	return errCut
}

// The session of a head breaks when the head has left, while another ping is due.
func TestAPingOpensNoSession(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		take(t, keep(t, server.Store(), leasetable.WithTTL(time.Hour)), "x")
		var opened atomic.Int64
		l := keep(t, withTurns(server, func(t store.Turn) store.Turn { opened.Add(1); return deafTurn{t} }), leasetable.WithTTL(time.Hour))
		leave := waitingForX(t, l)
		pass(9 * time.Second) // the second ping waits for the first one
		leave()
		pass(time.Minute)
		if n := opened.Load(); n != 1 {
			t.Errorf("%d sessions were opened", n)
		}
	})
}
