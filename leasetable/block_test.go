package leasetable_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// relay is a Locker that holds x, and goroutines that wait for it.
type relay struct {
	server   *memory.Server
	s        *scripted
	l        *leasetable.Locker
	lock     *leasetable.Lease // the one that is held now
	next     <-chan *leasetable.Lease
	handoffs []int64 // how many tokens each statement of a handoff has asked for
}

func newRelay(t *testing.T, waiters int) *relay {
	t.Helper()
	c := &relay{server: memory.NewServer(memory.Postgres)}
	c.s = &scripted{Store: c.server.Store()}
	c.s.handOff = func(ctx context.Context, h store.Held, n int64, metadata []byte) (int64, bool, error) {
		c.handoffs = append(c.handoffs, n)
		return c.s.Store.HandOff(ctx, h, n, metadata)
	}
	c.l = keep(t, c.s)
	c.lock = take(t, c.l, "x")
	c.next = line(t, c.l, "x", waiters)
	pass(time.Millisecond)
	return c
}

// pass releases the lock, and waits for the next one.
func (c *relay) pass(t *testing.T) {
	t.Helper()
	release(t, c.lock)
	c.lock = <-c.next
}

// A block has twice as many tokens as were used of the last. I24.
func TestOneStatementHandsANameToSeveralWhoWait(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		c := newRelay(t, 5)
		for token := int64(2); token <= 6; token++ {
			pass(time.Millisecond)
			c.pass(t)
			if c.lock.Token() != token {
				t.Errorf("token %d; want %d", c.lock.Token(), token)
			}
			if h := mustBeHeld(t, c.l, "x"); h.Token != []int64{3, 6}[len(c.handoffs)-1] {
				t.Errorf("the row has token %d while that of the lock is %d", h.Token, token)
			}
		}
		if len(c.handoffs) != 2 || c.handoffs[0] != 2 || c.handoffs[1] != 3 { // of four there could be, there are three
			t.Errorf("statements for %d tokens", c.handoffs)
		}
		release(t, c.lock)
		last := take(t, c.l, "x")
		if last.Token() != 7 {
			t.Errorf("then the token is %d", last.Token())
		}
		release(t, last)
	})
}

// It would give the name back.
func TestNothingIsHandedOffToAWaiterThatWantsAnotherLease(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for what, opt := range map[string]sqllock.Option{"another TTL": sqllock.WithTTL(2 * time.Second), "a share": leasetable.WithShared()} {
		synctest.Test(t, func(t *testing.T) {
			c := newRelay(t, 1)
			got := make(chan error)
			go func() {
				lock, err := c.l.Acquire(t.Context(), "x", opt)
				if err == nil {
					err = lock.Release(t.Context())
				}
				got <- err
			}()
			synctest.Wait() // behind the first waiter
			c.pass(t)
			pass(time.Millisecond)
			release(t, c.lock)
			if err := <-got; err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if len(c.handoffs) != 1 || c.handoffs[0] != 1 {
				t.Errorf("%s: statements for %d tokens", what, c.handoffs)
			}
		})
	}
}

// Locks that are long get one token at a time, and what a block has left is not used after 25 ms: the statement tells of
// waiters in other processes. I25.
func TestABlockOfTokensIsSoonOver(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		c := newRelay(t, 4)
		c.pass(t) // a block of two
		pass(26 * time.Millisecond)
		c.pass(t) // the next block of two
		pass(51 * time.Millisecond)
		c.pass(t)
		pass(51 * time.Millisecond)
		c.pass(t)
		if len(c.handoffs) != 4 || c.handoffs[0] != 2 || c.handoffs[1] != 2 || c.handoffs[2] != 1 || c.handoffs[3] != 1 {
			t.Errorf("statements for %d tokens", c.handoffs)
		}
		release(t, c.lock)
	})
}

// Who came after the statement gets no token of it: others may have held the name with higher ones before. I12, I24.
func TestWhoCameAfterABlockWasMadeGetsNoneOfItsTokens(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		c := newRelay(t, 1)
		leave := waitingForX(t, c.l)
		c.pass(t)
		leave()
		between := holdByForce(t, keep(t, c.server.Store()))
		late := line(t, c.l, "x", 1)
		pass(time.Millisecond)
		if err := c.lock.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release after a forced one: %v", err)
		}
		got := <-late
		if got.Token() <= between {
			t.Errorf("after token %d a lock with token %d was given", between, got.Token())
		}
		release(t, got)
	})
}

