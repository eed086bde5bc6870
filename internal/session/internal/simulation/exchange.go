package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/internal/memory"
)

// exchange is a statement under way.
type exchange struct {
	turn    turn
	answers chan answer // gets the answer, if one arrives
}

// answer is what the server says.
type answer struct {
	done   []bool // for each operation
	gated  bool
	held   bool
	holder sqllock.Holder
	err    error // the server's, or that the connection broke
}

// send sends a statement, which f carries out at the moment when it arrives.
func (c *conn) send(step, about string, f func(*memory.Session, turn) answer) *exchange {
	p := c.p
	p.Pause()
	if c.missing {
		p.fail("I42", "a statement was sent on %s, on which an answer is missing: %s %s", c.name, step, about)
	}
	t := p.turn(p, step, about)
	if t.fault == stallBefore {
		seeds.Sleep(p.Alive, t.delay)
	}
	x := &exchange{turn: t, answers: make(chan answer, 1)}
	c.missing = true
	there := t.there
	if t.fault == slow {
		there += t.delay
	}
	c.mu.Lock()
	c.arrives = time.Now().Add(there)
	c.mu.Unlock()
	if p.IsKilled() {
		return x
	}
	p.running.Go(func() {
		if a, arrives := c.carry(t, there, f); arrives {
			x.answers <- a
		}
	})
	return x
}

// carry is the way of a statement to the server and back.
func (c *conn) carry(t turn, there time.Duration, f func(*memory.Session, turn) answer) (a answer, arrives bool) {
	if t.fault == silent {
		c.off.Store(true)
	}
	if !c.travel(there) {
		return a, false
	}
	if t.fault == lost {
		c.s.End(memory.Broken)
		return answer{err: errBroken}, true
	}
	for frozen := c.p.server.Frozen(); frozen > 0; frozen = c.p.server.Frozen() {
		seeds.Sleep(c.p.ctx, frozen+t.there)
	}
	if !c.s.Begin() {
		return answer{err: errBroken}, c.travel(t.back)
	}
	if t.fault == refused {
		a.err = serverError{}
	} else {
		a = f(c.s, t)
	}
	if !c.s.Finish() {
		return answer{err: errBroken}, c.travel(t.back)
	}
	switch t.fault {
	case refusedDone:
		a = answer{err: serverError{}}
	case unanswered:
		c.s.End(memory.Broken)
		return answer{err: errBroken}, true
	case mute:
		c.off.Store(true)
	case late:
		t.back += t.delay
	}
	return a, c.travel(t.back)
}

// travel is the way of a message, and reports whether it arrives. What is sent to or from a process that is cut off
// arrives when it is not any more.
func (c *conn) travel(d time.Duration) bool {
	seeds.Sleep(c.p.ctx, d)
	for away := c.p.Unreachable(); away > 0; away = c.p.Unreachable() {
		seeds.Sleep(c.p.ctx, away+d)
	}
	return !c.off.Load()
}

// await waits for the answer to a statement, until ended or timer tell that it comes too late.
func (c *conn) await(x *exchange, ended <-chan struct{}, timer <-chan time.Time, late error) (a answer, err error) {
	p := c.p
	select {
	case a = <-x.answers:
		err = a.err
	case <-ended:
		err = late
	case <-timer:
		err = late
	case <-c.cut:
		err = errBroken
	case <-p.Killed:
		err = errKilled
	}
	if x.turn.fault == stallAfter {
		seeds.Sleep(p.Alive, x.turn.delay)
	}
	stopped := p.IsStopped()
	if !p.Pause() {
		return a, errKilled
	}
	if err == late && stopped { //nolint:errorlint // it is this one
		select {
		case a = <-x.answers: // a process that was stopped reads the answer first
			err = a.err
		default:
		}
	}
	said := err == nil || a.err != nil && a.err != errBroken //nolint:errorlint // it is this one
	c.missing = !said
	p.log(p, func() string {
		text := fmt.Sprintf("%s  %s %s → %s", c.name, x.turn.id.step, x.turn.id.about, a.show(err))
		if x.turn.fault != none {
			text += fmt.Sprintf("   FAULT no. %d: %s (%v)", x.turn.id.n, x.turn.fault, x.turn.delay)
		}
		return text
	})
	return a, err
}

func (a answer) show(err error) string {
	switch {
	case err != nil:
		return err.Error()
	case a.done != nil:
		return fmt.Sprintf("%v%s", a.done, map[bool]string{true: ", at the gate"}[a.gated])
	case a.held:
		return fmt.Sprintf("session no. %d, %d waiters", a.holder.Session, a.holder.Waiters)
	}
	return "ok"
}

func (c *conn) Watch(ctx context.Context) error {
	c.enter("Watch")
	defer c.leave()
	over := c.s.Over()
	if !c.p.plan.Kind.watches {
		over = nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-over:
	}
	// The server's goodbye is under way.
	for away := max(c.p.Unreachable(), time.Microsecond); away > 0; away = c.p.Unreachable() {
		if !seeds.Sleep(ctx, away) {
			return nil
		}
	}
	if c.off.Load() {
		<-ctx.Done()
		return nil
	}
	if !c.p.Pause() {
		return errKilled
	}
	if c.p.plan.Kind.blink && time.Since(c.doubted) >= time.Second {
		c.doubted = time.Now()
		return session.ErrDoubt
	}
	c.p.log(c.p, func() string { return c.name + " is seen to have ended" })
	return errBroken
}

// closeTime is for how long Close waits for a server that says nothing.
const closeTime = time.Second

// Close implements session.Conn. The server hears of it after all that was sent before.
func (c *conn) Close() {
	c.enter("Close")
	c.mu.Lock()
	c.closed = true
	arrives := c.arrives
	c.mu.Unlock()
	c.s.Closed.Store(true)
	c.Cut()
	p := c.p
	p.mu.Lock()
	p.conns = slices.DeleteFunc(p.conns, func(other *conn) bool { return other == c })
	p.mu.Unlock()
	t := p.turn(p, "close", "")
	p.log(p, func() string { return c.name + "  closes" })
	p.running.Go(func() {
		if c.travel(max(t.there, time.Until(arrives)+1)) {
			c.hangUp(t.notice)
		}
	})
	if c.missing && p.Unreachable() > 0 {
		seeds.Sleep(p.Alive, closeTime)
	}
}

// hangUp has the server hear that the client has closed the connection. MySQL notices that soon even during a statement.
func (c *conn) hangUp(notice time.Duration) {
	c.s.Leave()
	if c.p.plan.Kind.gated {
		return
	}
	timer := time.NewTimer(notice)
	defer timer.Stop()
	select {
	case <-timer.C:
		c.s.End(memory.Left)
	case <-c.s.Over():
	}
}
