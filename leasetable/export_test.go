package leasetable

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
)

// Waiting is how many goroutines are in line for name.
func Waiting(l *Locker, name string) int { return l.queue.Waiting(name) }

// Spoil has names look free on MySQL that are held, and the server refuse the statement that reads which of them were
// taken for many. On MariaDB it has it refuse the statement, too, that needs neither.
func Spoil(l *Locker) {
	l.store.texts[acquireAtOnce] = "SELECT name FROM sqllock_nowhere"
	l.store.texts[freeMany] = strings.Replace(l.store.texts[freeMany], "lease_id IS NULL", "token > 0", 1)
	l.store.texts[takenMany] = "SELECT name, token FROM sqllock_nowhere WHERE name = ?"
}

// LookNoMore has who hears of releases not look for them as well, for an hour.
func LookNoMore(l *Locker) { l.notifier.pause = time.Hour }

// Hears reports whether l hears of releases.
func Hears(l *Locker) bool { return l.notifier.subscribed() }

// Listen is what a goroutine does that polls for name.
func Listen(l *Locker, name string) (stop func()) {
	_, stop = l.notifier.listen(name)
	return stop
}

// Waits reports whether a goroutine of l polls for name.
func Waits(l *Locker, name string) bool {
	l.notifier.mu.Lock()
	defer l.notifier.mu.Unlock()
	_, waits := l.notifier.waiting[name]
	return waits || l.notifier.connect == nil
}

// Strays is how many places a lost answer may have left taken.
func Strays(l *Locker) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ls := range l.all {
		ls.mu.Lock()
		n += len(ls.orphanPermits)
		ls.mu.Unlock()
	}
	return n
}

// Share makes a sharing whose statements are run by f, for one name after the other, and returns what asks for one.
func Share(f func(name string)) (ask func(name string) (done <-chan struct{})) {
	frees, takes := new(batcher), new(batcher)
	newBatchers(frees, takes)
	takes.hand = func(lead func()) error {
		go lead()
		return nil
	}
	takes.within = time.Hour
	takes.one = func(_ context.Context, req *request) (result, error) {
		f(req.name)
		return result{}, nil
	}
	takes.many = func(_ context.Context, reqs []*request) (map[string]result, error) {
		for _, req := range reqs {
			f(req.name)
		}
		return nil, nil
	}
	return func(name string) <-chan struct{} {
		req := &request{name: name}
		takes.join(context.Background(), req)
		return req.done
	}
}

// TakeMany takes those of names that are free, for l's lease, by the statements for many, and returns their tokens.
func TakeMany(ctx context.Context, l *Locker, names []string) (map[string]int64, error) {
	ls, err := l.leaseFor(ctx, l.ttl)
	if err != nil {
		return nil, err
	}
	defer ls.endClaim()
	reqs := make([]*request, len(names))
	for i, name := range names {
		reqs[i] = &request{name: name, id: ls.id, metadata: []byte{}}
	}
	got, err := l.store.acquireMany(ctx, reqs)
	tokens := make(map[string]int64)
	for name, t := range got {
		tokens[name] = t.Token
	}
	return tokens, err
}

// FreeMany frees the names of leases by the statements for many. It returns those that it freed, and whether another process
// waits for them.
func FreeMany(ctx context.Context, l *Locker, leases []*Lease) (map[string]bool, error) {
	reqs := make([]*request, len(leases))
	for i, le := range leases {
		reqs[i] = &request{name: le.Name(), id: le.attachedTo().lease.id, token: le.token, minHold: le.minHold}
	}
	freed, err := l.store.releaseMany(ctx, reqs)
	wanted := make(map[string]bool, len(freed))
	for name, t := range freed {
		wanted[name] = t.HasWaiter
	}
	return wanted, err
}

