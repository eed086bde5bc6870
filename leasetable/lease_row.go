package leasetable

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/schema"
)

// term is one lease row of this Locker and the locks that hang on it. The goroutine keep renews
// it until it ends; a timer ends it at its deadline whatever keep is doing.
type lease struct {
	locker *Locker
	store  *store
	id     []byte
	ttl    time.Duration
	wake   chan struct{} // tells keep to look again
	ended  chan struct{} // closed when the term has ended and every lock was told

	mu       sync.Mutex
	trusted  time.Time           // guarded by mu: until when the database is sure to keep the lease
	deadline *clock.Timer        // guarded by mu: ends the term at trusted
	warning  *time.Timer         // guarded by mu: warns some time before
	locks    map[*Lease]struct{} // guarded by mu: the locks that are held
	claims   int                 // guarded by mu: claims under way
	retired  bool                // guarded by mu: takes no new claims
	orphans  []*orphan           // guarded by mu: names that a lost answer may have left held
	reaping  bool                // guarded by mu: somebody looks after the strays
	used     time.Time           // guarded by mu: when a claim last began or a lock last ended
	cause    error               // guarded by mu: why the term ended

	orphanPermits  []orphanPermit // guarded by mu: places that a lost answer may have left taken
	reapingPermits bool           // guarded by mu: somebody looks after them

	verified      changeMark // guarded by mu: what was known when every lock was last looked at
	verifying     bool       // guarded by mu: that is under way
	verifications int        // guarded by mu: how often that has begun

	failureTold time.Time // guarded by mu: when somebody was told last that a renewal failed; zero: the last one was confirmed

	began time.Time     // when the row was sent
	pace  time.Duration // guarded by mu: how long the last renewal took, or the row
}

// margin is how long before the lease could expire the holder stops trusting it.
func (ls *lease) margin() time.Duration { return ls.ttl / 6 }

// term returns the term for locks with this TTL, with a claim begun on it; if there is none yet,
// the lease row is committed first.
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

// openApart opens a term that takes no other claims.
func (l *Locker) openDedicated(ctx context.Context, ttl time.Duration) (*lease, error) {
	return l.openInBackground(ctx, ttl, nil)
}

// openInBackground opens a term, as the turn of opening one that over gives up, or one that is apart. That goes on
// when the caller leaves: to connect may take longer than any caller has time, and the connection is that of all renewals.
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
		return nil, fmt.Errorf("%w: %w", errNoLease, context.Cause(ctx))
	}
	return o.lease, o.err
}

// open commits a lease row and returns its term, with a claim begun on it. One that is apart takes no
// other claims.
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
	_, _ = rand.Read(ls.id) // never fails, says its documentation
	// A lease that was confirmed later than this would be over for its holder.
	sent, err := l.grant(ctx, &l.store.renewals, ls.id, ttl, ttl-ls.margin())
	if err != nil {
		return nil, err
	}
	ls.began, ls.pace = clock.Plain(sent), clock.Since(sent)
	if err := l.startLease(ls, sent); err != nil {
		return nil, err
	}
	return ls, nil
}

// grant commits a lease row. It returns when the statement was sent.
func (l *Locker) grant(ctx context.Context, p *pool, id []byte, ttl, within time.Duration) (sent time.Time, err error) {
	// The statement has less time than connecting may take.
	if err := once(ctx, connectTimeout, p.connected); err != nil {
		return sent, fmt.Errorf("%w: %w", errNoLease, err)
	}
	err = retryConflicts(ctx, func(ctx context.Context) error {
		sent = clock.Now()
		return once(ctx, min(within, attemptTimeout), func(ctx context.Context) error {
			rows, err := l.store.change(ctx, p, openLease,
				id, l.owner, l.host, os.Getpid(), ttl.Microseconds(), ttl.Microseconds(), schema.Version)
			if err == nil && rows == 0 {
				err = errOldProgram
			}
			return err
		})
	})
	if err != nil {
		if within < attemptTimeout && errors.Is(err, errSlow) && ctx.Err() == nil {
			err = fmt.Errorf("%w within the %v that a TTL of %v leaves: it has to be longer here", err, within, ttl)
		}
		return sent, fmt.Errorf("%w: %w", errNoLease, err)
	}
	return sent, nil
}

// current returns the term in use for ttl, with a claim begun on it, or nil.
func (l *Locker) current(ttl time.Duration) *lease {
	l.mu.Lock()
	ls := l.leases[ttl]
	l.mu.Unlock()
	if ls == nil || !ls.beginClaim() {
		return nil
	}
	return ls
}

// adopt starts keeping a term whose row was sent at the given time.
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
	ls.verified = changeMark{connection: l.store.renewals.latest.Load()}
	ls.mu.Unlock()
	if !ls.retired {
		l.leases[ls.ttl] = ls
	}
	l.all[ls] = struct{}{}
	l.running.Go(ls.renewLoop)
	return nil
}

