package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
)

// maxBatch bounds how much one statement is asked to do.
const maxBatch = 512

// endedError says that the session ended before or while it ran a call. Whatever the call did
// on the server ends with the session.
type endedError struct{ err error }

func (e *endedError) Error() string { return "the session ended: " + e.err.Error() }
func (e *endedError) Unwrap() error { return e.err }

// Retryable implements the question of sqllock.IsRetryable.
func (e *endedError) Retryable() bool { return !errors.Is(e.err, sqllock.ErrClosed) }

// call is something for the goroutine that owns the connection to do: op, together with the
// ops of other calls, or work, alone.
type call[K comparable] struct {
	op   Op[K]
	work func(context.Context) error // an error ends the session; a key that it took is in op
	lock *lock[K]                    // is recorded when the caller is told that op took its key; may be nil
	free bool                        // the session holds nothing: its trust begins anew
	undo func(context.Context) error // is called when the caller has left, instead of giving the key back; may be nil
	idle func()                      // is called when the caller has left and everything was taken back; may be nil

	left    atomic.Int32  // who was first: the answer or the caller's leaving
	done    chan struct{} // closed when the call was answered
	err     error         // written before done is closed: an *endedError or nil
	refused error         // written before done is closed: what the server said instead of an answer
}

const (
	answered = 1
	deserted = 2
)

// do has the session run calls, the last of them for a caller who may leave: when ctx ends
// first, do returns its cause at once. What that call does after all is then taken back. An
// error of the session is returned as an *endedError after every lock on the session was told.
func (s *session[K]) do(ctx context.Context, calls ...*call[K]) error {
	for _, c := range calls {
		c.done = make(chan struct{})
	}
	if err := s.enqueue(calls); err != nil {
		return err
	}
	defer s.settle(len(calls))
	c := calls[len(calls)-1]
	select {
	case <-c.done:
	case <-ctx.Done():
		if c.left.CompareAndSwap(0, deserted) {
			return context.Cause(ctx)
		}
		<-c.done
	}
	return c.err
}

func (s *session[K]) enqueue(calls []*call[K]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return &endedError{s.err}
	}
	s.queue = append(s.queue, calls...)
	s.pending += len(calls)
	if s.interrupt != nil {
		s.interrupt()
	}
	select {
	case s.bell <- struct{}{}:
	default:
	}
	return nil
}

func (s *session[K]) settle(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending -= n
}

// next takes from the queue what can be done at once: one piece of work, or as many ops as
// there are.
func (s *session[K]) next() []*call[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.queue) && n < maxBatch && s.queue[n].work == nil {
		n++
	}
	if n == 0 {
		n = min(1, len(s.queue))
	}
	calls := s.queue[:n:n]
	if s.queue = s.queue[n:]; len(s.queue) == 0 {
		s.queue = nil
	}
	return calls
}

// answer runs calls that next returned and hands over their outcomes. Of a caller who has left
// before, nothing is run. What was taken for one who leaves meanwhile is given back before
// anything else happens on the connection. A lock is recorded only when its caller has it: one
// that nobody has is not one to be told, and its key's turn is the caller's to give up.
func (s *session[K]) answer(calls []*call[K]) error {
	err := s.attempt(calls)
	if err != nil {
		s.tell(err)
	}
	var strays []*Op[K]
	var undo func(context.Context) error // of one call: it is work, and alone
	var idle []func()
	for _, c := range calls {
		if err != nil {
			c.err = &endedError{err}
			close(c.done)
			continue
		}
		if c.left.CompareAndSwap(0, answered) {
			if c.lock != nil && c.op.Done {
				s.keep(c.lock)
			}
		} else {
			if c.undo != nil {
				undo = c.undo
			} else if c.op.Take && c.op.Done {
				strays = append(strays, &Op[K]{Key: c.op.Key, Shared: c.op.Shared})
			}
			if c.idle != nil {
				idle = append(idle, c.idle)
			}
		}
		close(c.done)
	}
	if err == nil && len(strays) > 0 {
		err = s.confirm(false, func(until time.Time) error { return s.conn.Run(until, strays) })
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

// attempt runs the calls whose callers are still there. An error ends the session.
func (s *session[K]) attempt(calls []*call[K]) error {
	if c := calls[0]; c.work != nil {
		if c.left.Load() == deserted {
			return nil
		}
		return s.work(c.free, c.work)
	}
	ops, sent := make([]*Op[K], 0, len(calls)), make([]*call[K], 0, len(calls))
	for _, c := range calls {
		if c.left.Load() != deserted {
			ops, sent = append(ops, &c.op), append(sent, c)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	return s.confirm(false, func(until time.Time) error {
		err := s.conn.Run(until, ops)
		if err == nil || s.conn.Broken(err) {
			return err
		}
		return s.recover(until, sent, err)
	})
}

// recover makes sure what is held after the server answered ops with an error, which does not
// mean that nothing was done: a cancel or a timeout can meet the grant. Every key is given
// back. No other lock can be meant: of one key a session holds one, and whoever asked for it has its turn.
func (s *session[K]) recover(until time.Time, calls []*call[K], said error) error {
	gives := make([]*Op[K], 0, len(calls))
	for _, c := range calls {
		gives = append(gives, &Op[K]{Key: c.op.Key, Shared: c.op.Shared})
		if c.op.Done = !c.op.Take; c.op.Take {
			c.refused = said
		}
	}
	return s.conn.Run(until, gives)
}