// Explain has the server explain how it finds names in each of the statements that lock them. It returns the ways, by
// statement.
func Explain(ctx context.Context, l *Locker, names []string) (map[string]string, error) {
	reqs := make([]*request, len(names))
	for i, name := range names {
		reqs[i] = &request{name: name, token: 1, id: make([]byte, 16)}
	}
	ways := make(map[string]string)
	for _, st := range []statement{freeMany, acquireMany, heldMany, releaseMany, acquireAtOnce, releaseAtOnce} {
		text := l.store.textFor(st, reqs, "1")
		at := strings.LastIndex(text, "\nUPDATE")
		if at < 0 {
			at = strings.LastIndex(text, "\nSELECT")
		}
		rows, err := l.store.work.QueryxContext(ctx, "EXPLAIN FORMAT=TRADITIONAL"+text[at:])
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			way := make(map[string]any)
			if err := rows.MapScan(way); err != nil {
				return nil, err
			}
			if _, ok := way["type"]; !ok {
				return nil, fmt.Errorf("%s is not explained: %v", st, way)
			}
			how, _ := way["type"].([]byte)
			ways[string(st)] += string(how)
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return ways, nil
}

// Statements returns the texts of the statements of l's database, by their names.
func Statements(l *Locker) map[string]string {
	texts := make(map[string]string)
	for st, text := range l.store.texts {
		texts[string(st)] = text
	}
	return texts
}

// BreakOff closes the socket of a connection of l's under the driver, which does not know that, and has just used it.
func BreakOff(ctx context.Context, l *Locker) error {
	for {
		conn, err := l.store.work.Conn(ctx)
		if err != nil {
			return err
		}
		own := false // or a borrowed one, while that of its own takes long to open
		err = conn.Raw(func(dc any) error {
			var c *tracked
			if c, own = dc.(*tracked); !own {
				return nil
			}
			return c.driverConn.(*postgresConn).socket.Close()
		})
		if err = errors.Join(err, conn.Close()); own || err != nil { // into the pool
			return err
		}
	}
}

// SpoilRest has the server refuse the statement that takes those of many names which the first one did not.
func SpoilRest(l *Locker) {
	l.store.texts[acquireUnlocked] = "SELECT FROM sqllock_nowhere WHERE $1 || $2::bytea || $3::bytea IS NULL"
	l.store.texts[insertMany] = "INSERT INTO sqllock_nowhere VALUES {values}"
}

// Work is the pool of connections for statements that take and free names.
func Work(l *Locker) *sqlx.DB { return l.store.work.DB }

// BehindPooler reports whether l knows of a pooler in between.
func BehindPooler(l *Locker) bool {
	return l.store.work.pooler.Load() || l.store.renewals.pooler.Load()
}

// KnowsSocket reports whether l cuts its connections to MySQL off itself.
func KnowsSocket(t *testing.T, l *Locker) (known bool) {
	t.Helper()
	conn, err := l.store.work.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()                // into the pool
	_ = conn.Raw(func(dc any) error { // fails when this does
		known = dc.(*tracked).driverConn.(*mysqlConn).socket != nil
		return nil
	})
	return known
}

// Timeout makes a context of those that statements have.
func Timeout(ctx context.Context, d time.Duration) (context.Context, func()) {
	return new(timeouts).with(ctx, d)
}

// WaitInVain waits to wait for a row, for which others wait.
func WaitInVain(ctx context.Context) error {
	p := newRowWaitLimiter()
	locked := func() bool { return false }
	for !p.saturated() {
		_, _ = p.acquire(ctx, locked)
	}
	_, err := p.acquire(ctx, locked)
	return classify(err)
}

// LockerOf is the Locker that le is of.
func LockerOf(le *Lease) *Locker { return le.locker }

// TakeLate takes the one place of a name as it was seen before the claim was given up, and returns its token, or 0.
func TakeLate(ctx context.Context, l *Locker, name string) (token int64, err error) {
	state, err := l.store.read(ctx, name)
	if err != nil {
		return 0, err
	}
	if err := l.store.bumpToken(ctx, name, state.Token); err != nil {
		return 0, err
	}
	return l.store.acquirePermit(ctx, name, state, make([]byte, 16), 1)
}

// KnownToken is the token that l knows of a name that it took by it or has freed, or 0.
func KnownToken(l *Locker, name string) int64 {
	known := &l.store.known
	known.mu.Lock()
	defer known.mu.Unlock()
	return known.tokens[name]
}

// TakeTooLate takes a name as a lone caller does who has left meanwhile, and reports whether it is unknown what came of it.
func TakeTooLate(ctx context.Context, l *Locker, name string) (unsure bool, err error) {
	ls, err := l.leaseFor(ctx, l.ttl)
	if err != nil {
		return false, err
	}
	defer ls.endClaim()
	ctx, leave := context.WithCancel(ctx)
	leave()
	o, _ := (&attempt{Locker: l, ctx: ctx, name: name}).acquireInline(ls)
	return o.unknown, o.err
}

// Force frees a name that is held by a lease with a token.
func Force(ctx context.Context, l *Locker, name string, lease []byte, token int64) (forced bool, err error) {
	return l.store.force(ctx, name, lockState{LeaseID: lease, Token: token})
}

// ForcePlaces frees all places of a name that still has a token.
func ForcePlaces(ctx context.Context, l *Locker, name string, token int64) (forced bool, err error) {
	return l.store.forcePermits(ctx, name, token)
}

// Dialer opens the connections of a Locker.
type Dialer struct{ d *dialer }

// NewDialer returns a Dialer that connects by a function.
func NewDialer(connect func(context.Context) (driver.Conn, error)) Dialer {
	return Dialer{newDialer(connect)}
}

// Hurry has another connection tried for after d, and not only after some seconds.
func (d Dialer) Hurry(after time.Duration) { d.d.hurry = func() time.Duration { return after } }

// Dial waits for a connection.
func (d Dialer) Dial(ctx context.Context) (driver.Conn, error) { return d.d.dial(ctx) }

// Close ends what is under way.
func (d Dialer) Close() { d.d.close() }

// Join makes le one of the locks of the lease that another one hangs on, as a move does.
func Join(le, other *Lease) error { return other.attachedTo().lease.join(le) }

// Retry is retry.
func Retry(ctx context.Context, within time.Duration, f func(context.Context) error) error {
	return retry(ctx, within, f)
}

// RetryConflicts is retryConflicts.
func RetryConflicts(ctx context.Context, f func(context.Context) error) error {
	return retryConflicts(ctx, f)
}

// Failure is an error of the database: one that is worth another attempt or is not, and that the database answered with or not.
func Failure(transient, answered bool) error {
	return &dbError{err: errors.New("the database failed"), transient: transient, outcomeKnown: answered}
}

// RenewLease renews a lease, if it is one of l's.
func RenewLease(ctx context.Context, l *Locker, id []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ls := range l.all {
		if bytes.Equal(ls.id, id) {
			go func() { _ = ls.renewNow(ctx) }() // a loss is told by the lock
		}
	}
}

// Connected waits for a connection of a pool as the opening of a lease does.
func Connected(ctx context.Context, db *sql.DB) error {
	return once(ctx, connectTimeout, (&pool{DB: sqlx.NewDb(db, "pgx")}).connected)
}

// Renewing reports whether a statement is under way on the connection for renewals.
func Renewing(l *Locker) bool { return l.store.renewals.Stats().InUse > 0 }

// Pools opens the pools of a Locker, for its work and for renewals, whose leases are sure to last for some time.
func Pools(c driver.Connector, sure, ttl time.Duration) (work, keep *sqlx.DB, closePools func() error) {
	s := &store{}
	s.open(c)
	s.renewals.loan.leases = func() renewalNeeds { return renewalNeeds{sure: sure, ttl: ttl} }
	return s.work.DB, s.renewals.DB, s.close
}
