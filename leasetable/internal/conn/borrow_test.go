package conn_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
)

// stage is a server in virtual time. It limits the number of connections, and records which statement ran on which
// connection.
type stage struct {
	connecting time.Duration // how long connecting takes

	mu     sync.Mutex
	most   int            // guarded by mu: the maximum number of connections; 0: no limit
	open   int            // guarded by mu
	number int            // guarded by mu: the number of the last connection
	silent map[int]bool   // guarded by mu: connections that do not answer
	ended  map[int]bool   // guarded by mu: connections that have ended
	ran    []string       // guarded by mu
	on     map[string]int // guarded by mu: the connection of each statement
}

func newStage() *stage {
	return &stage{silent: make(map[int]bool), ended: make(map[int]bool), on: make(map[string]int)}
}

// tooManyError is the error of a server that has no connection left.
type tooManyError struct{}

func (tooManyError) Error() string    { return "too many connections" }
func (tooManyError) SQLState() string { return "53300" }

func (s *stage) Connect(ctx context.Context) (driver.Conn, error) {
	select {
	case <-after(s.connecting):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most != 0 && s.open >= s.most {
		return nil, tooManyError{}
	}
	s.open++
	s.number++
	return &staged{server: s, number: s.number}, nil
}

// after is time.After. A timer that is due at once can crash Go's race detector in virtual time (Go 1.26).
func after(d time.Duration) <-chan time.Time {
	if d > 0 {
		return time.After(d)
	}
	now := make(chan time.Time)
	close(now)
	return now
}

func (s *stage) Driver() driver.Driver { return nil }

// set changes the server.
func (s *stage) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

type staged struct {
	driver.Conn
	server *stage
	number int
}

func (c *staged) Close() error {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.open--
	if c.server.ended[c.number] {
		return errFailed
	}
	return nil
}

func (c *staged) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return nil, errFailed }

func (c *staged) PrepareContext(context.Context, string) (driver.Stmt, error) { return nil, errFailed }

func (c *staged) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, errFailed
}

// ExecContext implements driver.ExecerContext. The text of the statement is its duration.
func (c *staged) ExecContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	s := c.server
	takes, _ := time.ParseDuration(query)
	var silent bool
	s.set(func() {
		silent = s.silent[c.number]
		s.ran, s.on[query] = append(s.ran, query), c.number
	})
	answer := after(takes)
	if silent {
		answer = nil
	}
	select {
	case <-ctx.Done():
		s.set(func() { s.ended[c.number] = true }) // a driver closes the connection
		return nil, ctx.Err()
	case <-answer:
		var ended bool
		if s.set(func() { ended = s.ended[c.number] }); ended {
			return nil, driver.ErrBadConn
		}
		return driver.ResultNoRows, nil
	}
}

func (c *staged) ResetSession(context.Context) error {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.server.ended[c.number] {
		return driver.ErrBadConn
	}
	return nil
}

// onStage runs a test in virtual time with the pools of a Locker.
func onStage(t *testing.T, s *stage, sure time.Duration, test func(t *testing.T, work, keep *sqlx.DB)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		work, keep, closePools := conn.OpenPools(s, conn.DefaultLimit, sure, 6*sure/5)
		test(t, work, keep)
		if err := closePools(); err != nil {
			t.Error(err)
		}
	})
}

// runOn runs a statement with a time limit.
func runOn(t *testing.T, db *sqlx.DB, statement string, within time.Duration) (took time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	began := time.Now()
	_, err = db.ExecContext(ctx, statement)
	return time.Since(began), err
}

func mustRunOn(t *testing.T, db *sqlx.DB, statement string) {
	t.Helper()
	if took, err := runOn(t, db, statement, time.Minute); err != nil {
		t.Fatalf("%s: %v after %v", statement, err, took)
	}
}

// openSix opens all connections of a pool.
func openSix(t *testing.T, work *sqlx.DB) {
	t.Helper()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() { mustRunOn(t, work, "10ms") })
	}
	all.Wait()
}

func TestAfterATimeoutTheOtherConnectionsAreNotTriedOneByOne(t *testing.T) {
	t.Parallel()
	s := newStage()
	onStage(t, s, time.Minute, func(t *testing.T, work, _ *sqlx.DB) {
		openSix(t, work)
		s.set(func() {
			for i := range 7 {
				s.silent[i] = true
			}
		})
		if _, err := runOn(t, work, "0s", 3*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a server that is silent: %v", err)
		}
		if took, err := runOn(t, work, "0s", 3*time.Second); err != nil || took != 0 {
			t.Errorf("on another connection: %v after %v", err, took)
		}
	})
}

func TestACallerWithLittleTimeCostsNoOtherConnection(t *testing.T) {
	t.Parallel()
	s := newStage()
	onStage(t, s, time.Minute, func(t *testing.T, work, _ *sqlx.DB) {
		openSix(t, work)
		if _, err := runOn(t, work, "1h", 100*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		for range 5 {
			mustRunOn(t, work, "0s")
		}
		if s.number != 6 {
			t.Errorf("%d connections were opened", s.number)
		}
	})
}

func TestOneConnectionIsEnoughForAllStatements(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.most = 1
	onStage(t, s, time.Minute, func(t *testing.T, work, keep *sqlx.DB) {
		if _, err := runOn(t, work, "first", time.Minute); err != nil { // like a read before there is a lease
			t.Fatal(err)
		}
		mustRunOn(t, keep, "renew")
		for range 3 {
			mustRunOn(t, work, "work")
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { mustRunOn(t, work, "1ms") })
		}
		all.Wait()
		if s.number != 1 {
			t.Errorf("%d connections were opened", s.number)
		}
	})
}

