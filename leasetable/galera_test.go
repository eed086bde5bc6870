package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
)

func TestGalera(t *testing.T) { //nolint:paralleltest // see below
	if strings.HasPrefix(os.Getenv("SQLTEST_MARIADB"), "programs") {
		t.Parallel() // otherwise startCluster sets the environment
	}
	c := startCluster(t)
	tests := []struct {
		what string
		test func(*testing.T)
	}{
		{"names that are taken on all nodes have one holder at a time", c.contend},
		{"no lease is held twice and no stale holder writes", c.record},
		{"no node shows a lock before its lease", c.order},
		{"a node that lags does not follow a holder who lives", c.lag},
		{"a guard on a node that lags does not outlive a takeover", c.guard},
		{"a locker finds what it took on any node", c.balance},
		{"a holder on a node that was cut off is told in time", c.cutOff},
	}
	for _, test := range tests { //nolint:paralleltest // one cluster, whose nodes come and go
		t.Run(test.what, test.test)
	}
}

// contend makes Lockers on all nodes acquire the same names, one by one and several in a statement. I6.
func (c *cluster) contend(t *testing.T) {
	const names, goroutines, rounds = 4, 6, 25
	var inside, last [names]atomic.Int64
	var all sync.WaitGroup
	conflicts := c.conflicts(t)
	for node, db := range c.nodes {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Minute))
		for range goroutines {
			all.Go(func() {
				for range rounds {
					i := rand.IntN(names)
					lock, err := l.Acquire(t.Context(), fmt.Sprint("contended ", i))
					if err != nil {
						t.Errorf("node %d: %v", node, err)
						continue
					}
					token := lock.Token()
					if n := inside[i].Add(1); n != 1 {
						t.Errorf("%d hold %s", n, lock.Name())
					}
					if before := last[i].Swap(token); before >= token {
						t.Errorf("%s: token %d after %d", lock.Name(), token, before)
					}
					inside[i].Add(-1)
					if err := lock.Release(t.Context()); err != nil {
						t.Errorf("node %d: %v", node, err)
					}
				}
			})
		}
	}
	all.Wait()
	for i := range names {
		t.Logf("name %d went up to token %d", i, last[i].Load())
	}
	if n := c.conflicts(t) - conflicts; n == 0 {
		t.Error("the nodes did not get in each other's way: nothing was shown")
	} else {
		t.Logf("%d conflicts", n)
	}
}