// The next holder waits for the transaction that the last one guarded. I13, I24.
func TestABlockEndsWithAGuard(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		c := newRelay(t, 2)
		c.pass(t)
		tx := c.server.Begin()
		if err := c.lock.Guard(t.Context(), leasetable.PgxTx(tx)); err != nil {
			t.Fatal(err)
		}
		released := releaseSoon(t, c.lock)
		pass(10 * time.Millisecond)
		if len(c.next) > 0 {
			t.Error("the next holder has the name, and a transaction of the last one is open")
		}
		if err := errors.Join(tx.Commit(), <-released); err != nil {
			t.Error(err)
		}
		c.lock = <-c.next
		if len(c.handoffs) != 2 {
			t.Errorf("statements for %d tokens", c.handoffs)
		}
		release(t, c.lock)
	})
}

// The row has the metadata of the one that holds it. I24.
func TestABlockEndsWithMetadata(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		c := newRelay(t, 2)
		c.pass(t)
		if err := c.lock.SetMetadata(t.Context(), "of the second"); err != nil {
			t.Fatal(err)
		}
		c.pass(t)
		if h := mustBeHeld(t, c.l, "x"); h.Metadata != "" {
			t.Errorf("the third has the metadata %q", h.Metadata)
		}
		release(t, c.lock)
	})
}

// A forced release is found by a verification, which reads the locks of the lease while the name passes on: it has missed
// the next lock, which is not given. I12, I20, I24.
func TestABlockEndsWithAVerification(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		c := newRelay(t, 2)
		c.pass(t)
		reads, answered := make(chan struct{}), make(chan struct{})
		c.s.held = func(ctx context.Context, id []byte, names []string) ([]store.State, error) {
			held, err := c.s.Store.StillHeld(ctx, id, names)
			if reads != nil {
				close(reads)
				reads = nil
				<-answered
			}
			return held, err
		}
		between := holdByForce(t, keep(t, c.server.Store()))
		reading := reads
		go func() { _ = c.lock.Renew(t.Context()) }() // it finds out that something was released by force
		<-reading
		released := releaseSoon(t, c.lock)
		synctest.Wait()
		close(answered)
		if err := <-released; err != nil && !errors.Is(err, sqllock.ErrLost) { // it was not known before
			t.Error(err)
		}
		got := <-c.next
		if got.Token() <= between {
			t.Errorf("after token %d a lock with token %d was given", between, got.Token())
		}
		release(t, got)
	})
}

// What an exported lock leaves is found by the token of its row. I28.
func TestALockOfABlockIsExported(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		c := newRelay(t, 2)
		c.pass(t) // token 2 of 2 and 3
		ticket, err := c.lock.Export(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		adopted, err := keep(t, c.server.Store()).Adopt(t.Context(), ticket)
		if err != nil || adopted.Token() != 4 {
			t.Fatalf("Adopt: %v", err)
		}
		release(t, adopted)
		c.lock = <-c.next
		release(t, c.lock)
	})
}

// The time for which a name is kept counts from the acquisition, and not from when the block was made. I22.
func TestALockOfABlockIsHeldForAtLeastAsLongAsAnother(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, atLeast := range []time.Duration{time.Second, math.MaxInt64} {
		synctest.Test(t, func(t *testing.T) {
			c := newRelay(t, 1)
			kept := make(chan *leasetable.Lease)
			go func() {
				lock, err := c.l.Acquire(t.Context(), "x", leasetable.WithHoldAtLeast(atLeast))
				if err != nil {
					t.Error(err)
				}
				kept <- lock
			}()
			pass(time.Millisecond)
			c.pass(t)
			pass(20 * time.Millisecond)
			release(t, c.lock)
			lock, began := <-kept, time.Now()
			if len(c.handoffs) != 1 {
				t.Errorf("statements for %d tokens", c.handoffs)
			}
			release(t, lock)
			other := keep(t, c.server.Store())
			pass(time.Until(began.Add(time.Second)) - time.Nanosecond)
			if lock, err := other.TryAcquire(t.Context(), "x"); err == nil {
				t.Error("it was not kept")
				release(t, lock)
			}
		})
	}
}
