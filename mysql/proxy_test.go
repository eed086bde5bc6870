package mysql_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// A proxy that replaces a session on the server tells its client nothing. I49.
func TestASessionThatAProxyReplacedHoldsNothing(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		var p proxy
		l := dialling(t, db.DSN, p.dial, mysql.WithSessionTTL(time.Hour), mysql.WithLogger(nil))
		lock := mustTry(t, l, "a")
		mine := p.latest()
		openConn(t, l)
		mine.replaceBy(p.latest())
		mustBeLost(t, lock)
		if cause := context.Cause(lock.Context()); !errors.Is(cause, sqllock.ErrRefused) {
			t.Errorf("the lock ended with %v", cause)
		}
		mustRelease(t, mustAcquire(t, l, "a"))
	})
}

// I49.
func TestNoAnswerOfAnotherSessionIsBelieved(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	give := session.Op[string]{Key: "a"}
	take, other := session.Op[string]{Key: "a", Take: true}, session.Op[string]{Key: "b", Take: true}
	run := func(ops ...session.Op[string]) func(context.Context, session.Conn[string]) error {
		return func(_ context.Context, c session.Conn[string]) error {
			var batch []*session.Op[string]
			for _, op := range ops {
				batch = append(batch, &op)
			}
			until := time.Now().Add(time.Minute)
			return c.Run(until, until, batch)
		}
	}
	for name, send := range map[string]func(context.Context, session.Conn[string]) error{
		"a try":                run(take),
		"several tries":        run(take, other),
		"a release":            run(give),
		"a release, and a try": run(give, take),
		"a slice of a wait": func(ctx context.Context, c session.Conn[string]) error {
			op := take
			return c.Wait(ctx, &op, 0, time.Minute)
		},
		"a heartbeat": func(ctx context.Context, c session.Conn[string]) error { return c.Ping(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, db *sqltest.Database) {
				t.Helper()
				c := openConn(t, newLocker(t, db))
				if err := send(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				mysql.Replace(c)
				err := send(t.Context(), c)
				mustSayWhy(t, err, "sessions")
				if !c.Broken(err) {
					t.Error("the session is not ended")
				}
			})
		})
	}
}

// openConn opens a connection as the sessions of l do.
func openConn(t *testing.T, l *mysql.Locker) session.Conn[string] {
	t.Helper()
	c, err := mysql.Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// proxy gives connections other sessions.
type proxy struct {
	mu  sync.Mutex
	all []*proxied // guarded by mu
}

func (p *proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, &proxied{Conn: c, server: c})
	return p.all[len(p.all)-1], nil
}

// latest returns the connection that was opened last.
func (p *proxy) latest() *proxied {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[len(p.all)-1]
}

// proxied is a connection of a client.
type proxied struct {
	net.Conn

	mu           sync.Mutex
	server, next net.Conn // guarded by mu: leads to the session that it has, or is to have
}

// replaceBy gives the connection the session of another one before its next statement. That must not be a prepared one: the
// statements of that session have other numbers on MariaDB.
func (c *proxied) replaceBy(other *proxied) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = other.Conn
}

func (c *proxied) Read(b []byte) (int, error) {
	c.mu.Lock()
	server := c.server
	c.mu.Unlock()
	return server.Read(b)
}

func (c *proxied) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		_ = c.server.Close()
		c.server, c.next = c.next, nil
	}
	return c.server.Write(b)
}

func (c *proxied) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Close()
}
