package simulation

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/internal/memory"
)

// gatedConn is a connection to PostgreSQL: another goroutine can wait for the answer to a Run, and waiters for a key have
// its gate first.
type gatedConn struct {
	*conn
	gated bool // it holds the gate of the key that it waits for
	seat  bool // it holds the seat of the key that it waits for
}

var _ session.Conn[string] = (*gatedConn)(nil)

func (c *gatedConn) Run(_, soon time.Time, ops []*session.Op[string]) error {
	c.enter("Run")
	defer c.leave()
	c.sendOps(ops)
	return c.answerOps(soon, ops, session.ErrLate)
}

// Resume waits for the answer to Run.
func (c *gatedConn) Resume(until time.Time, ops []*session.Op[string]) error {
	c.enter("Resume")
	defer c.leave()
	return c.answerOps(until, ops, session.ErrLate)
}

// waitTTL is how long the server keeps a waiting session between two slices, and after the last one until Keep.
const waitTTL = 3 * time.Second

// seatAfter is after how long a waiter without the gate needs a seat, and asleep for how long it sleeps without one. A queue
// has a single seat for each kind of lock here, so that a few processes are many.
const (
	seatAfter = 5 * time.Second
	asleep    = 4 * time.Second
)

func (c *gatedConn) Wait(ctx context.Context, op *session.Op[string], waited, left time.Duration) error {
	c.enter("Wait")
	defer c.leave()
	key, shared, gated := op.Key, op.Shared, c.gated
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline)/2)
	}
	if waited > seatAfter && !c.seat && (shared || !gated) {
		x := c.send("take seat", key, func(s *memory.Session, _ turn) answer {
			if s.Take(seat(key, shared), false) {
				return answer{done: []bool{true}, err: c.p.refused()}
			}
			s.SetTTL(c.p.plan.TTL)
			return answer{done: []bool{false}, err: c.p.refused()}
		})
		a, err := c.await(x, ctx.Done(), nil, errTimeout)
		if err != nil {
			return err
		}
		if c.seat = a.done[0]; !c.seat {
			if gated {
				c.gated = false
				if err := c.forget(ctx); err != nil {
					return err
				}
			}
			seeds.Sleep(ctx, min(asleep, left))
			return nil
		}
	}
	seated := c.seat
	x := c.send("wait", key, func(s *memory.Session, t turn) answer {
		s.SetTTL(min(waitTTL, c.p.plan.TTL))
		slice := min(600*time.Millisecond+waited/16, 1750*time.Millisecond)
		slice = max(min(slice*7/8+t.dice.Time(0, slice/4), left), time.Millisecond)
		began := time.Now()
		if !gated {
			if !s.Wait(gate(key), shared, slice) {
				return answer{done: []bool{false}, err: c.p.refused()}
			}
			slice = min(slice, 950*time.Millisecond)
		}
		if !s.Wait(key, shared, max(slice-time.Since(began), time.Millisecond)) {
			return answer{done: []bool{false}, gated: true, err: c.p.refused()}
		}
		s.Give(gate(key))
		if seated {
			s.Give(seat(key, shared))
		}
		return answer{done: []bool{true}, err: c.p.refused()}
	})
	a, err := c.await(x, ctx.Done(), nil, errTimeout)
	if err != nil {
		return err
	}
	c.gated = a.gated
	op.Done = a.done[0]
	c.seat = c.seat && !op.Done
	return nil
}

// Keeps says that Wait shortens the TTL.
func (c *gatedConn) Keeps() bool { return true }

// Keep sets the TTL that Wait has shortened.
func (c *gatedConn) Keep(ctx context.Context) error {
	c.enter("Keep")
	defer c.leave()
	return c.ask(ctx, "keep", "", func(s *memory.Session, _ turn) answer {
		s.SetTTL(c.p.plan.TTL)
		return answer{}
	})
}

func (c *gatedConn) Forget(ctx context.Context) error {
	c.gated, c.seat = false, false
	return c.conn.Forget(ctx)
}
