package leasetable

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// lease is one lease row of this Locker and the locks that are attached to it. The goroutine renewLoop renews it until
// it ends. A timer ends it at its deadline, whatever renewLoop is doing.
type lease struct {
	locker *Locker
	store  *store.Store
	id     []byte
	ttl    time.Duration
	wake   chan struct{} // makes renewLoop check whether the lease can end
	ended  chan struct{} // closed when the lease has ended and the context of every lock is cancelled

	mu       sync.Mutex
	trusted  time.Time           // guarded by mu: the database is sure to keep the lease until then
	deadline *clock.Timer        // guarded by mu: ends the lease at trusted
	warning  *time.Timer         // guarded by mu: warns some time before
	locks    map[*Lease]struct{} // guarded by mu: the locks that are held
	claims   int                 // guarded by mu: claims under way
	retired  bool                // guarded by mu: takes no new claims
	orphans  []*orphan           // guarded by mu: names that a lost answer may have left held
	reaping  bool                // guarded by mu: reapOrphans runs
	used     time.Time           // guarded by mu: when a claim last began or a lock last ended
	cause    error               // guarded by mu: why the lease ended

	orphanPermits  []orphanPermit // guarded by mu: permits that a lost answer may have left taken
	reapingPermits bool           // guarded by mu: reapPermits runs

	verified      changeMark // guarded by mu: the change mark of the last complete verification of all locks
	verifying     bool       // guarded by mu: a verification is under way
	verifications int        // guarded by mu: how many verifications have begun

	failureTold time.Time // guarded by mu: when a failed renewal was last reported; zero: the last renewal was confirmed

	began time.Time     // when the row was sent
	pace  time.Duration // guarded by mu: how long the last renewal took, or the insert of the row
}

// margin is how long before the possible expiry of the lease the holder stops trusting it.
func (ls *lease) margin() time.Duration { return ls.ttl / 6 }

// leaseFor returns the lease for locks with this TTL, with a claim begun on it. If there is none yet, it commits a new
// lease row.
func (l *Locker) leaseFor(ctx context.Context, ttl time.Duration) (*lease, error) {
	if ls := l.current(ttl); ls != nil {
		return ls, nil
	}
	if _, err := l.opening.Wait(ctx, ttl); err != nil {
		return nil, err
	}
	if ls := l.current(ttl); ls != nil { // opened while we waited
		l.opening.Done(ttl)
		return ls, nil
	}
	return l.openInBackground(ctx, ttl, func() { l.opening.Done(ttl) })
}

// openDedicated opens a lease that takes no other claims.
func (l *Locker) openDedicated(ctx context.Context, ttl time.Duration) (*lease, error) {
	return l.openInBackground(ctx, ttl, nil)
}

// openInBackground opens a lease: the shared one of its TTL, for which over leaves the wait queue of openings, or a
// dedicated one if over is nil. If the caller leaves, the opening goes on: connecting may take longer than any caller
// waits, and all renewals use the connection.
func (l *Locker) openInBackground(ctx context.Context, ttl time.Duration, over func()) (*lease, error) {
	type opened struct {
		*lease
		err error
	}
	apart := over == nil
	if apart {
		over = func() {}
	}
	o, left, err := orLeave(ctx, l.start,
		func() opened {
			defer over()
			ls, err := l.open(bound.WithValuesOf(l.closing, ctx), ttl, apart)
			return opened{ls, err}
		},
		func(o opened) {
			if o.err == nil {
				o.endClaim()
			}
		})
	switch {
	case err != nil:
		over()
		return nil, err
	case left:
		return nil, fmt.Errorf("%w: %w", store.ErrNoLease, context.Cause(ctx))
	}
	return o.lease, o.err
}

