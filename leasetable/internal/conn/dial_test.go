package conn_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// slowServer answers each attempt to connect after some time, with the next of its errors.
type slowServer struct {
	after  time.Duration
	hangs  int64         // how many of the first attempts hang forever
	hung   chan struct{} // if it is not nil, those end when it is closed, and not with their context
	errs   []error
	tried  atomic.Int64
	closed atomic.Int64
}

type slowConn struct {
	driver.Conn
	server *slowServer
	number int64
}

func (c *slowConn) Close() error {
	c.server.closed.Add(1)
	return nil
}

func (s *slowServer) connect(ctx context.Context) (driver.Conn, error) {
	number := s.tried.Add(1) - 1
	ready := after(s.after)
	if number < s.hangs {
		ready = nil
		if s.hung != nil {
			<-s.hung
			return &slowConn{server: s, number: number}, nil
		}
	}
	select {
	case <-ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if number < int64(len(s.errs)) && s.errs[number] != nil {
		return nil, s.errs[number]
	}
	return &slowConn{server: s, number: number}, nil
}

// dialing runs a test in virtual time on connections to a slow server.
func dialing(t *testing.T, s *slowServer, test func(t *testing.T, dial func(patience time.Duration) (driver.Conn, error))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := conn.NewDialer(s.connect)
		test(t, func(patience time.Duration) (driver.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			return d.Dial(ctx)
		})
		d.Close()
		if _, err := d.Dial(t.Context()); err == nil {
			t.Error("a connection of a pool that is closed")
		}
	})
}

func TestAConnectionThatIsSlowerThanItsCallerIsTheNextOnes(t *testing.T) {
	t.Parallel()
	s := &slowServer{after: 2500 * time.Millisecond}
	dialing(t, s, func(t *testing.T, dial func(time.Duration) (driver.Conn, error)) {
		for range 2 {
			if _, err := dial(time.Second); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after a second: %v", err)
			}
		}
		if _, err := dial(time.Second); err != nil || s.tried.Load() != 1 {
			t.Errorf("after 2.5 s: %v, and %d attempts", err, s.tried.Load())
		}
	})
}

func TestBesideASlowConnectionAnotherIsTriedFor(t *testing.T) {
	t.Parallel()
	s := &slowServer{after: 4 * time.Second}
	dialing(t, s, func(t *testing.T, dial func(time.Duration) (driver.Conn, error)) {
		if _, err := dial(3 * time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after three seconds: %v", err)
		}
		began := time.Now()
		conn, err := dial(time.Minute)
		if err != nil || time.Since(began) != time.Second || conn.(*slowConn).number != 0 || s.tried.Load() != 2 {
			t.Errorf("%v after %v, by %d attempts: %v", conn, time.Since(began), s.tried.Load(), err)
		}
		<-time.After(3 * time.Second) // the second connection is ready
		if conn, err := dial(time.Nanosecond); err != nil || conn.(*slowConn).number != 1 {
			t.Errorf("the second connection: %v, %v", conn, err)
		}
	})
}

func TestEveryCallerHasAConnectionOfItsOwn(t *testing.T) {
	t.Parallel()
	s := &slowServer{after: time.Second}
	dialing(t, s, func(t *testing.T, dial func(time.Duration) (driver.Conn, error)) {
		conns := make(chan driver.Conn)
		for range 3 {
			go func() {
				conn, err := dial(time.Minute)
				if err != nil {
					t.Error(err)
				}
				conns <- conn
			}()
		}
		if a, b, c := <-conns, <-conns, <-conns; a == b || b == c || a == c || s.tried.Load() != 3 {
			t.Errorf("%v, %v and %v by %d attempts", a, b, c, s.tried.Load())
		}
	})
}

func TestAnErrorOfConnectingIsTheCallersWhoWaits(t *testing.T) {
	t.Parallel()
	s := &slowServer{after: 2 * time.Second, errs: []error{errFailed, nil, errFailed}}
	dialing(t, s, func(t *testing.T, dial func(time.Duration) (driver.Conn, error)) {
		if _, err := dial(time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after a second: %v", err)
		}
		<-time.After(2 * time.Second) // the attempt has failed, and there was no waiter to get the error
		if _, err := dial(time.Minute); err != nil {
			t.Errorf("the next: %v", err)
		}
		if _, err := dial(time.Minute); !errors.Is(err, errFailed) {
			t.Errorf("the waiter is told %v", err)
		}
	})
}

