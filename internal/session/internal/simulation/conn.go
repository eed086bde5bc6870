package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/internal/memory"
)

// conn is a connection to the server, as MySQL's driver has it. It does what session.Conn asks for, but for Wait.
type conn struct {
	p      *process
	locker *session.Locker[string] // that has opened it
	name   string
	s      *memory.Session

	used     atomic.Bool // a goroutine is in one of its methods
	missing  bool        // an answer is missing: the next one on the connection does not answer the next request
	underWay *exchange   // of a Run whose answer is missing
	doubted  time.Time   // when Watch was last in doubt

	cutOnce sync.Once
	cut     chan struct{} // closed when the connection is cut
	off     atomic.Bool   // nothing arrives any more

	mu      sync.Mutex
	arrives time.Time // guarded by mu: when the last request arrives at the server
	closed  bool      // guarded by mu
}

// connect opens a connection.
func (p *process) connect(ctx context.Context, l *session.Locker[string]) (session.Conn[string], error) {
	c, err := p.dial(ctx, l)
	if p.schedule.Traced {
		name := ""
		if c != nil {
			name = c.name
		}
		p.log(p, func() string { return fmt.Sprintf("connect → %s %v", name, said(err)) })
	}
	switch {
	case err != nil:
		if ctx.Err() == nil {
			p.trouble(p.number)
		}
		return nil, err
	case p.plan.Kind.gated:
		return &gatedConn{conn: c}, nil
	}
	return plainConn{c}, nil
}

func (p *process) dial(ctx context.Context, l *session.Locker[string]) (*conn, error) {
	if !p.Pause() {
		return nil, errKilled
	}
	t := p.turn(p, "connect", "")
	took := 3*t.there + 3*t.back
	switch t.fault {
	case lost, unanswered:
		return nil, errDown
	case silent, mute:
		took = session.OpenTimeout
	case refused, refusedDone:
		return nil, errFull
	case slow, late, stallBefore, stallAfter:
		took += t.delay
	}
	took = max(took, p.Unreachable()+t.there, p.server.Frozen()+t.there)
	if !seeds.Sleep(ctx, took) {
		return nil, &session.UnavailableError{Err: ctx.Err()}
	}
	if !p.Pause() {
		return nil, errKilled
	}
	if err := p.isAway(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened++
	c := &conn{p: p, locker: l, name: fmt.Sprintf("session %d.%d", p.number, p.opened), cut: make(chan struct{})}
	p.conns = append(p.conns, c)
	c.s = p.server.Open(p.number, l, p.plan.TTL)
	p.bag.Lock()
	defer p.bag.Unlock()
	p.world.conns[c.s] = c
	return c, nil
}

// enter begins a call of a method that sends something. Leave ends it.
func (c *conn) enter(method string) {
	if c.used.Swap(true) {
		c.p.fail("I42", "two goroutines use %s: %s", c.name, method)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.p.fail("I42", "%s was closed and is used: %s", c.name, method)
	}
}

func (c *conn) leave() { c.used.Store(false) }

// plainConn is a connection to MySQL.
type plainConn struct{ *conn }

var _ session.Conn[string] = plainConn{}

func (c plainConn) Run(until, _ time.Time, ops []*session.Op[string]) error {
	c.enter("Run")
	defer c.leave()
	c.sendOps(ops)
	return c.answerOps(until, ops, errTimeout)
}

func (c plainConn) Wait(ctx context.Context, op *session.Op[string], waited, left time.Duration) error {
	c.enter("Wait")
	defer c.leave()
	key := op.Key
	x := c.send("wait", key, func(s *memory.Session, t turn) answer {
		longest := min(4, (c.p.plan.TTL-1)/(3*time.Second), left/time.Second+1)
		seconds := max(1, min(1+t.dice.Time(0, waited+time.Second)/(time.Second/2), longest))
		return answer{done: []bool{s.Wait(key, false, seconds*time.Second)}, err: c.p.refused()}
	})
	a, err := c.await(x, ctx.Done(), nil, errTimeout)
	op.Done = err == nil && a.done[0]
	return err
}

// sendOps sends a statement for ops.
func (c *conn) sendOps(ops []*session.Op[string]) {
	copies := make([]session.Op[string], len(ops))
	for i, op := range ops {
		copies[i] = *op
	}
	c.underWay = c.send("run", about(ops), func(s *memory.Session, _ turn) (a answer) {
		for _, op := range copies {
			a.done = append(a.done, c.p.do(s, op))
		}
		if !c.p.plan.Kind.gated {
			a.err = c.p.refused()
		}
		return a
	})
}

// answerOps waits for the answer to sendOps. At the given time it returns late.
func (c *conn) answerOps(until time.Time, ops []*session.Op[string], late error) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	a, err := c.await(c.underWay, nil, timer.C, late)
	if err != nil {
		return err
	}
	for i, op := range ops {
		op.Done = a.done[i]
	}
	return nil
}