// open commits a lease row and returns the lease, with a claim begun on it. If apart is set the lease is dedicated: it
// takes no other claims.
func (l *Locker) open(ctx context.Context, ttl time.Duration, apart bool) (*lease, error) {
	ls := &lease{
		locker: l,
		store:  l.store,
		id:     make([]byte, 16),
		ttl:    ttl,
		wake:   make(chan struct{}, 1),
		ended:  make(chan struct{}),
		locks:  make(map[*Lease]struct{}),
		claims: 1,

		retired: apart,
	}
	_, _ = rand.Read(ls.id) // never fails, according to its documentation
	// A confirmation after that time would come after the deadline.
	sent, err := l.store.OpenLease(ctx, l.leaseRow(ls.id, ttl), ttl-ls.margin())
	if err != nil {
		return nil, err
	}
	ls.began, ls.pace = clock.Plain(sent), clock.Since(sent)
	if err := l.startLease(ls, sent); err != nil {
		return nil, err
	}
	return ls, nil
}

// LeaseRow returns a new lease row of l.
func (l *Locker) leaseRow(id []byte, ttl time.Duration) store.LeaseRow {
	return store.LeaseRow{ID: id, Owner: l.owner, Host: l.host, TTL: ttl}
}

// current returns the lease in use for ttl, with a claim begun on it, or nil.
func (l *Locker) current(ttl time.Duration) *lease {
	l.mu.Lock()
	ls := l.leases[ttl]
	l.mu.Unlock()
	if ls == nil || !ls.beginClaim() {
		return nil
	}
	return ls
}

// startLease starts the timers and the renewals of a lease whose row was sent at the given time. It returns ErrClosed
// if the Locker is closed.
func (l *Locker) startLease(ls *lease, sent time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Err() != nil { // nothing refers to the row; it expires
		return sqllock.ErrClosed
	}
	ls.mu.Lock()
	ls.used = clock.Plain(sent)
	ls.trusted = sent.Add(ls.ttl - ls.margin())
	ls.deadline, ls.warning = clock.AfterFunc(ls.trusted, ls.expire), time.AfterFunc(ls.ttl, ls.warn)
	ls.setTimers()
	ls.verified = changeMark{connection: l.store.RenewalConnection()}
	ls.mu.Unlock()
	if !ls.retired {
		l.leases[ls.ttl] = ls
	}
	l.all[ls] = struct{}{}
	l.running.Go(ls.renewLoop)
	return nil
}

// forget removes a lease from the current ones when it retires, and from all when it has ended.
func (l *Locker) forget(ls *lease, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases[ls.ttl] == ls {
		delete(l.leases, ls.ttl)
	}
	if ended {
		delete(l.all, ls)
	}
}

// beginClaim begins a claim, and reports whether it did. A lease that is over or retired takes no claims. A claim keeps
// the lease from ending unused.
func (ls *lease) beginClaim() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.cause != nil || ls.retired || !clock.Now().Before(ls.trusted) {
		return false
	}
	ls.claims++
	ls.used = time.Now()
	return true
}

// endClaim ends a claim that took no lock.
func (ls *lease) endClaim() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.claims--
	ls.wakeIfRetired()
}

// attach ends a claim that took a lock, and adds the lock to the lease. If the lease is over, attach returns why, and
// the claim goes on until the lock is released. reviews is how many verifications had begun before the claim. If one
// has begun since, it has missed the lock, which is then verified on its own.
func (ls *lease) attach(le *Lease, reviews int) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.cause != nil {
		return ls.cause
	}
	if !clock.Now().Before(ls.trusted) {
		return errLate
	}
	ls.claims--
	ls.locks[le] = struct{}{}
	if ls.verifications != reviews {
		_ = ls.locker.start(func() { ls.verifyMissed(le) }) // if the Locker is closed, every lock is over
	}
	return nil
}

// join adds a lock that is still attached to another lease, too; see Lease.move. The claim goes on. It returns
// errMoveOn if the lease is over.
func (ls *lease) join(le *Lease) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.cause != nil || !clock.Now().Before(ls.trusted) {
		return errMoveOn
	}
	ls.locks[le] = struct{}{}
	return nil
}

// drop removes a lock that is lost, and reports whether it was there.
func (ls *lease) drop(le *Lease) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	_, held := ls.locks[le]
	delete(ls.locks, le)
	return held
}

