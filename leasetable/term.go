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
)

// term is one lease row of this Locker and the locks that hang on it. The goroutine keep renews
// it until it ends; a timer ends it at its deadline whatever keep is doing.
type term struct {
	locker *Locker
	store  *store
	id     []byte
	ttl    time.Duration
	wake   chan struct{} // tells keep to look again
	over   chan struct{} // closed when the term has ended and every lock was told

	mu       sync.Mutex
	trusted  time.Time           // guarded by mu: until when the database is sure to keep the lease
	deadline *clock.Timer        // guarded by mu: ends the term at trusted
	warning  *time.Timer         // guarded by mu: warns some time before
	locks    map[*Lease]struct{} // guarded by mu: the locks that are held
	claims   int                 // guarded by mu: claims under way
	retired  bool                // guarded by mu: takes no new claims
	strays   []*stray            // guarded by mu: names that a lost answer may have left held
	chasing  bool                // guarded by mu: somebody looks after the strays
	used     time.Time           // guarded by mu: when a claim last began or a lock last ended
	cause    error               // guarded by mu: why the term ended

	strayPlaces   []strayPlace // guarded by mu: places that a lost answer may have left taken
	chasingPlaces bool         // guarded by mu: somebody looks after them

	reviewed  news // guarded by mu: what was known when every lock was last looked at
	reviewing bool // guarded by mu: that is under way
	reviews   int  // guarded by mu: how often that has begun

	began time.Time     // when the row was sent
	pace  time.Duration // guarded by mu: how long the last renewal took, or the row
}

// margin is how long before the lease could expire the holder stops trusting it.
func (t *term) margin() time.Duration { return t.ttl / 6 }

// term returns the term for locks with this TTL, with a claim begun on it; if there is none yet,
// the lease row is committed first.
func (l *Locker) term(ctx context.Context, ttl time.Duration) (*term, error) {
	if t := l.current(ttl); t != nil {
		return t, nil
	}
	if _, err := l.opening.Wait(ctx, ttl); err != nil {
		return nil, err
	}
	if t := l.current(ttl); t != nil { // opened while we waited
		l.opening.Done(ttl)
		return t, nil
	}
	return l.openInBackground(ctx, ttl, func() { l.opening.Done(ttl) })
}

// openApart opens a term that takes no other claims.
func (l *Locker) openApart(ctx context.Context, ttl time.Duration) (*term, error) {
	return l.openInBackground(ctx, ttl, nil)
}

// openInBackground opens a term, as the turn of opening one that over gives up, or one that is apart. That goes on
// when the caller leaves: to connect may take longer than any caller has time, and the connection is that of all renewals.
func (l *Locker) openInBackground(ctx context.Context, ttl time.Duration, over func()) (*term, error) {
	type opened struct {
		*term
		err error
	}
	apart := over == nil
	if apart {
		over = func() {}
	}
	o, left, err := orLeave(ctx, l.start,
		func() opened {
			defer over()
			t, err := l.open(bound.To(l.closing, ctx), ttl, apart)
			return opened{t, err}
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
	return o.term, o.err
}

// open commits a lease row and returns its term, with a claim begun on it. One that is apart takes no
// other claims.
func (l *Locker) open(ctx context.Context, ttl time.Duration, apart bool) (*term, error) {
	t := &term{
		locker: l,
		store:  l.store,
		id:     make([]byte, 16),
		ttl:    ttl,
		wake:   make(chan struct{}, 1),
		over:   make(chan struct{}),
		locks:  make(map[*Lease]struct{}),
		claims: 1,

		retired: apart,
	}
	_, _ = rand.Read(t.id) // never fails, says its documentation
	// A lease that was confirmed later than this would be over for its holder.
	sent, err := l.grant(ctx, &l.store.keep, t.id, ttl, ttl-t.margin())
	if err != nil {
		return nil, err
	}
	t.began, t.pace = clock.Plain(sent), clock.Since(sent)
	if err := l.adopt(t, sent); err != nil {
		return nil, err
	}
	return t, nil
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
			_, err := l.store.change(ctx, p, grant,
				id, l.owner, l.host, os.Getpid(), ttl.Microseconds(), ttl.Microseconds())
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
func (l *Locker) current(ttl time.Duration) *term {
	l.mu.Lock()
	t := l.terms[ttl]
	l.mu.Unlock()
	if t == nil || !t.beginClaim() {
		return nil
	}
	return t
}

// adopt starts keeping a term whose row was sent at the given time.
func (l *Locker) adopt(t *term, sent time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Err() != nil { // nothing refers to the row; it expires
		return sqllock.ErrClosed
	}
	t.mu.Lock()
	t.used = clock.Plain(sent)
	t.trusted = sent.Add(t.ttl - t.margin())
	t.deadline, t.warning = clock.AfterFunc(t.trusted, t.expire), time.AfterFunc(t.ttl, t.warn)
	t.setTimers()
	t.reviewed = news{connection: l.store.keep.latest.Load()}
	t.mu.Unlock()
	if !t.retired {
		l.terms[t.ttl] = t
	}
	l.all[t] = struct{}{}
	l.running.Go(t.keep)
	return nil
}

// forget drops a term: from the current ones when it retires, from all when it has ended.
func (l *Locker) forget(t *term, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terms[t.ttl] == t {
		delete(l.terms, t.ttl)
	}
	if ended {
		delete(l.all, t)
	}
}

// beginClaim reports whether t takes a new claim. A claim keeps the term from ending unused.
func (t *term) beginClaim() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil || t.retired || !clock.Now().Before(t.trusted) {
		return false
	}
	t.claims++
	t.used = time.Now()
	return true
}

// endClaim ends a claim that took nothing.
func (t *term) endClaim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.claims--
	t.nudgeIfRetired()
}

// attach ends a claim that took a lock, and makes it one of the term's. When the term is over it
// returns why; the claim then goes on until the lock is given back. A review that has begun since
// there were so many has missed the lock.
func (t *term) attach(le *Lease, reviews int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return t.cause
	}
	if !clock.Now().Before(t.trusted) {
		return errLate
	}
	t.claims--
	t.locks[le] = struct{}{}
	if t.reviews != reviews {
		_ = t.locker.start(func() { t.reviewLate(le) }) // of a closed Locker every lock is over
	}
	return nil
}

