package session_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/observe"
	"github.com/sqllock/sqllock/internal/session"
)

// Kinds of statements.
const (
	pings = "ping"
	runs  = "run"
	waits = "wait"
	keeps = "keep"

	holders = "holder"
)

// lag is the duration of a statement, in virtual time. The driver ignores the deadline of the statement, like a driver
// that hangs or a process that was stopped.
type lag struct {
	request time.Duration // until the server receives it
	answer  time.Duration // until its response arrives
	hangs   bool          // the statement ends only when its connection is cut
	refused bool          // the server answers with an error
	panics  bool          // user code that the driver calls panics
	exits   bool          // user code that the driver calls ends the goroutine
}

// server is a server in memory. It ends a session that sends nothing for the TTL.
type server struct {
	ttl     time.Duration
	resumes bool // another caller can await a response on its connections, as on those to PostgreSQL

	waitTTL time.Duration // if it ends a session that waits, and sends nothing, sooner

	logger *slog.Logger // of its Lockers; may be nil

	dial func() // the user's code that opens a connection; it ignores its context; may be nil

	exitsAtEnd bool // the user's code that closes a connection ends the goroutine

	mu      sync.Mutex
	away    []error                // guarded by mu: the results of the next attempts to open a session; the last one is reused
	opens   []time.Time            // guarded by mu: the times of those attempts
	waiters int                    // guarded by mu: how many it says wait for a key
	ignored int                    // guarded by mu: how many of the next waits it treats as silent sessions
	hurried int                    // guarded by mu: how many waits had no time left
	conns   []*conn                // guarded by mu: all connections ever opened
	holds   map[string]*conn       // guarded by mu: the holder of each key
	next    map[string][]lag       // guarded by mu: by the kind of statement; the last one is reused
	sent    map[string][]statement // guarded by mu
}

// statement is a statement that was sent.
type statement struct {
	on    *conn
	at    time.Time
	until time.Time // when its sender gives up
	keys  []string
}

func newServer() *server {
	return &server{ttl: ttl, holds: make(map[string]*conn), next: make(map[string][]lag), sent: make(map[string][]statement)}
}

// newLocker opens a Locker on s, which is closed at the end of the test.
func (s *server) newLocker(t *testing.T) *session.Locker[string] {
	t.Helper()
	return s.newLockerTold(t, nil)
}

// newLockerTold opens a Locker with a hook.
func (s *server) newLockerTold(t *testing.T, hook func(context.Context, sqllock.Event)) *session.Locker[string] {
	t.Helper()
	limits, err := session.NewLimits(4, 100)
	if err != nil {
		t.Fatal(err)
	}
	return s.newLockerWith(t, limits, hook)
}

// newLockerWith opens a Locker with limits and a hook.
func (s *server) newLockerWith(t *testing.T, limits session.Limits, hook func(context.Context, sqllock.Event)) *session.Locker[string] {
	t.Helper()
	timing, err := session.NewTiming(s.ttl, time.Second, time.Hour)
	timing.Waiting = s.waitTTL
	if err != nil {
		t.Fatal(err)
	}
	l := session.New(session.Config[string]{Open: s.open, Timing: timing, Limits: limits, Events: observe.Sink{Logger: s.logger, Hook: hook, Locker: func() event.Locker { return event.Locker{} }}})
	t.Cleanup(l.Close)
	return l
}

func (s *server) open(context.Context) (session.Conn[string], error) {
	s.mu.Lock()
	var err error
	if len(s.away) > 0 {
		err = s.away[0]
		s.away = s.away[min(1, len(s.away)-1):]
	}
	s.opens = append(s.opens, time.Now())
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if s.dial != nil {
		s.dial()
	}
	c := &conn{server: s, seen: make(chan error, 1), cut: make(chan struct{})}
	c.idle = time.AfterFunc(s.ttl, c.end)
	s.mu.Lock()
	s.conns = append(s.conns, c)
	s.mu.Unlock()
	switch {
	case s.waitTTL > 0:
		return keeping{c}, nil
	case s.resumes:
		return &resuming{conn: c}, nil
	}
	return c, nil
}

// delay makes the next statements of a kind take this long. Later statements take as long as the last of them.
func (s *server) delay(kind string, next ...lag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[kind] = next
}

// goAway ends every session. The next attempts to open a session have these results, and later attempts that of the
// last.
func (s *server) goAway(next ...error) {
	s.mu.Lock()
	s.away = next
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, c := range conns {
		c.end()
	}
}

// opened returns the times of the attempts to open a session.
func (s *server) opened() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.opens)
}

// living returns how many sessions have not ended.
func (s *server) living() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		if !c.over {
			n++
		}
	}
	return n
}

// statements returns the statements of a kind that were sent.
func (s *server) statements(kind string) []statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent[kind])
}

// setWaiters sets how many the server says wait for a key.
func (s *server) setWaiters(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters = n
}

// isHeld reports whether any session holds the key "x".
func (s *server) isHeld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds["x"] != nil
}

// cutOff cuts off the session that holds a key.
func (s *server) cutOff(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[key].off = true
}

// holder returns the session that holds a key.
func (s *server) holder(key string) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds[key]
}

// conn is a session on the server.
type conn struct {
	*server
	idle *time.Timer
	seen chan error    // the result of watching it while it is idle
	kept time.Duration // guarded by server.mu: its TTL, unless that is the server's
	over bool          // guarded by server.mu
	off  bool          // guarded by server.mu: cut off from the server

	cutOnce sync.Once
	cut     chan struct{} // closed when the connection is cut
}