func TestAConnectionThatNobodyTakesIsClosed(t *testing.T) {
	t.Parallel()
	for _, rest := range []time.Duration{time.Second, time.Minute} { // shorter, and longer, than a connection is kept before it is closed
		s := &slowServer{after: 2 * time.Second}
		dialing(t, s, func(t *testing.T, dial func(time.Duration) (driver.Conn, error)) {
			if _, err := dial(time.Second); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after a second: %v", err)
			}
			<-time.After(time.Second + rest)
			if early := rest > 3*time.Second; early != (s.closed.Load() == 1) {
				t.Errorf("after %v %d were closed", rest, s.closed.Load())
			}
		})
		if s.closed.Load() != 1 {
			t.Errorf("%d were closed", s.closed.Load())
		}
	}
}

// Renewals have one connection, so no other caller starts another attempt.
func TestACallerWhoWaitsHasAnotherConnectionTriedFor(t *testing.T) {
	t.Parallel()
	s := &slowServer{after: 5 * time.Second}
	dialing(t, s, func(t *testing.T, dial func(time.Duration) (driver.Conn, error)) {
		began := time.Now()
		if _, err := dial(time.Minute); err != nil || time.Since(began) != 5*time.Second || s.tried.Load() != 2 {
			t.Errorf("after %v, by %d attempts: %v", time.Since(began), s.tried.Load(), err)
		}
	})
}

func TestAPoolOfOneConnectionOutlastsADialThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowServer{hangs: 1}
		d := conn.NewDialer(s.connect)
		db := sql.OpenDB(dialingConnector{d})
		db.SetMaxOpenConns(1)
		began := time.Now()
		opening := make(chan error, 1)
		go func() { opening <- conn.Connected(t.Context(), db) }() // for the opening of a lease
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		conn, err := db.Conn(ctx) // for the renewal of another lease
		if err != nil || time.Since(began) > 4*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		} else if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := <-opening; err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		d.Close()
	})
}

// dialingConnector connects with a Dialer.
type dialingConnector struct{ conn.Dialer }

func (c dialingConnector) Connect(ctx context.Context) (driver.Conn, error) { return c.Dial(ctx) }
func (c dialingConnector) Driver() driver.Driver                            { return nil }

func TestAServerThatIsSilentEndsAnAttempt(t *testing.T) {
	t.Parallel()
	s := &slowServer{after: time.Hour}
	dialing(t, s, func(t *testing.T, dial func(time.Duration) (driver.Conn, error)) {
		began := time.Now()
		if _, err := dial(time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 15*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// If a lease is short, its next renewal cannot wait as long as others can.
func TestBesideASlowConnectionForAShortLeaseAnotherIsTriedForSooner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowServer{hangs: 2}
		d := conn.NewDialer(s.connect)
		d.Hurry(100 * time.Millisecond)
		began := time.Now()
		if _, err := d.Dial(t.Context()); err != nil || time.Since(began) != 300*time.Millisecond { // after 100 ms, then after twice that
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		d.Close()
	})
}

// More attempts do not help a server that is slow because it has many attempts already.
func TestBesideSlowConnectionsEverFewerOthersAreTriedFor(t *testing.T) {
	t.Parallel()
	s := &slowServer{after: 14 * time.Second}
	dialing(t, s, func(t *testing.T, dial func(time.Duration) (driver.Conn, error)) {
		if _, err := dial(time.Minute); err != nil || s.tried.Load() != 3 {
			t.Errorf("%d attempts: %v", s.tried.Load(), err)
		}
	})
}

// A driver may not end with its context, as lib/pq does not while it waits for the server's first answer.
func TestConnectionsThatHangForEverKeepNobodyFromOthers(t *testing.T) {
	t.Parallel()
	const most = 6 // under way at once
	s := &slowServer{hangs: most}
	dialing(t, s, func(t *testing.T, dial func(time.Duration) (driver.Conn, error)) {
		s.hung = make(chan struct{})
		left := make(chan error)
		for range 2 * most {
			go func() {
				_, err := dial(time.Second)
				left <- err
			}()
		}
		for range 2 * most {
			if err := <-left; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("while all hang: %v", err)
			}
		}
		if n := s.tried.Load(); n != most {
			t.Fatalf("%d attempts", n)
		}
		if conn, err := dial(time.Minute); err != nil || conn.(*slowConn).number != most {
			t.Errorf("the server answers again: %v, %v", conn, err)
		}
		close(s.hung)
		synctest.Wait()
		if n := s.closed.Load(); n != most {
			t.Errorf("%d of those that came late were closed", n)
		}
	})
}

// As a dial function of the user may.
func TestADialThatEndsItsGoroutineIsAnErrorThatPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := conn.NewDialer(func(context.Context) (driver.Conn, error) {
			runtime.Goexit()
			return nil, nil
		})
		defer d.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := d.Dial(ctx); !sqllock.IsRetryable(err) || !dberr.OutcomeKnown(err) || ctx.Err() != nil {
			t.Errorf("its caller was told %v", err)
		}
	})
}