// join makes a lock one of the term's that is also another's still; see Lease.move. The claim goes on.
func (t *term) join(le *Lease) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil || !clock.Now().Before(t.trusted) {
		return errMoveOn
	}
	t.locks[le] = struct{}{}
	return nil
}

// drop removes a lock that is lost, and reports whether it was there.
func (t *term) drop(le *Lease) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, held := t.locks[le]
	delete(t.locks, le)
	return held
}

// setOut removes a lock that is to be passed on, for a claim, and returns how many reviews have
// begun. It reports whether the lock was there.
func (t *term) setOut(le *Lease) (reviews int, held bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, held := t.locks[le]; !held || t.retired { // who looks for strays takes it for one
		return 0, false
	}
	delete(t.locks, le)
	t.claims++
	return t.reviews, true
}

// detach removes a lock that was released.
func (t *term) detach(le *Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.locks, le)
	t.used = time.Now()
	t.nudgeIfRetired()
}

// retire has the term take no new locks, and end when it has none.
func (t *term) retire() {
	t.mu.Lock()
	t.retired = true
	t.nudgeIfRetired()
	t.mu.Unlock()
	t.locker.forget(t, false)
}

// nudgeIfRetired makes keep look whether a retired term can end, or one whose connection others need. The caller holds mu.
func (t *term) nudgeIfRetired() {
	if t.retired || t.store.lacks() {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// trustedNow reports whether the database is sure to keep the lease at this moment, and why the
// term has ended if it has.
func (t *term) trustedNow() (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause == nil && clock.Now().Before(t.trusted), t.cause
}

// setTimers sets them by trusted. The caller holds mu.
func (t *term) setTimers() {
	t.deadline.Reset(t.trusted)
	t.warning.Reset(clock.Until(t.trusted) - t.ttl/4)
}

// warn tells that the locks will end soon unless a renewal is confirmed; one is overdue.
func (t *term) warn() {
	t.mu.Lock()
	left, locks := clock.Until(t.trusted), len(t.locks)
	t.mu.Unlock()
	if locks > 0 && left > 0 {
		t.locker.events.Expiring(context.Background(), left, locks)
	}
}

// sure is for how long the database is sure to keep the lease without another renewal.
func (t *term) sure() time.Duration {
	sure, _ := t.sureBy()
	return sure
}

// sureBy is what sure is, and how long the last renewal took.
func (t *term) sureBy() (sure, pace time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return 0, t.pace
	}
	return max(0, clock.Until(t.trusted)), t.pace
}

// expire ends the term at its deadline.
func (t *term) expire() {
	if trusted, _ := t.trustedNow(); !trusted {
		t.finish(t.late())
	}
}

// late is errLate, and says what TTL would do if that was too short to connect again.
func (t *term) late() error {
	took, left := t.store.keep.dialer.lastTook(), t.ttl/2 // see reconnecting in doc.go
	if _, patience := t.patience(); took+patience <= left {
		return errLate
	}
	least := (3 * took).Round(time.Millisecond)
	return fmt.Errorf("%w: connecting takes %v here, and the TTL of %v leaves %v for it; a TTL of %v would do",
		errLate, took.Round(time.Millisecond), t.ttl, left, least)
}

// errNoLease comes before why there is no term to claim on.
var errNoLease = errors.New("open a lease")

var errLate = fmt.Errorf("%w: no renewal was confirmed in time", sqllock.ErrExpired)

// finish ends the term and tells every lock. Only the first call counts.
func (t *term) finish(cause error) {
	t.mu.Lock()
	if t.cause != nil {
		t.mu.Unlock()
		return
	}
	t.cause = cause
	t.deadline.Stop()
	t.warning.Stop()
	for le := range t.locks {
		le.hold.End(cause)
		le.leave()
	}
	clear(t.locks)
	close(t.over)
	t.mu.Unlock()
	t.locker.forget(t, true)
}

// context ends when the database is no longer sure to keep the lease, or the Locker is closed.
func (t *term) context() (context.Context, context.CancelFunc) {
	t.mu.Lock()
	ctx, cancel := context.WithDeadline(context.Background(), clock.Plain(t.trusted))
	t.mu.Unlock()
	stop := context.AfterFunc(t.locker.closing, cancel)
	return ctx, func() { stop(); cancel() }
}
