package session_test

import (
	"context"
	"errors"
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
)

// lag is how long a statement takes, in virtual time. The driver does not look at its deadline: like one that hangs, or
// a process that was stopped.
type lag struct {
	request time.Duration // until the server has it
	answer  time.Duration // until its answer is here
	hangs   bool          // the statement ends when its connection is cut, and no sooner
}

// server is a server in memory, which ends a session that sends nothing for the TTL.
type server struct {
	ttl     time.Duration
	resumes bool // its connections are such that another caller can wait for an answer, as those to PostgreSQL

	mu    sync.Mutex
	away  []error                // guarded by mu: what comes of the next attempts to open a session; the last one stays
	opens []time.Time            // guarded by mu: when those were
	deaf  int                    // guarded by mu: how many of the next waits it takes for silent
	conns []*conn                // guarded by mu: all that were opened
	holds map[string]*conn       // guarded by mu: who has a key
	next  map[string][]lag       // guarded by mu: by the kind of a statement; the last one stays
	sent  map[string][]statement // guarded by mu
}

// statement is one that was sent.
type statement struct {
	on    *conn
	at    time.Time
	until time.Time // when its sender gives up
	keys  []string
}

func newServer(ttl time.Duration) *server {
	return &server{ttl: ttl, holds: make(map[string]*conn), next: make(map[string][]lag), sent: make(map[string][]statement)}
}

// newLocker opens a Locker on s, which is closed at the end of the test.
func (s *server) newLocker(t *testing.T) *session.Locker[string] {
	t.Helper()
	return s.newLockerTold(t, nil)
}

// newLockerTold opens one that tells hook what happens.
func (s *server) newLockerTold(t *testing.T, hook func(context.Context, sqllock.Event)) *session.Locker[string] {
	t.Helper()
	timing, errTiming := session.NewTiming(s.ttl, time.Second, time.Hour)
	limits, errLimits := session.NewLimits(4, 100)
	if err := errors.Join(errTiming, errLimits); err != nil {
		t.Fatal(err)
	}
	l := session.New(session.Config[string]{Open: s.open, Timing: timing, Limits: limits, Events: observe.Sink{Hook: hook, Locker: func() event.Locker { return event.Locker{} }}})
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
	c := &conn{server: s, seen: make(chan error, 1), cut: make(chan struct{})}
	c.idle = time.AfterFunc(s.ttl, c.end)
	s.mu.Lock()
	s.conns = append(s.conns, c)
	s.mu.Unlock()
	if s.resumes {
		return &resuming{conn: c}, nil
	}
	return c, nil
}

// delay has the next statements of a kind take so long, and those that come after them as long as the last.
func (s *server) delay(kind string, next ...lag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[kind] = next
}

// goAway ends every session, and has the next attempts to open one end so, and those that come after them as the last.
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

// opened is when it was attempted to open a session.
func (s *server) opened() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.opens)
}

// statements are those of a kind that were sent.
func (s *server) statements(kind string) []statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent[kind])
}

// isHeld reports whether some session has the key "x".
func (s *server) isHeld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds["x"] != nil
}

// cutOff cuts off the session that has a key.
func (s *server) cutOff(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[key].off = true
}

// holder is the session that has a key.
func (s *server) holder(key string) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds[key]
}

// conn is a session on the server.
type conn struct {
	*server
	idle *time.Timer
	seen chan error // what is seen of it while it is idle
	over bool       // guarded by server.mu
	off  bool       // guarded by server.mu: cut off from the server

	cutOnce sync.Once
	cut     chan struct{} // closed when the connection is cut
}

var errBroken = errors.New("the connection is broken")

// end is what the server does with a session that was idle for too long, or whose client is gone.
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

// send sends a statement, has the server do f, and waits for the answer.
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
		c.idle.Reset(c.ttl)
		f()
	}
	c.mu.Unlock()
	if over {
		return errBroken
	}
	pass(l.answer)
	return nil
}

// do does ops. The caller has mu.
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

// Run implements session.Conn.
func (c *conn) Run(until, _ time.Time, ops []*session.Op[string]) error {
	return c.send(runs, until, keysOf(ops), func() { c.do(ops) })
}

func keysOf(ops []*session.Op[string]) (keys []string) {
	for _, op := range ops {
		keys = append(keys, op.Key)
	}
	return keys
}

// Wait implements session.Conn: it looks every now and then.
func (c *conn) Wait(ctx context.Context, op *session.Op[string], _ time.Duration) error {
	until, _ := ctx.Deadline()
	c.mu.Lock()
	silent := c.deaf > 0
	c.deaf = max(0, c.deaf-1)
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

// Forget implements session.Conn.
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

// Holder implements session.Conn.
func (c *conn) Holder(context.Context, string) (sqllock.Holder, bool, error) {
	return sqllock.Holder{}, false, nil
}

// Ping implements session.Conn.
func (c *conn) Ping(ctx context.Context) error {
	until, _ := ctx.Deadline()
	return c.send(pings, until, nil, func() {})
}

// Watch implements session.Conn.
func (c *conn) Watch(ctx context.Context) error {
	select {
	case err := <-c.seen:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Cut implements session.Conn.
func (c *conn) Cut() { c.cutOnce.Do(func() { close(c.cut) }) }

// Broken implements session.Conn.
func (c *conn) Broken(error) bool { return true }

// Close implements session.Conn.
func (c *conn) Close() {
	c.Cut()
	c.idle.Stop()
	c.end()
}

// resuming is a conn whose answers another caller can wait for.
type resuming struct {
	*conn
	answer chan error
}

// Run implements session.Conn.
func (c *resuming) Run(until, soon time.Time, ops []*session.Op[string]) error {
	c.answer = make(chan error, 1)
	go func() { c.answer <- c.conn.Run(until, soon, ops) }()
	return c.Resume(soon, ops)
}

// Resume waits for the answer to Run. It does look at its deadline, which is the moment at which it is left to another.
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
		return <-c.answer // like a process that was stopped, it finds the answer first
	}
}

// isLate reports whether the answer is not awaited past until, as that of a statement which is overdue is.
func (c *resuming) isLate(until time.Time) bool {
	all := c.statements(runs)
	return until.Before(all[len(all)-1].until)
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
