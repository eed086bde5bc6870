package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

// part is one measurement.
type part struct {
	name  string // in the JSON output
	title string // in the table
	paced bool   // true: a clock sets the rate; false: it runs as fast as possible
	run   func(ctx context.Context) (sample, error)
}

// sample holds how long the calls took, and how many ran at the same time.
type sample struct {
	took   []time.Duration
	atOnce int
}

// Sizes of the measurements.
const (
	namesAtOnce = 16
	runners     = 4
	manyLocks   = 1000

	firstName = "first" // the lock that shows whether locks work on this database

	beatingTTL = 6 * time.Second // sessions then send one heartbeat in two seconds
)

func (b *bench) parts(l database.Locker) []part {
	parts := []part{{name: "round_trip", title: "round trip, SELECT 1", run: b.roundTrip}}
	if b.kind == database.KindLease {
		parts = append(parts, part{name: "two_writes", title: "two bare writes", run: b.writes})
	}
	return append(
		parts,
		part{name: "pair", title: "acquire and release", run: func(ctx context.Context) (sample, error) { return b.pairs(ctx, l, 1) }},
		part{name: "pair_16_names", title: "the same, 16 names at once", run: func(ctx context.Context) (sample, error) { return b.pairs(ctx, l, namesAtOnce) }},
		part{name: "handoff", title: "handoff among 4 waiters", run: b.handoff},
		part{name: "renewal_1000_locks", title: "renewal of 1,000 locks", run: b.renewal, paced: b.kind == database.KindSession},
	)
}

// repeat calls f in n goroutines, again and again, until the duration is over and there is at least one measurement. f
// returns how long the measured operation took, or 0 if there was nothing to measure. The first call in each goroutine
// does not count, because it opens the connection.
func (b *bench) repeat(ctx context.Context, n int, f func(ctx context.Context, i int) (time.Duration, error)) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		s     sample
		mu    sync.Mutex // guards s
		shown atomic.Bool
		all   sync.WaitGroup
	)
	began := time.Now()
	for i := range n {
		all.Go(func() {
			var mine []time.Duration
			for first := true; ctx.Err() == nil && !b.isOver() && (!shown.Load() || time.Since(began) < b.duration); first = false {
				took, err := f(ctx, i)
				if err != nil {
					cancel(err)
				} else if took > 0 && !first {
					mine = append(mine, took)
					shown.Store(true)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			s.took = append(s.took, mine...)
		})
	}
	all.Wait()
	s.atOnce = n
	return s, context.Cause(ctx)
}

// timed makes f measure the time of its whole call, for repeat.
func timed(f func(ctx context.Context, i int) error) func(context.Context, int) (time.Duration, error) {
	return func(ctx context.Context, i int) (time.Duration, error) {
		began := time.Now()
		err := f(ctx, i)
		return time.Since(began), err
	}
}

// roundTrip measures a statement that does no work.
func (b *bench) roundTrip(ctx context.Context) (sample, error) {
	conn, err := b.db.Connx(ctx)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = conn.Close() }()
	return b.repeat(ctx, 1, timed(func(ctx context.Context, _ int) error {
		var one int
		return conn.GetContext(ctx, &one, "SELECT 1")
	}))
}

// writes updates one row with two statements, each in a transaction of its own: what acquire and release would cost
// without this library.
func (b *bench) writes(ctx context.Context) (sample, error) {
	conn, err := b.db.Connx(ctx)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = conn.Close() }()
	query := b.db.Rebind(b.Tables.Rewrite(b.db.Dialect, "UPDATE sqllock_lock SET token = token + 1 WHERE name = ?"))
	row := []byte(b.mine + firstName)
	write := func(ctx context.Context) (sql.Result, error) { return conn.ExecContext(ctx, query, row) }
	if b.db.Dialect != schema.Postgres { // pgx prepares the statement by itself, unless there is a pooler
		stmt, err := conn.PreparexContext(ctx, query)
		if err != nil {
			return sample{}, err
		}
		defer func() { _ = stmt.Close() }()
		write = func(ctx context.Context) (sql.Result, error) { return stmt.ExecContext(ctx, row) }
	}
	return b.repeat(ctx, 1, timed(func(ctx context.Context, _ int) error {
		if _, err := write(ctx); err != nil {
			return err
		}
		_, err := write(ctx)
		return err
	}))
}