// conflicts counts the transactions that a node has rolled back because of another transaction.
func (c *cluster) conflicts(t *testing.T) (sum int) {
	t.Helper()
	for node := range c.nodes {
		for _, variable := range []string{"wsrep_local_cert_failures", "wsrep_local_bf_aborts"} {
			n, err := strconv.Atoi(c.state(t, node, variable))
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// record checks a history of processes on all nodes. Some of the processes are killed and stopped, and one node after
// the other is cut off.
func (c *cluster) record(t *testing.T) {
	contest := newContest(t, c.nodes[0])
	contest.opts.Kills, contest.opts.Stops = 2, 2
	contest.opts.Server = ""
	var started atomic.Int64
	contest.opts.Child = func(string) []string {
		return contest.contender(c.nodes[int(started.Add(1))%len(c.nodes)].DSN)
	}
	node := 0
	contest.add("nodes cut off", 2, func(context.Context, string) error {
		node++
		c.isolate(t, node)()
		return nil
	})
	contest.run(t)
}

// order begins many leases on one node, each with a lock. It reads them on another node, which applies with several
// threads, without waiting for what that node has not applied yet. I7.
func (c *cluster) order(t *testing.T) {
	const writers, each = 4, 250
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				id := fmt.Sprintf("order %d %08d", w, i) // 16 bytes
				for _, statement := range []string{
					"INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at) VALUES (?, '', '', 0, 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
					"INSERT INTO sqllock_lock (name, token, lease_id, acquired_at) VALUES (?, 1, ?, UTC_TIMESTAMP(6))",
				} {
					args := []any{id, id}
					if _, err := c.nodes[0].ExecContext(t.Context(), statement, args[:strings.Count(statement, "?")]...); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	const (
		locks = "SELECT count(*) FROM sqllock_lock WHERE name LIKE 'order %'"
		alone = "SELECT count(*) FROM sqllock_lock k LEFT JOIN sqllock_lease l ON l.id = k.lease_id WHERE k.name LIKE 'order %' AND l.id IS NULL"
	)
	for half := 0; ; {
		select {
		case <-done:
			if half < 10 {
				t.Errorf("only %d looks came while some were there: nothing was shown", half)
			}
			run(t, c.nodes[0], "DELETE FROM sqllock_lock WHERE name LIKE 'order %'")
			run(t, c.nodes[0], "DELETE FROM sqllock_lease WHERE id LIKE 'order %'")
			return
		default:
		}
		if n := count(t, c.nodes[1], alone); n != 0 {
			t.Fatalf("%d locks without their leases", n)
		}
		if n := count(t, c.nodes[1], locks); n > 0 && n < writers*each {
			half++
		}
	}
}

// lag checks that a node does not take over a lease that has expired only as far as this node knows. I9.
func (c *cluster) lag(t *testing.T) {
	const ttl = 16 * time.Second // no other lease here has it
	there, here := newLocker(t, c.nodes[1].DB, leasetable.WithTTL(ttl)), newLocker(t, c.nodes[2].DB)
	lease := take(t, there, "lag")
	mustBeHeld(t, here, "lag") // so this node has the lease
	resume := c.hold(t, 2)
	t.Cleanup(resume)
	taken := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	go func() {
		lock, err := here.Acquire(ctx, "lag")
		if err == nil && lock.Token() != lease.Token()+1 {
			err = fmt.Errorf("token %d after %d", lock.Token(), lease.Token())
		}
		taken <- err
	}()
	const over = "SELECT count(*) FROM sqllock_lease WHERE ttl_us = 16000000 AND expires_at < UTC_TIMESTAMP(6)"
	eventually(t, func() bool { return count(t, c.nodes[2], over) == 1 })
	if lock, err := here.TryAcquire(ctx, "lag"); err == nil {
		t.Errorf("a node that lags granted %v", lock)
	}
	resume()
	mustBeHeld(t, here, "lag")
	select {
	case err := <-taken:
		t.Errorf("Acquire of a name that is held: %v", err)
	default:
	}
	mustVerify(t, lease)
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-taken; err != nil {
		t.Error(err)
	}
}

// guard checks that a guarded write is not committed on a node that does not yet know that the name was taken over.
// I13.
func (c *cluster) guard(t *testing.T) {
	run(t, c.nodes[0], "CREATE TABLE guarded (n INT AUTO_INCREMENT PRIMARY KEY)")
	holder, admin := newLocker(t, c.nodes[2].DB, leasetable.WithTTL(time.Minute)), newLocker(t, c.nodes[0].DB)
	lease := take(t, holder, "guard")
	write := func() error {
		tx, err := c.nodes[2].BeginTxx(t.Context(), nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after the commit
		if err := lease.Guard(t.Context(), leasetable.SQLTx(tx)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO guarded VALUES ()"); err != nil {
			return err
		}
		return tx.Commit()
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	mustVerify(t, lease) // the guard changed nothing
	resume := c.hold(t, 2)
	t.Cleanup(resume)
	if was, err := admin.ForceRelease(t.Context(), "guard"); err != nil || !was.Held {
		t.Fatal(was, err)
	}
	take(t, admin, "guard")
	written := make(chan error, 1)
	go func() { written <- write() }()
	eventually(t, func() bool { return c.commits(t, 2) })
	resume()
	if err := <-written; err == nil {
		t.Error("a stale holder's write was committed after the takeover")
	} else {
		t.Log(err)
	}
	if err := write(); !errors.Is(err, sqllock.ErrLost) {
		t.Errorf("a guarded write after the takeover: %v", err)
	}
	if n := count(t, c.nodes[0], "SELECT count(*) FROM guarded"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// commits reports whether a transaction on a node waits to commit.
func (c *cluster) commits(t *testing.T, node int) bool {
	t.Helper()
	return count(t, c.nodes[node], "SELECT count(*) FROM information_schema.PROCESSLIST WHERE INFO = 'COMMIT'") > 0
}

// balance makes a Locker's connections lead to another node, like a load-balancing proxy, while that node does not have
// the Locker's acquisition yet.
func (c *cluster) balance(t *testing.T) {
	p, dsn := through(t, c.nodes[0])
	l := newLocker(t, open(t, "mysql", dsn), leasetable.WithTTL(20*time.Second))
	take(t, l, "earlier") // all nodes know the lease
	other := newLocker(t, c.nodes[2].DB)
	mustBeHeld(t, other, "earlier")
	resume := c.hold(t, 2)
	t.Cleanup(resume)
	lease := take(t, l, "balance")
	p.switchTo(addressOf(c.nodes[2]))
	verified := make(chan error, 1)
	go func() { verified <- lease.Verify(t.Context()) }()
	eventually(t, func() bool {
		return len(verified) == 1 || count(t, c.nodes[2], "SELECT count(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%FROM sqllock_lock%' AND ID <> CONNECTION_ID()") > 0
	})
	resume()
	if err := <-verified; err != nil && !sqllock.IsRetryable(err) {
		t.Errorf("on a node that lagged the lock was verified: %v", err)
	}
	mustVerify(t, lease)
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	locktest.MustTry(t, newLocker(t, c.nodes[1].DB), "balance")
}

// cutOff cuts off the holder's node. The others continue without it.
func (c *cluster) cutOff(t *testing.T) {
	const ttl = 18 * time.Second
	holder, other := newLocker(t, c.nodes[2].DB, leasetable.WithTTL(ttl)), newLocker(t, c.nodes[0].DB)
	lease := take(t, holder, "cut off")
	mustBeHeld(t, other, "cut off")
	heal := c.isolate(t, 2)
	tried := make(chan error, 1)
	go func() {
		_, err := holder.TryAcquire(context.Background(), "else")
		tried <- err
	}()
	mustBeToldWithin(t, lease, ttl)
	err := <-tried
	if !sqllock.IsRetryable(err) {
		t.Errorf("TryAcquire on a node that is cut off: %v", err)
	}
	t.Log(err)
	next := take(t, other, "cut off")
	if next.Token() != lease.Token()+1 {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	heal()
	if err := lease.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
		t.Errorf("Release of a lock that somebody took: %v", err)
	}
	mustBeHeld(t, holder, "cut off")
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