// beginHandoff replaces a lock that is to be handed off by a claim. It returns how many verifications have begun, and
// whether the lock was there. A retired lease hands nothing off.
func (ls *lease) beginHandoff(le *Lease) (reviews int, held bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if _, held := ls.locks[le]; !held || ls.retired { // the search for orphans would free the name
		return 0, false
	}
	delete(ls.locks, le)
	ls.claims++
	return ls.verifications, true
}

// detach removes a lock that was released or moved.
func (ls *lease) detach(le *Lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.locks, le)
	ls.used = time.Now()
	ls.wakeIfRetired()
}

// retire makes the lease take no new claims, and end when it has no locks.
func (ls *lease) retire() {
	ls.mu.Lock()
	ls.retired = true
	ls.wakeIfRetired()
	ls.mu.Unlock()
	ls.locker.forget(ls, false)
}

// wakeIfRetired makes renewLoop check whether the lease can end, if it is retired, or if the server has no connection
// left for others. The caller holds mu.
func (ls *lease) wakeIfRetired() {
	if ls.retired || ls.store.Limited() {
		select {
		case ls.wake <- struct{}{}:
		default:
		}
	}
}

// trustedNow reports whether the database is sure to keep the lease at this moment. If the lease has ended, it returns
// why.
func (ls *lease) trustedNow() (bool, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.cause == nil && clock.Now().Before(ls.trusted), ls.cause
}

// setTimers sets the timers by trusted. The caller holds mu.
func (ls *lease) setTimers() {
	ls.deadline.Reset(ls.trusted)
	ls.warning.Reset(clock.Until(ls.trusted) - ls.ttl/4)
}

// warn reports that the locks will end soon unless a renewal is confirmed. A renewal is overdue then.
func (ls *lease) warn() {
	ls.mu.Lock()
	left, locks := clock.Until(ls.trusted), len(ls.locks)
	ls.mu.Unlock()
	if locks > 0 && left > 0 {
		ls.locker.events.Expiring(context.Background(), left, locks)
	}
}

// sure returns how long the database is sure to keep the lease without another renewal.
func (ls *lease) sure() time.Duration {
	sure, _ := ls.sureBy()
	return sure
}

// sureBy returns what sure returns, and how long the last renewal took.
func (ls *lease) sureBy() (sure, pace time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.cause != nil {
		return 0, ls.pace
	}
	return max(0, clock.Until(ls.trusted)), ls.pace
}

// expire ends the lease at its deadline.
func (ls *lease) expire() {
	if trusted, _ := ls.trustedNow(); !trusted {
		ls.finish(ls.late())
	}
}

// late returns errLate. If the TTL was too short to reconnect, the error names a TTL that would do.
func (ls *lease) late() error {
	took, left := ls.store.ConnectingTook(), ls.ttl/2 // see TTL and network in doc.go
	if _, patience := ls.renewTimeouts(); took+patience <= left {
		return errLate
	}
	least := (3 * took).Round(time.Millisecond)
	return fmt.Errorf("%w: connecting takes %v here, and the TTL of %v leaves %v for it; a TTL of %v would do",
		errLate, took.Round(time.Millisecond), ls.ttl, left, least)
}

var errLate = fmt.Errorf("%w: no renewal was confirmed in time", sqllock.ErrExpired)

// finish ends the lease, and cancels the context of every lock. Only the first call counts.
func (ls *lease) finish(cause error) {
	ls.mu.Lock()
	if ls.cause != nil {
		ls.mu.Unlock()
		return
	}
	ls.cause = cause
	ls.deadline.Stop()
	ls.warning.Stop()
	for le := range ls.locks {
		le.hold.End(cause)
		le.leave()
	}
	clear(ls.locks)
	close(ls.ended)
	ls.mu.Unlock()
	ls.locker.forget(ls, true)
}

// untilDeadline returns a context that ends when the database is no longer sure to keep the lease, or when the Locker
// is closed.
func (ls *lease) untilDeadline() (context.Context, context.CancelFunc) {
	ls.mu.Lock()
	ctx, cancel := context.WithDeadline(context.Background(), clock.Plain(ls.trusted))
	ls.mu.Unlock()
	stop := context.AfterFunc(ls.locker.closing, cancel)
	return ctx, func() { stop(); cancel() }
}
