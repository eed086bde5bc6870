package lease

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Claim is the claim of one caller on one name for a lease. It keeps the lease from ending unused. It is over after
// Commit or Abandon.
type Claim struct {
	*Lease
	Name          string
	verifications int // how many had begun before the claim
}

// Outcome says what a claim did to its name.
type Outcome struct {
	Token   int64       // 0: the name was not acquired
	State   store.State // what holds the name, if it was not acquired
	Permit  bool        // the claim was for a share or permit
	Unknown bool        // the answer to a statement that may have acquired the name was lost
	Err     error
}

// Begin begins a claim on a name for the lease of this TTL, which takes many claims, or for a dedicated one, which takes no
// other.
func (k *Keeper) Begin(ctx context.Context, name string, ttl time.Duration, dedicated bool) (*Claim, error) {
	ls, err := k.leaseFor(ctx, ttl, dedicated)
	if err != nil {
		return nil, err
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return &Claim{Lease: ls, Name: name, verifications: ls.verification.count}, nil
}

// Timeout bounds a statement that may acquire the name. While its answer is awaited the lease is renewed, and if the answer is
// lost nobody has the name. So it is no longer than the TTL, unless that is too short for one attempt (I15).
func (c *Claim) Timeout() time.Duration {
	return min(dberr.ConflictTimeout, max(dberr.AttemptTimeout, c.TTL))
}

// Commit ends a claim that acquired the name: the lock is attached to the lease. If the lease is over, Commit returns
// why, and the claim goes on.
func (c *Claim) Commit(h *Held) error {
	c.loseForgotten(h)
	return c.attach(h, c.verifications)
}

// Abandon ends a claim that gives the caller nothing: it gives back what the claim acquired or may have acquired (I17,
// I19). It reports whether another claim may follow at once. It may not if the name was not confirmed to be free,
// because the old lease could still hold it. Permits do not exclude each other like that.
func (c *Claim) Abandon(ctx context.Context, o Outcome) bool {
	defer c.endClaim()
	ctx = context.WithoutCancel(ctx)
	if o.Permit {
		if o.Token != 0 {
			if _, err := c.got(o.Token).releasePermit(ctx); err != nil {
				c.Orphans.leavePermit(c.Name, o.Token)
			}
		}
		return true
	}
	unknown := o.Unknown || o.Token != 0
	defer func() { // also if a driver panics
		if unknown {
			c.Orphans.leave(c.Name, 0)
		}
	}()
	if o.Token != 0 {
		_, err := c.got(o.Token).release(ctx, 0)
		unknown = err != nil
	}
	return !unknown
}

// got is what the claim acquired, with a token.
func (c *Claim) got(token int64) holding {
	return holding{Lease: c.Lease, name: c.Name, token: token}
}