// forget drops a term: from the current ones when it retires, from all when it has ended.
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

// beginClaim reports whether t takes a new claim. A claim keeps the term from ending unused.
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

// endClaim ends a claim that took nothing.
func (ls *lease) endClaim() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.claims--
	ls.wakeIfRetired()
}

// attach ends a claim that took a lock, and makes it one of the term's. When the term is over it
// returns why; the claim then goes on until the lock is given back. A review that has begun since
// there were so many has missed the lock.
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
		_ = ls.locker.start(func() { ls.verifyMissed(le) }) // of a closed Locker every lock is over
	}
	return nil
}

// join makes a lock one of the term's that is also another's still; see Lease.move. The claim goes on.
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

// setOut removes a lock that is to be passed on, for a claim, and returns how many reviews have
// begun. It reports whether the lock was there.
func (ls *lease) beginHandoff(le *Lease) (reviews int, held bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if _, held := ls.locks[le]; !held || ls.retired { // who looks for strays takes it for one
		return 0, false
	}
	delete(ls.locks, le)
	ls.claims++
	return ls.verifications, true
}

// detach removes a lock that was released.
func (ls *lease) detach(le *Lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.locks, le)
	ls.used = time.Now()
	ls.wakeIfRetired()
}

// retire has the term take no new locks, and end when it has none.
func (ls *lease) retire() {
	ls.mu.Lock()
	ls.retired = true
	ls.wakeIfRetired()
	ls.mu.Unlock()
	ls.locker.forget(ls, false)
}

// nudgeIfRetired makes keep look whether a retired term can end, or one whose connection others need. The caller holds mu.
func (ls *lease) wakeIfRetired() {
	if ls.retired || ls.store.limited() {
		select {
		case ls.wake <- struct{}{}:
		default:
		}
	}
}

// trustedNow reports whether the database is sure to keep the lease at this moment, and why the
// term has ended if it has.
func (ls *lease) trustedNow() (bool, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.cause == nil && clock.Now().Before(ls.trusted), ls.cause
}

// setTimers sets them by trusted. The caller holds mu.
func (ls *lease) setTimers() {
	ls.deadline.Reset(ls.trusted)
	ls.warning.Reset(clock.Until(ls.trusted) - ls.ttl/4)
}

// warn tells that the locks will end soon unless a renewal is confirmed; one is overdue.
func (ls *lease) warn() {
	ls.mu.Lock()
	left, locks := clock.Until(ls.trusted), len(ls.locks)
	ls.mu.Unlock()
	if locks > 0 && left > 0 {
		ls.locker.events.Expiring(context.Background(), left, locks)
	}
}

// sure is for how long the database is sure to keep the lease without another renewal.
func (ls *lease) sure() time.Duration {
	sure, _ := ls.sureBy()
	return sure
}

// sureBy is what sure is, and how long the last renewal took.
func (ls *lease) sureBy() (sure, pace time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.cause != nil {
		return 0, ls.pace
	}
	return max(0, clock.Until(ls.trusted)), ls.pace
}

// expire ends the term at its deadline.
func (ls *lease) expire() {
	if trusted, _ := ls.trustedNow(); !trusted {
		ls.finish(ls.late())
	}
}

// late is errLate, and says what TTL would do if that was too short to connect again.
func (ls *lease) late() error {
	took, left := ls.store.renewals.dialer.lastTook(), ls.ttl/2 // see reconnecting in doc.go
	if _, patience := ls.renewTimeouts(); took+patience <= left {
		return errLate
	}
	least := (3 * took).Round(time.Millisecond)
	return fmt.Errorf("%w: connecting takes %v here, and the TTL of %v leaves %v for it; a TTL of %v would do",
		errLate, took.Round(time.Millisecond), ls.ttl, left, least)
}

// errOldProgram refuses tables whose lowest version of a program is above that of this one; see docs/upgrading.md.
var errOldProgram = fmt.Errorf("%w: the tables take a later release of this program: upgrade it (`sqllock schema check` says to which version)", sqllock.ErrSchema)

// errNoLease comes before why there is no term to claim on.
var errNoLease = errors.New("open a lease")

var errLate = fmt.Errorf("%w: no renewal was confirmed in time", sqllock.ErrExpired)

// finish ends the term and tells every lock. Only the first call counts.
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

// context ends when the database is no longer sure to keep the lease, or the Locker is closed.
func (ls *lease) untilDeadline() (context.Context, context.CancelFunc) {
	ls.mu.Lock()
	ctx, cancel := context.WithDeadline(context.Background(), clock.Plain(ls.trusted))
	ls.mu.Unlock()
	stop := context.AfterFunc(ls.locker.closing, cancel)
	return ctx, func() { stop(); cancel() }
}
