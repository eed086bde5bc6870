package conn

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// loan is what a pool borrows from the other one, and lends to it.
type loan struct {
	from *Pool // the other pool

	// Set for the renewal pool only:
	turn   chan struct{}       // has room for one: a statement other than a renewal
	leases func() RenewalNeeds // what the leases need the connection for

	told func() // is called when the server is full

	at atomic.Pointer[time.Time] // when the server was last full; nil: never

	mu     sync.Mutex
	err    error       // guarded by mu: the error of a full server
	until  time.Time   // guarded by mu: no other attempt to connect is made before
	unused *time.Timer // guarded by mu: see giveBackLater
}

// RenewalNeeds is the state of all leases of a Locker that matters for lending. It is zero if there are none.
type RenewalNeeds struct {
	Sure time.Duration // for how long they are all sure to last
	TTL  time.Duration // the shortest
	Pace time.Duration // how long the last renewal took
}

// spare is for how long the renewal connection can be lent, or 0 if it cannot (I38). A statement that does not end in
// time costs the connection.
func (k RenewalNeeds) spare() time.Duration {
	switch {
	case k.TTL == 0:
		return dberr.AttemptTimeout
	case k.Sure < k.TTL/4, k.Sure/2 < 4*k.Pace: // renewals fail, or answers take long
		return 0
	}
	return min(dberr.AttemptTimeout, k.Sure/2)
}

// Beside runs f, which runs a statement other than a renewal on p. On the pool for renewals it first waits for its turn, as a
// borrower does (I38). within begins after that.
func (p *Pool) Beside(ctx context.Context, within time.Duration, f func(context.Context) error) error {
	if err := p.loan.takeTurn(ctx); err != nil {
		return dberr.Unsent(err)
	}
	defer p.loan.giveTurn()
	return dberr.Once(ctx, within, f)
}

// Within returns how long a statement other than a renewal may take on p in its turn: d, and on the pool for renewals three
// eighths of the shortest TTL at most. On a slow network it is three times what a renewal takes, if that is more, up to half
// of that TTL, or one and a half times what a renewal takes.
func (p *Pool) Within(d time.Duration) time.Duration {
	needs := p.loan.renewalNeeds()
	if needs.TTL == 0 {
		return d
	}
	return min(d, max(needs.TTL/8*3, min(3*needs.Pace, max(needs.TTL/2, needs.Pace*3/2))))
}

// takeTurn waits until nobody else has the turn, which every statement but a renewal needs on the connection for renewals, also
// while it waits for that connection. Other pools have no turns.
func (lo *loan) takeTurn(ctx context.Context) error {
	if !lo.renews() {
		return nil
	}
	select {
	case lo.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (lo *loan) giveTurn() {
	if lo.renews() {
		<-lo.turn
	}
}

// fullPause bounds how often a full server is asked for a connection.
const fullPause = 400 * time.Millisecond

// renews reports whether it is that of the renewal pool.
func (lo *loan) renews() bool { return lo.turn != nil }

// refused returns the error of the server if it was full just now.
func (lo *loan) refused() error {
	lo.mu.Lock()
	defer lo.mu.Unlock()
	if time.Now().Before(lo.until) {
		return lo.err
	}
	return nil
}

// noteFull notes that the server was full.
func (lo *loan) noteFull(err error) {
	pause := fullPause
	if ttl := lo.renewalNeeds().TTL; ttl > 0 {
		pause = min(pause, ttl/10)
	}
	now := time.Now()
	lo.at.Store(&now)
	lo.mu.Lock()
	lo.err, lo.until = err, now.Add(jitter.Around(pause))
	lo.mu.Unlock()
	if lo.told != nil {
		lo.told()
	}
}

// limited reports whether the server was full within the last IdleTime.
func (lo *loan) limited() bool {
	at := lo.at.Load()
	return at != nil && time.Since(*at) < IdleTime
}

// renewalNeeds is what the leases need the pool for. It is zero if that is not the renewal pool.
func (lo *loan) renewalNeeds() RenewalNeeds {
	if lo.leases == nil {
		return RenewalNeeds{}
	}
	return lo.leases()
}

// borrowsFirst reports whether a renewal should use an idle connection of the other pool instead of waiting for a new
// one. If so it starts to open a new one.
func (p *Pool) borrowsFirst() bool {
	if p.loan.renewalNeeds().TTL == 0 || p.loan.from.Stats().Idle == 0 || p.dialer.hasReady() {
		return false
	}
	p.prepare()
	return true
}

// prepare starts to open a connection for the next statement that needs one, unless the server is full.
func (p *Pool) prepare() {
	if p.loan.refused() == nil {
		p.dialer.prepare()
	}
}

// connectPatience is how long a statement waits for a new connection before it borrows one.
const connectPatience = time.Second

// connectPatience bounds ctx if there is a connection to borrow.
func (p *Pool) connectPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.loan.renews() || !p.lenderOpen() || p.loan.from.loan.renewalNeeds().spare() == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, connectPatience)
}

// errConnecting is the error of a statement that could not borrow a connection after connectPatience. Nothing was
// sent.
var errConnecting = &dberr.Error{Err: fmt.Errorf("%w: connecting is under way", dberr.ErrSlow), OutcomeKnown: true, Transient: true}

// lenderOpen reports whether the other pool has a connection, or is opening one. What that pool borrows does not count.
func (p *Pool) lenderOpen() bool {
	lender := p.loan.from
	return lender != nil && (lender.tracked.Load() > 0 || lender.dialer.isAwaited())
}

// giveBackLater closes the connection for renewals, which work has borrowed, if work does not do so again within
// WorkIdleTime, and no lease needs it.
func (p *Pool) giveBackLater() {
	lo := &p.loan
	lo.mu.Lock()
	defer lo.mu.Unlock()
	if lo.unused != nil {
		lo.unused.Reset(WorkIdleTime)
		return
	}
	lo.unused = time.AfterFunc(WorkIdleTime, func() {
		if p.loan.renewalNeeds().TTL == 0 {
			p.giveBack()
		}
	})
}

// borrow returns a connection that borrows one of the other pool when it is first used. why says why p has no new
// connection of its own. It is the error if there are no connections at all.
func (p *Pool) borrow(why error) (driver.Conn, error) {
	switch {
	case p.lenderOpen():
		return &lent{to: p, from: p.loan.from, why: why}, nil
	case p.narrow():
		return nil, driver.ErrBadConn // database/sql asks again, and waits for one of those that there are
	}
	return nil, why
}

// borrowing is the key of contexts under which a pool opens no connection.
type borrowing struct{}

// errNotLent is the error of a pool that has no connection to lend.
var errNotLent = errors.New("leasetable: there is no connection to borrow")