// I38.
func TestARenewalThatIsDueGoesBeforeThoseWhoBorrowItsConnection(t *testing.T) {
	t.Parallel()
	for range 50 {
		s := newStage()
		s.most = 1
		onStage(t, s, time.Minute, func(t *testing.T, work, keep *sqlx.DB) {
			mustRunOn(t, keep, "0s")
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { mustRunOn(t, work, "10ms") })
			}
			synctest.Wait() // one of them has the connection, the others wait for it
			mustRunOn(t, keep, "1ms")
			all.Wait()
			if at := slices.Index(s.ran, "1ms"); at > 2 {
				t.Errorf("the renewal was number %d", at)
			}
		})
	}
}

func TestWhoBorrowsTheConnectionForRenewalsHasHalfOfTheTimeThatIsLeft(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.most = 1
	onStage(t, s, 4*time.Second, func(t *testing.T, work, keep *sqlx.DB) {
		mustRunOn(t, keep, "0s")
		if took, err := runOn(t, work, "1h", time.Minute); !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second {
			t.Errorf("it ended after %v: %v", took, err)
		}
	})
}

func TestWithoutAnyConnectionThatIsToldAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.most = -1
	onStage(t, s, time.Minute, func(t *testing.T, work, keep *sqlx.DB) {
		for _, db := range []*sqlx.DB{work, keep} {
			if took, err := runOn(t, db, "0s", time.Minute); !errors.As(err, &tooManyError{}) || took != 0 {
				t.Errorf("after %v: %v", took, err)
			}
		}
	})
}

func TestARenewalWhoseConnectionEndedGoesByAnotherOneWhileANewOneIsOpened(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.connecting = 800 * time.Millisecond
	onStage(t, s, time.Minute, func(t *testing.T, work, keep *sqlx.DB) {
		mustRunOn(t, keep, "first")
		mustRunOn(t, work, "work")
		s.set(func() { s.ended[s.on["first"]] = true })
		for i, word := range []string{"second", "third"} {
			if took, err := runOn(t, keep, word, time.Minute); err != nil || took != 0 || s.on[word] != s.on["work"] {
				t.Errorf("renewal %d: %v after %v on connection %d", i, err, took, s.on[word])
			}
		}
		<-time.After(5 * time.Second) // until the next renewal
		if took, err := runOn(t, keep, "fourth", time.Minute); err != nil || took != 0 || s.on["fourth"] == s.on["work"] {
			t.Errorf("%v after %v on connection %d", err, took, s.on["fourth"])
		}
	})
}

// The only connection ends while others are queued for it, and for a moment the server has no other one.
func TestABorrowedConnectionIsNotLent(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.most = 1
	onStage(t, s, time.Minute, func(t *testing.T, work, keep *sqlx.DB) {
		var all sync.WaitGroup
		mustRunOn(t, keep, "0s")
		all.Go(func() { _, _ = runOn(t, keep, "1s", time.Minute) })
		synctest.Wait()
		for range 6 {
			all.Go(func() { _, _ = runOn(t, work, "1ms", time.Minute) }) // some are told that the server is full
		}
		synctest.Wait()
		s.set(func() { s.ended[s.on["1s"]], s.most = true, -1 })
		<-time.After(1100 * time.Millisecond)
		s.set(func() { s.most = 1 })
		<-time.After(time.Second)
		if took, err := runOn(t, keep, "renew", time.Minute); err != nil || took > time.Second {
			t.Errorf("a renewal: %v after %v", err, took)
		}
		all.Wait()
	})
}

func TestTheOnlyConnectionIsOpenWhileItIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		work, _, closePools := conn.OpenPools(s, 1, 0, 0) // there is no lease
		for _, word := range []string{"first", "second", "third"} {
			mustRunOn(t, work, word)
			<-time.After(conn.WorkIdleTime - time.Second)
		}
		s.set(func() {
			if s.open != 1 || s.number != 1 {
				t.Errorf("%d connections were opened, %d are open", s.number, s.open)
			}
		})
		<-time.After(2 * time.Second)
		s.set(func() {
			if s.open != 0 {
				t.Error("the connection is open though nobody uses it")
			}
		})
		if err := closePools(); err != nil {
			t.Error(err)
		}
	})
}

func TestAStatementThatWaitsLongForAConnectionBorrowsOne(t *testing.T) {
	t.Parallel()
	s := newStage()
	onStage(t, s, time.Minute, func(t *testing.T, work, keep *sqlx.DB) {
		mustRunOn(t, keep, "renew")
		s.connecting = 5 * time.Second
		if took, err := runOn(t, work, "work", time.Minute); err != nil || took != time.Second || s.on["work"] != s.on["renew"] {
			t.Errorf("%v after %v on connection %d", err, took, s.on["work"])
		}
		<-time.After(4500 * time.Millisecond) // the connection that was being opened is ready
		if took, err := runOn(t, work, "again", time.Minute); err != nil || took != 0 || s.on["again"] == s.on["renew"] {
			t.Errorf("%v after %v on connection %d", err, took, s.on["again"])
		}
	})
}

// A driver may fail to close a connection whose session the server has ended.
func TestAPoolClosesWithoutErrorWhatTheServerEnded(t *testing.T) {
	t.Parallel()
	s := newStage()
	onStage(t, s, time.Minute, func(t *testing.T, work, keep *sqlx.DB) {
		mustRunOn(t, keep, "renew")
		mustRunOn(t, work, "work")
		s.set(func() { s.ended[s.on["renew"]], s.ended[s.on["work"]] = true, true })
	})
}

var errFailed = errors.New("the server cannot do that")