// do does one operation. A share is not to be had while somebody is at the gate of the key.
func (p *process) do(s *memory.Session, op session.Op[string]) bool {
	switch {
	case !op.Take:
		return s.Give(op.Key)
	case !s.Take(op.Key, op.Shared):
		return false
	case !op.Shared:
		return true
	case s.Take(gate(op.Key), true):
		return s.Give(gate(op.Key))
	}
	return !s.Give(op.Key)
}

// gate returns the key that a waiter for a key holds before it has the key.
func gate(key string) string { return "gate of " + key }

// seat returns the key that a waiter for a key holds to stand in the queue for long.
func seat(key string, shared bool) string {
	if shared {
		return "shared seat of " + key
	}
	return "seat of " + key
}

// keyOf returns the key that a gate or a seat is for, and any other key as it is.
func keyOf(key string) string {
	for _, prefix := range []string{gate(""), seat("", false), seat("", true)} {
		key = strings.TrimPrefix(key, prefix)
	}
	return key
}

// isOfWaiter reports whether a key is a gate or a seat.
func isOfWaiter(key string) bool {
	return key != keyOf(key)
}

// about is what a statement is about: keys to take and to give back.
func about(ops []*session.Op[string]) string {
	var text strings.Builder
	for _, op := range ops {
		text.WriteString(map[bool]string{true: " +", false: " -"}[op.Take] + op.Key)
	}
	return text.String()[1:]
}

func (c *conn) Forget(ctx context.Context) error {
	c.enter("Forget")
	defer c.leave()
	return c.forget(ctx)
}

func (c *conn) forget(ctx context.Context) error {
	return c.ask(ctx, "forget", "", func(s *memory.Session, _ turn) answer {
		s.Forget()
		s.SetTTL(c.p.plan.TTL)
		return answer{}
	})
}

// ask sends a statement whose answer is an error or nothing.
func (c *conn) ask(ctx context.Context, step, about string, f func(*memory.Session, turn) answer) error {
	_, err := c.await(c.send(step, about, f), ctx.Done(), nil, errTimeout)
	return err
}

func (c *conn) Holder(ctx context.Context, key string) (sqllock.Holder, bool, error) {
	c.enter("Holder")
	defer c.leave()
	x := c.send("holder", key, func(*memory.Session, turn) (a answer) {
		h, waiters := c.p.server.Holder(key)
		if c.p.plan.Kind.gated {
			atGate, more := c.p.server.Holder(gate(key))
			if waiters += more; atGate != nil && waiters == more { // between two slices
				waiters++
			}
		}
		if a.held = h != nil; a.held {
			a.holder = sqllock.Holder{Session: h.ID, Waiters: waiters}
		}
		return a
	})
	a, err := c.await(x, ctx.Done(), nil, errTimeout)
	return a.holder, a.held, err
}

// terminate ends a session if it holds a key.
func (c *conn) terminate(ctx context.Context, key string, id int64) (bool, error) {
	c.enter("terminate")
	defer c.leave()
	x := c.send("terminate", key, func(*memory.Session, turn) answer { return answer{held: c.p.server.Kill(id, key)} })
	a, err := c.await(x, ctx.Done(), nil, errTimeout)
	return a.held, err
}

func (c *conn) Ping(ctx context.Context) error {
	c.enter("Ping")
	defer c.leave()
	return c.ask(ctx, "ping", "", func(*memory.Session, turn) answer { return answer{err: c.p.refused()} })
}

// refused returns the error of a server that locks can no longer be trusted with.
func (w *world) refused() error {
	if errors.Is(w.isAway(), errStandby) {
		return errStandby
	}
	return nil
}

func (c *conn) Broken(error) bool { return c.missing }

func (c *conn) Cut() { c.cutOnce.Do(func() { close(c.cut) }) }
