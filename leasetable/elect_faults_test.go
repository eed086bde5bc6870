package leasetable_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// breakable connects like another connector, or fails.
type breakable struct {
	driver.Connector
	mu     sync.Mutex
	broken bool        // guarded by mu
	tries  []time.Time // guarded by mu: the times of failed attempts
}

func (b *breakable) Connect(ctx context.Context) (driver.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		b.tries = append(b.tries, time.Now())
		return nil, errAway
	}
	return b.Connector.Connect(ctx)
}

func (b *breakable) set(broken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = broken
}

func (b *breakable) inVain() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.tries)
}

// breakably opens a Locker whose connections can be made to fail.
func breakably(t *testing.T, db *sqltest.Database, opts ...leasetable.Option) (*leasetable.Locker, *breakable) {
	t.Helper()
	c, err := connector.Of(db.DB.DB)
	if err != nil {
		t.Fatal(err)
	}
	b := &breakable{Connector: c, broken: true}
	own := sqlx.NewDb(sql.OpenDB(b), db.DriverName())
	t.Cleanup(func() { _ = own.Close() }) // it was not used
	return newLocker(t, own, opts...), b
}

func TestACampaignOutlastsADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, network := breakably(t, db)
		c := campaign(t, newElector(t, l))
		eventually(t, func() bool { return len(network.inVain()) >= 8 })
		network.set(false)
		c.mustLead(t)
		tries := network.inVain()
		// The pauses double from 5 ms, and each is at least half as long as that: the seventh is 160 ms.
		if pause := tries[7].Sub(tries[6]); pause < 160*time.Millisecond {
			t.Errorf("the seventh pause is %v", pause)
		}

		// Run ends although the database stays unreachable, and its error says what the problem was.
		ctx, cancel := context.WithCancelCause(bounded(t))
		log := slog.NewTextHandler(writerFunc(func() { cancel(errStop) }), nil)
		l, _ = breakably(t, db, leasetable.WithLogger(slog.New(log)))
		err := newElector(t, l).Run(ctx, func(context.Context, *leasetable.Lease) error { return nil })
		if !errors.Is(err, errStop) || !errors.Is(err, errAway) {
			t.Errorf("Run of a cancelled candidate: %v", err)
		}
	})
}

// writerFunc is a function that is called at each Write.
type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// The name is acquired on a lease that has expired for its holder when the response arrives.
func TestACampaignOutlastsItsLease(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(survivingTTL))
		if err := take(t, l, "x").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := take(t, l, "y") // on the same lease
		unpin := pin(t, db, "x")
		c := campaign(t, newElector(t, l))
		eventually(t, func() bool { return waitsForRow(t, db) })
		expireLease(t, db, "y")
		receive(t, other.Context().Done())
		unpin()
		c.mustLead(t)
	})
}

func leaderIsCutOff(t *testing.T, server *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	c := campaign(t, newElector(t, newLocker(t, db.DB, leasetable.WithTTL(3*time.Second))))
	first := c.mustLead(t)
	server.Pause()
	first.mustEnd(t, sqllock.ErrExpired)
	first.end <- nil
	server.Resume()
	if second := c.mustLead(t); second.lease.Token() <= first.lease.Token() {
		t.Errorf("token %d after %d", second.lease.Token(), first.lease.Token())
	}
}
