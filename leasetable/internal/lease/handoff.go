package lease

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// Handoff is what a waiter receives when it reaches the head of the wait queue of a name.
type Handoff struct {
	Claim    *Claim // for the lease that holds the name; nil: no lock of this process holds the name
	RetryNow bool   // the name was not released: the caller that left the queue had a permit, or nothing
	Grant
}

// Grant is a lock's share of what one statement got: a block of fencing tokens, for goroutines that waited when it was sent.
// They hold the name one after the other without another statement (I24).
type Grant struct {
	Fence         int64     // the fencing token of the lock
	Since         time.Time // when this process got the name
	HasWaiter     bool      // another process waited for the name at the last handoff
	First         int64     // the first token of the block
	Token         int64     // of the lock row: the last of the block
	Sent          time.Time // when the statement was sent
	Metadata      string    // of the lock row: that of the first waiter
	verifications int       // how many had begun before
}

// Word is what a waiter tells the head of the wait queue.
type Word struct {
	TTL      time.Duration // of the lease that it wants
	Permit   bool          // it wants a share or permit, and receives no handoff
	Metadata string
}

// mayHandOff reports whether to hand the name off to the next waiter of this process, instead of releasing it. If another
// process waits, this process hands the name off only until turnTime after it got the name (I25). The statement may wait
// for the row lock, so there is no handoff while the row-wait limiter is saturated. A waiter with another TTL would decline.
func (e ending) mayHandOff() bool {
	mine := !e.HasWaiter || time.Since(e.Since) < turnTime
	alone := !e.Permit && !e.isDedicated() && len(e.previous) == 0 // a permit, dedicated or previous leases do not pass to a waiter
	soon := !e.Keeper.Store.Saturated()
	word, _ := e.Keeper.Queue.Next(e.Name)
	return mine && alone && soon && e.MinHold == 0 && word.TTL == e.on.TTL && !word.Permit
}

// handOff hands the name off to the first waiter of this process (I24). If it cannot, it releases the name and leaves
// the wait queue. The caller has replaced the lock by a claim on the lease; see beginHandoff.
func (e ending) handOff(ctx context.Context, c *Claim) error {
	ls := e.on
	passed, returned := false, false
	defer func() {
		if passed {
			return
		}
		if !returned { // a driver panicked
			ls.Orphans.leave(e.Name, 0)
		}
		e.position.head.Leave()
		c.endClaim()
	}()
	next, err := e.next(ctx, c)
	token := next.Token
	e.trusted, e.cause = ls.trustedNow()
	if passed = token != 0 && e.trusted && ls.keeper.Queue.Pass(e.Name, next); passed {
		return nil
	}
	freed := false
	switch {
	case token != 0:
		freed, err = c.got(token).release(ctx, 0)
	case err != nil || e.trusted:
		// It may be unknown whether the token was bumped: maybe by this statement, which a driver has repeated, and which
		// then found nothing. The next holder has to use another lease, since a late release by lease would free its lock,
		// too (I18).
		ls.retire()
		freed, err = c.got(e.Token).free(ctx, false, func(ctx context.Context) (int64, error) {
			return ls.store.ReleaseByLease(ctx, e.Name, ls.ID, 0)
		})
	}
	returned = true
	return e.result(freed, err)
}

// next returns the handoff to the first waiter, by a statement unless the block has a token for it. Its Token is 0 if the
// name was not held, and after an error.
func (e ending) next(ctx context.Context, c *Claim) (next Handoff, err error) {
	word, came := e.Keeper.Queue.Next(e.Name)
	next = Handoff{Claim: c, Grant: e.Grant}
	// A block is over after a guard, whose transaction the next holder has to wait for, and after other statements with the
	// token of the row.
	if !e.touched.Load() && e.inBlock(word.Metadata, came) {
		c.verifications, next.Fence = e.verifications, e.Fence+1
		return next, nil
	}
	n := e.nextSize(e.Keeper.Queue.Alike(e.Name))
	next.Grant = Grant{Since: e.Since, Sent: time.Now(), Metadata: word.Metadata, verifications: c.verifications}
	wanted := false
	err = dberr.Once(bound.WithValuesOf(e.Keeper.Closing, ctx), dberr.AttemptTimeout, func(ctx context.Context) (err error) {
		next.Token, wanted, err = e.Keeper.Store.HandOff(ctx, e.key().row(e.on), n, []byte(word.Metadata))
		return err
	})
	next.HasWaiter = wanted || e.HasWaiter
	next.First = next.Token - n + 1
	next.Fence = next.First
	return next, err
}

// inBlock reports whether the block has a token for the first waiter, who came at a time with metadata. A block lasts for
// turnTime, since its statement is what tells of waiters in other processes.
func (g Grant) inBlock(metadata string, came time.Time) bool {
	fits := metadata == g.Metadata && came.Before(g.Sent)
	return fits && g.Fence < g.Token && time.Since(g.Sent) < turnTime
}

// nextSize returns how many tokens the next block has: twice as many as were used of this one, so that few are wasted, but
// no more than waiters with the same word, and one if locks are long.
func (g Grant) nextSize(waiters int) int64 {
	if time.Since(g.Sent) > 2*turnTime {
		return 1
	}
	return max(1, min(int64(waiters), 2*(g.Fence-g.First+1)))
}