// pair acquires and releases a lock.
func (b *bench) pair(ctx context.Context, l database.Locker, name string) error {
	lock, err := l.TryAcquire(ctx, b.mine+name)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

func (b *bench) pairs(ctx context.Context, l database.Locker, names int) (sample, error) {
	return b.repeat(ctx, names, timed(func(ctx context.Context, i int) error { return b.pair(ctx, l, strconv.Itoa(i)) }))
}

// handoff has several independent Lockers wait for one lock. A Locker that released the lock asks again once another
// one holds it, so as soon as all are connected exactly one handoff is in progress at any time.
func (b *bench) handoff(ctx context.Context) (s sample, err error) {
	var lockers [runners]database.Locker
	for i := range lockers {
		l, err := b.locker(database.LookTTL)
		if err != nil {
			return s, err
		}
		defer func() { _ = l.Close() }() // it holds nothing any more
		lockers[i] = l
	}
	end := time.Now().Add(b.duration)
	var (
		mu       sync.Mutex
		had      = make(map[int]bool)  // guarded by mu: the runners that have held the lock, and so are connected
		last     int                   // guarded by mu: the last holder
		released time.Time             // guarded by mu: when the last holder began the release
		taken    = make(chan struct{}) // guarded by mu: closed when the next holder has the lock
	)
	s, err = b.repeat(ctx, runners, func(ctx context.Context, i int) (took time.Duration, err error) {
		lock, err := lockers[i].Acquire(ctx, b.mine+"handoff")
		if err != nil {
			return 0, err
		}
		mu.Lock()
		now := time.Now()
		if len(had) == runners && last != i {
			took = now.Sub(released)
		}
		close(taken)
		next := make(chan struct{})
		had[i], last, released, taken = true, i, now, next
		mu.Unlock()
		if err := lock.Release(ctx); err != nil {
			return 0, err
		}
		over := time.NewTimer(time.Until(end)) // after that time there may be no other runner left
		defer over.Stop()
		select {
		case <-next:
		case <-over.C:
		case <-b.over:
		case <-ctx.Done():
		}
		return took, nil
	})
	s.atOnce = 1
	return s, err
}

// renewal measures renewals with many held locks.
func (b *bench) renewal(ctx context.Context) (s sample, err error) {
	renewed := make(chan time.Duration, manyLocks)
	b.db.Hook = func(_ context.Context, e sqllock.Event) {
		if e.Kind != event.Renewed || e.Locks == 0 {
			return
		}
		select {
		case renewed <- e.Took:
		default:
		}
	}
	ttl := database.LookTTL
	if b.kind == database.KindSession {
		ttl = beatingTTL
	}
	l, err := b.locker(ttl)
	if err != nil {
		return s, err
	}
	defer func() { _ = l.Close() }() // releases all of them at once
	names := make([]string, manyLocks)
	for i := range names {
		names[i] = fmt.Sprint(b.mine, i)
	}
	all, err := sqllock.AcquireAll(ctx, l, names[1:])
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n") // there may be one error per name
		return s, errors.New(first)
	}
	one, err := l.TryAcquire(ctx, names[0])
	if err != nil {
		return s, err
	}
	if lease, ok := one.(*leasetable.Lease); ok {
		s, err = b.repeat(ctx, 1, timed(func(ctx context.Context, _ int) error { return lease.Renew(ctx) }))
	} else {
		s, err = b.repeat(ctx, 1, func(ctx context.Context, _ int) (time.Duration, error) {
			select {
			case took := <-renewed:
				return took, nil
			case <-all.Context().Done():
				return 0, context.Cause(all.Context()) //nolint:contextcheck // the context of the locks
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		})
	}
	return s, err
}
