package session

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
)

// endedError says that the session ended before or while it ran a call. Whatever the call did
// on the server ends with the session.
type endedError struct{ err error }

func (e *endedError) Error() string { return "the session ended: " + e.err.Error() }
func (e *endedError) Unwrap() error { return e.err }

// Retryable answers sqllock.IsRetryable.
func (e *endedError) Retryable() bool {
	var lasting *LastingRefusalError
	return !errors.Is(e.err, sqllock.ErrClosed) && !errors.As(e.err, &lasting)
}

// call is a request to the goroutine that owns the connection: op, which runs together with the ops of other calls, or
// work, which runs alone.
type call[K comparable] struct {
	op   Op[K]
	work func(context.Context) error // an error ends the session; a key that it takes is in op
	lock *lock[K]                    // recorded when the caller is answered that op took its key; may be nil
	free bool                        // the session holds nothing but what work takes: its trust begins anew
	idle func()                      // called when the caller has left and everything was taken back; may be nil

	left    atomic.Int32  // answered or deserted, whichever came first
	done    chan struct{} // closed when the call was answered
	err     error         // written before done is closed: an *endedError or nil
	refused error         // written before done is closed: the server's error instead of an answer
}

const (
	answered = 1
	deserted = 2
)

// batch is a group of calls that run together: one with work, or any number with ops for one statement.
type batch[K comparable] struct {
	calls   []*call[K]
	ops     []*Op[K]
	one     [1]*Op[K]       // room for ops: mostly there is one
	ctx     context.Context //nolint:containedctx // of the caller that runs it; nil: the session's goroutine does
	sent    time.Time       // when the ops were sent; zero before
	until   time.Time       // when to give up
	refused error           // the server's error for the ops
}

// mayLeave reports whether a caller runs the batch that may leave before the answer.
func (b *batch[K]) mayLeave() bool { return b.ctx != nil && b.ctx.Done() != nil }

// errUnfinished says that a caller leaves the rest of its batch to the session's goroutine.
var errUnfinished = errors.New("the batch is not finished")

// do has the session run calls. The caller may leave during the last of them: when ctx ends first, do returns its cause
// at once, and what that call does after all is taken back (I44). If the session ends, do returns an *endedError, after
// every lock on the session has ended. A session that has no room for the lock returns errFull.
func (s *session[K]) do(ctx context.Context, calls ...*call[K]) error {
	for _, c := range calls {
		c.done = make(chan struct{})
	}
	c := calls[len(calls)-1]
	left := ctx.Done()
	lent, err := s.enqueue(calls, s.loanFor(ctx))
	if err != nil {
		return err
	}
	if lent {
		b, panicked := &batch[K]{calls: calls, ctx: ctx}, true
		defer func() {
			if panicked {
				s.endLoan(b, errPanicked)
			}
		}()
		err = s.answer(b, s.run(b))
		panicked = false
		s.endLoan(b, err)
	}
	select {
	case <-c.done:
	case <-left:
		if c.left.CompareAndSwap(0, deserted) {
			s.mu.Lock()
			s.pending--
			s.mu.Unlock()
			return context.Cause(ctx)
		}
		<-c.done
	}
	return c.err
}

// run runs the calls of a batch whose callers are still there. After errUnfinished the session's goroutine calls it again.
func (s *session[K]) run(b *batch[K]) (err error) {
	if c := b.calls[0]; c.work != nil {
		if c.left.Load() == deserted {
			return nil
		}
		return s.work(c.free, c.work)
	}
	if !b.sent.IsZero() {
		return s.confirmed(b.sent, b.until, s.finish(b))
	}
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
	return s.confirmed(b.sent, b.until, s.send(b))
}

// send sends the ops of a batch. A caller that may leave waits for the answer no longer than answerTime, if the session's
// goroutine can wait on. Otherwise the connection is cut off when it leaves.
func (s *session[K]) send(b *batch[K]) error {
	until := clock.Plain(b.until)
	soon, stop := until, func() bool { return true }
	switch {
	case !b.mayLeave():
	case s.resumer != nil:
		soon = earlier(until, clock.Plain(b.sent.Add(answerTime)))
	default:
		stop = context.AfterFunc(b.ctx, s.conn.Cut)
	}
	err := s.conn.Run(until, soon, b.ops)
	if !stop() {
		return errCut
	}
	return s.received(b, err)
}

// finish goes on where a caller has left a batch.
func (s *session[K]) finish(b *batch[K]) error {
	if b.refused != nil {
		return s.recover(b)
	}
	return s.received(b, s.resumer.Resume(clock.Plain(b.until), b.ops))
}

// received decides what becomes of a batch whose ops were answered, or not, with err.
func (s *session[K]) received(b *batch[K], err error) error {
	switch {
	case errors.Is(err, ErrLate) && b.ctx == nil:
		return s.silence()
	case errors.Is(err, ErrLate):
		return errUnfinished
	case err == nil, s.conn.Broken(err):
		return err
	}
	b.refused = err
	if b.mayLeave() { // it need not wait for recover
		return errUnfinished
	}
	return s.recover(b)
}

// recover makes sure what is held after the server answered ops with an error. The error does not mean that nothing was
// done: a cancel or a timeout can come just after the grant. recover gives every key back (I43). That cannot hit
// another lock: a session holds one lock per key, and the caller is at the head of the key's wait queue.
func (s *session[K]) recover(b *batch[K]) error {
	gives := make([]*Op[K], 0, len(b.calls))
	for _, c := range b.calls {
		gives = append(gives, c.op.give())
		if c.op.Done = !c.op.Take; c.op.Take {
			c.refused = b.refused
		}
	}
	until := clock.Plain(b.until)
	return s.conn.Run(until, until, gives)
}

// answer answers the calls of a batch that was run and ended with err, unless that is errUnfinished. Another error ends
// the session (I42). A key that was taken for a caller that has left is given back before anything else happens on the
// connection (I44). A lock is recorded only when its caller has it: if the session ends before that, there is no lock
// to end, and the caller itself leaves the key's wait queue.
func (s *session[K]) answer(b *batch[K], err error) error {
	if errors.Is(err, errUnfinished) {
		return err
	}
	if err != nil {
		s.end(err)
	}
	orphans, forget, idle := s.settle(b, err)
	for _, c := range b.calls {
		close(c.done)
	}
	if err == nil && len(orphans) > 0 {
		err = s.confirm(false, func(until time.Time) error { return s.conn.Run(until, until, orphans) })
	}
	if err == nil && forget {
		err = s.work(false, s.conn.Forget)
	}
	if err == nil {
		for _, f := range idle {
			f()
		}
	}
	return err
}

// settle decides for every call of a batch whether its caller is still there (I4). For the callers that left it returns
// what to give back, whether that is all that the session holds, and the idle functions to call after that (I44).
func (s *session[K]) settle(b *batch[K], err error) (orphans []*Op[K], forget bool, idle []func()) {
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
		switch took := c.op.Take && c.op.Done; {
		case there && took:
			c.err = s.record(c)
		case there:
		case c.free:
			forget = true // work runs alone
		case took:
			orphans = append(orphans, c.op.give())
		}
		if !there && c.idle != nil {
			idle = append(idle, c.idle)
		}
	}
	return orphans, forget, idle
}

// record records the key that a call took, for a caller that is still there. The caller of record holds mu.
func (s *state[K]) record(c *call[K]) error {
	switch {
	case c.lock == nil:
		s.moving++
	case s.err != nil: // its deadline passed while the statement ran
		return &endedError{s.err}
	default:
		s.held[c.op.Key] = c.lock
	}
	return nil
}
