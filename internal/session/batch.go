package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/clock"
)

// maxBatch bounds the operations in one statement.
const maxBatch = 512

// batch is a group of calls that run together: one with work, or any number with ops for one statement.
type batch[K comparable] struct {
	calls []*call[K]
	ops   []*Op[K]
	one   [1]*Op[K]       // room for ops: mostly there is one
	ctx   context.Context //nolint:containedctx // of the caller that runs it; nil: the session's goroutine does
	sent  time.Time       // when the ops were sent
	until time.Time       // when to give up
	said  error           // the server's error for the ops
}

// take removes from the queue the calls that can run together: one with work, or as many with ops as there are. The
// caller holds mu.
func (s *session[K]) take() *batch[K] {
	n := 0
	for n < len(s.queue) && n < maxBatch && s.queue[n].work == nil {
		n++
	}
	if n == 0 {
		n = min(1, len(s.queue))
	}
	if n == 0 {
		return nil
	}
	s.taken = append(s.taken[:0], s.queue[:n]...)
	s.queue = slices.Delete(s.queue, 0, n)
	s.alone = n == 1 && len(s.queue) == 0
	return &batch[K]{calls: s.taken}
}

// run runs a batch and answers its calls, unless it returns ErrLate: then it is to be called again. Another error ends
// the session. It does not run calls whose callers have left. A key that was taken for a caller that leaves meanwhile
// is given back before anything else happens on the connection. A lock is recorded only when its caller has it: if the
// session ends before that, there is no lock to end, and the caller itself leaves the key's wait queue.
func (s *session[K]) run(b *batch[K]) error {
	err := s.attempt(b)
	if errors.Is(err, ErrLate) {
		return err
	}
	if err != nil {
		s.end(err)
	}
	orphans, undo, idle := s.settle(b, err)
	for _, c := range b.calls {
		close(c.done)
	}
	if err == nil && len(orphans) > 0 {
		err = s.confirm(false, func(until time.Time) error { return s.conn.Run(until, until, orphans) })
	}
	if err == nil && undo != nil {
		err = s.work(false, undo)
	}
	if err == nil {
		for _, f := range idle {
			f()
		}
	}
	return err
}

// settle decides for every call of a batch whether its caller is still there. For the callers that left it returns what
// to give back or to undo, and the idle functions to call after that.
func (s *session[K]) settle(b *batch[K], err error) (orphans []*Op[K], undo func(context.Context) error, idle []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range b.calls {
		there := c.left.CompareAndSwap(0, answered)
		if there {
			s.pending--
		}
		if err != nil {
			c.err = &endedError{err}
			continue
		}
		if c.work == nil && !c.op.Take {
			s.moving--
		}
		if there {
			switch {
			case !c.op.Take || !c.op.Done:
			case c.lock != nil:
				s.keep(c.lock)
			default:
				s.moving++
			}
			continue
		}
		if c.undo != nil {
			undo = c.undo // of one call: work runs alone
		} else if c.op.Take && c.op.Done {
			orphans = append(orphans, &Op[K]{Key: c.op.Key, Shared: c.op.Shared})
		}
		if c.idle != nil {
			idle = append(idle, c.idle)
		}
	}
	return orphans, undo, idle
}

// attempt runs the calls of a batch whose callers are still there, or waits on for their answer.
func (s *session[K]) attempt(b *batch[K]) (err error) {
	if c := b.calls[0]; c.work != nil {
		if c.left.Load() == deserted {
			return nil
		}
		return s.work(c.free, c.work)
	}
	resumes := len(b.ops) > 0
	if !resumes {
		b.calls = slices.DeleteFunc(b.calls, func(c *call[K]) bool { return c.left.Load() == deserted })
		if len(b.calls) == 0 {
			return nil
		}
		b.ops = b.one[:0]
		for _, c := range b.calls {
			b.ops = append(b.ops, &c.op)
		}
		b.sent = clock.Now()
		if b.until, err = s.limit(b.sent); err != nil {
			return err
		}
	}
	return s.confirmed(b.sent, b.until, func(until time.Time) (err error) {
		switch {
		case b.said != nil:
			return s.recover(until, b.calls, b.said)
		case resumes:
			err = s.resumer.Resume(until, b.ops)
		case b.ctx == nil || b.ctx.Done() == nil:
			err = s.conn.Run(until, until, b.ops)
		case s.resumer != nil:
			err = s.conn.Run(until, earlier(until, clock.Plain(b.sent.Add(answerTime))), b.ops)
		default:
			stop := context.AfterFunc(b.ctx, s.conn.Cut)
			if err = s.conn.Run(until, until, b.ops); !stop() {
				err = errCut
			}
		}
		switch late := errors.Is(err, ErrLate); {
		case late && b.ctx == nil:
			return s.Timing.silence()
		case err == nil, late, s.conn.Broken(err):
			return err
		case b.ctx != nil && b.ctx.Done() != nil: // its caller need not wait for recover
			b.said = err
			return ErrLate
		}
		return s.recover(until, b.calls, err)
	})
}

// recover makes sure what is held after the server answered ops with an error. The error does not mean that nothing was
// done: a cancel or a timeout can come just after the grant. recover gives every key back. That cannot hit another
// lock: a session holds one lock per key, and the caller is at the head of the key's wait queue.
func (s *session[K]) recover(until time.Time, calls []*call[K], said error) error {
	gives := make([]*Op[K], 0, len(calls))
	for _, c := range calls {
		gives = append(gives, &Op[K]{Key: c.op.Key, Shared: c.op.Shared})
		if c.op.Done = !c.op.Take; c.op.Take {
			c.refused = said
		}
	}
	return s.conn.Run(until, until, gives)
}
