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
func (h *Held) mayHandOff(ls *Lease) bool {
	mine := !h.HasWaiter || time.Since(h.Since) < turnTime
	alone := !h.Permit && !h.isDedicated() && len(h.previous) == 0 // a permit, dedicated or previous leases do not pass to a waiter
	soon := !h.Keeper.Store.Saturated()
	word, _ := h.Keeper.Queue.Next(h.Name)
	return mine && alone && soon && h.MinHold == 0 && word.TTL == ls.TTL && !word.Permit
}

// handOff hands the name off to the first waiter of this process (I24). If it cannot, it releases the name and leaves
// the wait queue. The caller has replaced the lock by a claim on the lease; see beginHandoff.
func (h *Held) handOff(ctx context.Context, c *Claim) error {
	ls := c.Lease
	passed, returned := false, false
	defer func() {
		if passed {
			return
		}
		if !returned { // a driver panicked
			ls.Orphans.leave(h.Name, 0)
		}
		h.position.head.Leave()
		c.endClaim()
	}()
	next, err := h.next(ctx, c)
	token := next.Token
	trusted, cause := ls.trustedNow()
	if passed = token != 0 && trusted && ls.keeper.Queue.Pass(h.Name, next); passed {
		return nil
	}
	freed := false
	switch {
	case token != 0:
		freed, err = c.got(token).release(ctx, 0)
	case err != nil || trusted:
		// It may be unknown whether the token was bumped: maybe by this statement, which a driver has repeated, and which
		// then found nothing. The next holder has to use another lease, since a late release by lease would free its lock,
		// too (I18).
		ls.retire()
		freed, err = c.got(h.Token).free(ctx, false, func(ctx context.Context) (int64, error) {
			return ls.store.ReleaseByLease(ctx, h.Name, ls.ID, 0)
		})
	}
	returned = true
	return ending{h, ls, h.MinHold, trusted, cause}.result(freed, err)
}

// next returns the handoff to the first waiter, by a statement unless the block has a token for it. Its Token is 0 if the
// name was not held, and after an error.
func (h *Held) next(ctx context.Context, c *Claim) (next Handoff, err error) {
	word, came := h.Keeper.Queue.Next(h.Name)
	next = Handoff{Claim: c, Grant: h.Grant}
	if h.inBlock(word.Metadata, came) {
		c.verifications, next.Fence = h.verifications, h.Fence+1
		return next, nil
	}
	n := h.blockSize()
	next.Grant = Grant{Since: h.Since, Sent: time.Now(), Metadata: word.Metadata, verifications: c.verifications}
	wanted := false
	err = dberr.Once(bound.WithValuesOf(h.Keeper.Closing, ctx), dberr.AttemptTimeout, func(ctx context.Context) (err error) {
		next.Token, wanted, err = h.Keeper.Store.HandOff(ctx, h.row(c.Lease), n, []byte(word.Metadata))
		return err
	})
	next.HasWaiter = wanted || h.HasWaiter
	next.First = next.Token - n + 1
	next.Fence = next.First
	return next, err
}

// inBlock reports whether the block has a token for the first waiter, who came at a time with metadata. A block lasts for
// turnTime, since its statement is what tells of waiters in other processes. It is over after a guard, whose transaction
// the next holder has to wait for, and after other statements with the token of the row.
func (h *Held) inBlock(metadata string, came time.Time) bool {
	fits := metadata == h.Metadata && came.Before(h.Sent)
	return fits && h.Fence < h.Token && time.Since(h.Sent) < turnTime && !h.touched.Load()
}

// blockSize returns how many tokens the next block has: twice as many as were used of this one, so that few are wasted, but
// no more than waiters with the same word, and one if locks are long.
func (h *Held) blockSize() int64 {
	if time.Since(h.Sent) > 2*turnTime {
		return 1
	}
	return max(1, min(int64(h.Keeper.Queue.Alike(h.Name)), 2*(h.Fence-h.First+1)))
}