var (
	errBroken = errors.New("the connection is broken")
	errSaid   = errors.New("the server refused the statement")
)

// end ends a session, as the server does if it was idle for too long, or its client is gone.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for key, holder := range c.holds {
		if holder == c {
			delete(c.holds, key)
		}
	}
}

// send sends a statement, makes the server run f, and waits for the response.
func (c *conn) send(kind string, until time.Time, keys []string, f func()) error {
	c.mu.Lock()
	c.sent[kind] = append(c.sent[kind], statement{c, time.Now(), until, keys})
	var l lag
	if next := c.next[kind]; len(next) > 0 {
		l = next[0]
		c.next[kind] = next[min(1, len(next)-1):]
	}
	hangs := l.hangs || c.off
	c.mu.Unlock()
	if hangs {
		<-c.cut
		return errBroken
	}
	pass(l.request)
	c.mu.Lock()
	over := c.over
	if !over {
		c.idle.Reset(cmp.Or(c.kept, c.ttl))
		if !l.refused {
			f()
		}
	}
	c.mu.Unlock()
	if over {
		return errBroken
	}
	pass(l.answer)
	if l.panics {
		panic("a hook of the driver")
	}
	if l.exits {
		runtime.Goexit()
	}
	if l.refused {
		return errSaid
	}
	return nil
}

// do runs ops. The caller must hold mu.
func (c *conn) do(ops []*session.Op[string]) {
	for _, op := range ops {
		holder := c.holds[op.Key]
		switch {
		case op.Take:
			if op.Done = holder == nil; op.Done {
				c.holds[op.Key] = c
			}
		default:
			if op.Done = holder == c; op.Done {
				delete(c.holds, op.Key)
			}
		}
	}
}

func (c *conn) Run(until, _ time.Time, ops []*session.Op[string]) error {
	return c.send(runs, until, keysOf(ops), func() { c.do(ops) })
}

func keysOf(ops []*session.Op[string]) (keys []string) {
	for _, op := range ops {
		keys = append(keys, op.Key)
	}
	return keys
}

// Wait implements session.Conn by polling.
func (c *conn) Wait(ctx context.Context, op *session.Op[string], _, left time.Duration) error {
	until, _ := ctx.Deadline()
	c.mu.Lock()
	if left <= 0 {
		c.hurried++
	}
	silent := c.ignored > 0
	c.ignored = max(0, c.ignored-1)
	c.mu.Unlock()
	if silent {
		c.end()
		return errBroken
	}
	for range 10 {
		if err := c.send(waits, until, []string{op.Key}, func() { c.do([]*session.Op[string]{op}) }); err != nil || op.Done {
			return err
		}
		pass(100 * time.Millisecond)
	}
	return nil
}

func (c *conn) Forget(ctx context.Context) error {
	until, _ := ctx.Deadline()
	return c.send("forget", until, nil, func() {
		for key, holder := range c.holds {
			if holder == c {
				delete(c.holds, key)
			}
		}
	})
}

func (c *conn) Holder(ctx context.Context, key string) (holder sqllock.Holder, held bool, err error) {
	until, _ := ctx.Deadline()
	err = c.send(holders, until, []string{key}, func() { holder, held = sqllock.Holder{Waiters: c.waiters}, c.holds[key] != nil })
	return holder, held, err
}

func (c *conn) Ping(ctx context.Context) error {
	until, _ := ctx.Deadline()
	return c.send(pings, until, nil, func() {})
}

func (c *conn) Watch(ctx context.Context) error {
	select {
	case err := <-c.seen:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (c *conn) Cut() { c.cutOnce.Do(func() { close(c.cut) }) }

func (c *conn) Broken(err error) bool { return !errors.Is(err, errSaid) }

func (c *conn) Close() {
	c.Cut()
	c.idle.Stop()
	c.end()
	if c.exitsAtEnd {
		runtime.Goexit()
	}
}

// keeping is a conn that the server keeps for waitTTL only after a Wait, until Keep.
type keeping struct{ *conn }

func (c keeping) Wait(ctx context.Context, op *session.Op[string], waited, left time.Duration) error {
	c.keep(c.waitTTL)
	return c.conn.Wait(ctx, op, waited, left)
}

// Keeps says that Wait begins something that Keep ends.
func (c keeping) Keeps() bool { return true }

// Keep ends what Wait began.
func (c keeping) Keep(ctx context.Context) error {
	until, _ := ctx.Deadline()
	return c.send(keeps, until, nil, func() { c.kept = 0; c.idle.Reset(c.ttl) })
}

func (c *conn) keep(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = d
}

// resuming is a conn whose response another caller can await.
type resuming struct {
	*conn
	answer chan error
}

func (c *resuming) Run(until, soon time.Time, ops []*session.Op[string]) error {
	c.answer = make(chan error, 1)
	go func() { c.answer <- c.conn.Run(until, soon, ops) }()
	return c.Resume(soon, ops)
}

// Resume waits for the response to Run. It respects its deadline, at which it leaves the response to another caller.
func (c *resuming) Resume(until time.Time, _ []*session.Op[string]) error {
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	select {
	case err := <-c.answer:
		return err
	case <-late.C:
		if c.isLate(until) {
			return session.ErrLate
		}
		return <-c.answer // like a process that was stopped, it reads the response first
	}
}

// isLate reports whether the response is left to another caller at until, because the statement's own deadline is
// later. The response to an overdue statement is awaited.
func (c *resuming) isLate(until time.Time) bool {
	all := c.statements(runs)
	return until.Before(all[len(all)-1].until)
}

// pass waits in virtual time.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
